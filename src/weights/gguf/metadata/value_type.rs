//! GGUF's numbers for the types of metadata values, and the list of the number types.

/// Type of a metadata value or of an array's elements; the discriminant is GGUF's number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::weights::gguf) enum ValueType {
    U8 = 0,
    I8 = 1,
    U16 = 2,
    I16 = 3,
    U32 = 4,
    I32 = 5,
    F32 = 6,
    Bool = 7,
    String = 8,
    Array = 9,
    U64 = 10,
    I64 = 11,
    F64 = 12,
}

/// Calls `$apply!` with the variants that are plain little-endian numbers and their Rust types.
macro_rules! with_number_types {
    ($apply:ident) => {
        $apply! {
            U8(u8), I8(i8), U16(u16), I16(i16), U32(u32), I32(i32), U64(u64), I64(i64),
            F32(f32), F64(f64)
        }
    };
}
pub(in crate::weights::gguf) use with_number_types;

impl ValueType {
    pub fn from_id(id: u32) -> Option<ValueType> {
        macro_rules! find {
            ($($variant:ident($number:ty)),*) => {
                [
                    $(ValueType::$variant,)*
                    ValueType::Bool,
                    ValueType::String,
                    ValueType::Array,
                ]
                .into_iter()
                .find(|value_type| value_type.id() == id)
            };
        }
        with_number_types!(find)
    }

    pub fn id(self) -> u32 {
        self as u32
    }

    /// The name of the type in messages: `u8`, `string`.
    pub fn name(self) -> String {
        format!("{self:?}").to_lowercase()
    }
}
