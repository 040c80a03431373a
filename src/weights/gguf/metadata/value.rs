//! Metadata values and arrays.

use super::value_type::{ValueType, with_number_types};

macro_rules! value_enums {
    ($($variant:ident($number:ty)),*) => {
        /// One metadata value.
        #[derive(Debug, Clone, PartialEq)]
        pub enum MetadataValue {
            $(#[doc = concat!("A GGUF ", stringify!($number), ".")] $variant($number),)*
            /// A GGUF bool.
            Bool(bool),
            /// A GGUF string.
            String(String),
            /// A GGUF array.
            Array(MetadataArray),
        }

        /// An array of values of one type.
        #[derive(Debug, Clone, PartialEq)]
        pub enum MetadataArray {
            $(#[doc = concat!("An array of GGUF ", stringify!($number), ".")] $variant(Vec<$number>),)*
            /// An array of GGUF bool.
            Bool(Vec<bool>),
            /// An array of GGUF string.
            String(Vec<String>),
        }

        impl MetadataValue {
            pub(in crate::weights::gguf) fn value_type(&self) -> ValueType {
                match self {
                    $(Self::$variant(_) => ValueType::$variant,)*
                    Self::Bool(_) => ValueType::Bool,
                    Self::String(_) => ValueType::String,
                    Self::Array(_) => ValueType::Array,
                }
            }
        }

        impl MetadataArray {
            pub(in crate::weights::gguf) fn element_type(&self) -> ValueType {
                match self {
                    $(Self::$variant(_) => ValueType::$variant,)*
                    Self::Bool(_) => ValueType::Bool,
                    Self::String(_) => ValueType::String,
                }
            }

            /// Number of elements.
            pub fn len(&self) -> usize {
                match self {
                    $(Self::$variant(values) => values.len(),)*
                    Self::Bool(values) => values.len(),
                    Self::String(values) => values.len(),
                }
            }
        }

        impl_from! { $($variant($number),)* Bool(bool), String(String) }
    };
}

macro_rules! impl_from {
    ($($variant:ident($scalar:ty)),*) => {$(
        impl From<$scalar> for MetadataValue {
            fn from(value: $scalar) -> Self {
                MetadataValue::$variant(value)
            }
        }

        impl From<Vec<$scalar>> for MetadataArray {
            fn from(values: Vec<$scalar>) -> Self {
                MetadataArray::$variant(values)
            }
        }

        impl From<Vec<$scalar>> for MetadataValue {
            fn from(values: Vec<$scalar>) -> Self {
                MetadataValue::Array(values.into())
            }
        }
    )*};
}

with_number_types!(value_enums);

impl From<&str> for MetadataValue {
    fn from(value: &str) -> Self {
        MetadataValue::String(value.to_owned())
    }
}

impl From<MetadataArray> for MetadataValue {
    fn from(array: MetadataArray) -> Self {
        MetadataValue::Array(array)
    }
}

impl MetadataArray {
    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl MetadataValue {
    /// The integer of any width and sign.
    pub(super) fn integer(&self) -> Option<i128> {
        Some(match *self {
            Self::U8(v) => v.into(),
            Self::I8(v) => v.into(),
            Self::U16(v) => v.into(),
            Self::I16(v) => v.into(),
            Self::U32(v) => v.into(),
            Self::I32(v) => v.into(),
            Self::U64(v) => v.into(),
            Self::I64(v) => v.into(),
            Self::F32(_) | Self::F64(_) | Self::Bool(_) | Self::String(_) | Self::Array(_) => {
                return None;
            }
        })
    }

    /// The value in messages: `u32 7`, `string`, `an array of 3 i32`.
    pub(super) fn described(&self) -> String {
        match (self, self.integer()) {
            (Self::Array(array), _) => {
                format!(
                    "an array of {} {}",
                    array.len(),
                    array.element_type().name()
                )
            }
            (_, Some(integer)) => format!("{} {integer}", self.value_type().name()),
            _ => self.value_type().name(),
        }
    }
}
