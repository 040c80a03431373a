//! The keys and values of a GGUF header, ordered, with typed access. Knows no particular key.

use std::collections::HashMap;

use super::quoted;
use super::value_type::ValueType;
use crate::{Error, Result};

/// One metadata value.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs)] // each variant is the GGUF type of its name
pub enum MetadataValue {
    U8(u8),
    I8(i8),
    U16(u16),
    I16(i16),
    U32(u32),
    I32(i32),
    U64(u64),
    I64(i64),
    F32(f32),
    F64(f64),
    Bool(bool),
    String(String),
    Array(MetadataArray),
}

/// An array of values of one type.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs)] // each variant is the GGUF type of its name
pub enum MetadataArray {
    U8(Vec<u8>),
    I8(Vec<i8>),
    U16(Vec<u16>),
    I16(Vec<i16>),
    U32(Vec<u32>),
    I32(Vec<i32>),
    U64(Vec<u64>),
    I64(Vec<i64>),
    F32(Vec<f32>),
    F64(Vec<f64>),
    Bool(Vec<bool>),
    String(Vec<String>),
}

impl MetadataArray {
    pub(super) fn element_type(&self) -> ValueType {
        match self {
            Self::U8(_) => ValueType::U8,
            Self::I8(_) => ValueType::I8,
            Self::U16(_) => ValueType::U16,
            Self::I16(_) => ValueType::I16,
            Self::U32(_) => ValueType::U32,
            Self::I32(_) => ValueType::I32,
            Self::U64(_) => ValueType::U64,
            Self::I64(_) => ValueType::I64,
            Self::F32(_) => ValueType::F32,
            Self::F64(_) => ValueType::F64,
            Self::Bool(_) => ValueType::Bool,
            Self::String(_) => ValueType::String,
        }
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        match self {
            Self::U8(v) => v.len(),
            Self::I8(v) => v.len(),
            Self::U16(v) => v.len(),
            Self::I16(v) => v.len(),
            Self::U32(v) => v.len(),
            Self::I32(v) => v.len(),
            Self::U64(v) => v.len(),
            Self::I64(v) => v.len(),
            Self::F32(v) => v.len(),
            Self::F64(v) => v.len(),
            Self::Bool(v) => v.len(),
            Self::String(v) => v.len(),
        }
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl MetadataValue {
    pub(super) fn value_type(&self) -> ValueType {
        match self {
            Self::U8(_) => ValueType::U8,
            Self::I8(_) => ValueType::I8,
            Self::U16(_) => ValueType::U16,
            Self::I16(_) => ValueType::I16,
            Self::U32(_) => ValueType::U32,
            Self::I32(_) => ValueType::I32,
            Self::U64(_) => ValueType::U64,
            Self::I64(_) => ValueType::I64,
            Self::F32(_) => ValueType::F32,
            Self::F64(_) => ValueType::F64,
            Self::Bool(_) => ValueType::Bool,
            Self::String(_) => ValueType::String,
            Self::Array(_) => ValueType::Array,
        }
    }

    /// The integer, of whichever width and sign.
    fn integer(&self) -> Option<i128> {
        Some(match *self {
            Self::U8(v) => v.into(),
            Self::I8(v) => v.into(),
            Self::U16(v) => v.into(),
            Self::I16(v) => v.into(),
            Self::U32(v) => v.into(),
            Self::I32(v) => v.into(),
            Self::U64(v) => v.into(),
            Self::I64(v) => v.into(),
            _ => return None,
        })
    }

    /// For messages: `u32 7`, `string`, `array of 3 i32`.
    fn described(&self) -> String {
        match (self, self.integer()) {
            (Self::Array(array), _) => {
                format!(
                    "an array of {} {}",
                    array.len(),
                    array.element_type().name()
                )
            }
            (_, Some(integer)) => format!("{} {integer}", self.value_type().name()),
            _ => self.value_type().name().to_owned(),
        }
    }
}

/// The metadata of a model file, in the file's order.
///
/// The typed accessors give `Ok(None)` for an absent key and [`Error::InvalidModelFile`] naming
/// the key for a value of another type. Integers of every width and sign are read as asked for,
/// if the value fits.
#[derive(Debug, Clone, Default)]
pub struct Metadata {
    entries: Vec<(String, MetadataValue)>,
    index_of: HashMap<String, usize>,
}

impl PartialEq for Metadata {
    fn eq(&self, other: &Self) -> bool {
        self.entries == other.entries
    }
}

impl Metadata {
    /// No entries.
    pub fn new() -> Metadata {
        Metadata::default()
    }

    /// The value of this key.
    pub fn get(&self, key: &str) -> Option<&MetadataValue> {
        self.index_of.get(key).map(|&index| &self.entries[index].1)
    }

    /// Sets a value: in place if the key is there, else at the end. Returns the former value.
    pub fn insert(
        &mut self,
        key: impl Into<String>,
        value: impl Into<MetadataValue>,
    ) -> Option<MetadataValue> {
        let key = key.into();
        let value = value.into();
        if let Some(&index) = self.index_of.get(&key) {
            return Some(std::mem::replace(&mut self.entries[index].1, value));
        }
        self.index_of.insert(key.clone(), self.entries.len());
        self.entries.push((key, value));
        None
    }

    /// All entries in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &MetadataValue)> {
        self.entries
            .iter()
            .map(|(key, value)| (key.as_str(), value))
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// An unsigned integer.
    ///
    /// # Errors
    /// If the value is no integer or does not fit.
    pub fn u32(&self, key: &str) -> Result<Option<u32>> {
        self.typed(key, "a u32", |value| value.integer()?.try_into().ok())
    }

    /// An unsigned integer: a count, a size.
    ///
    /// # Errors
    /// If the value is no integer or does not fit.
    pub fn usize(&self, key: &str) -> Result<Option<usize>> {
        self.typed(key, "an unsigned integer", |value| {
            value.integer()?.try_into().ok()
        })
    }

    /// A float; an f64 is rounded.
    ///
    /// # Errors
    /// If the value is no float.
    pub fn f32(&self, key: &str) -> Result<Option<f32>> {
        self.typed(key, "a float", |value| match *value {
            MetadataValue::F32(v) => Some(v),
            MetadataValue::F64(v) => Some(v as f32),
            _ => None,
        })
    }

    /// A bool.
    ///
    /// # Errors
    /// If the value is no bool.
    pub fn bool(&self, key: &str) -> Result<Option<bool>> {
        self.typed(key, "a bool", |value| match *value {
            MetadataValue::Bool(v) => Some(v),
            _ => None,
        })
    }

    /// A string.
    ///
    /// # Errors
    /// If the value is no string.
    pub fn str(&self, key: &str) -> Result<Option<&str>> {
        self.typed(key, "a string", |value| match value {
            MetadataValue::String(v) => Some(v.as_str()),
            _ => None,
        })
    }

    /// An array of strings.
    ///
    /// # Errors
    /// If the value is no such array.
    pub fn strings(&self, key: &str) -> Result<Option<&[String]>> {
        self.typed(key, "an array of strings", |value| match value {
            MetadataValue::Array(MetadataArray::String(v)) => Some(v.as_slice()),
            _ => None,
        })
    }

    /// An array of f32.
    ///
    /// # Errors
    /// If the value is no such array.
    pub fn f32s(&self, key: &str) -> Result<Option<&[f32]>> {
        self.typed(key, "an array of f32", |value| match value {
            MetadataValue::Array(MetadataArray::F32(v)) => Some(v.as_slice()),
            _ => None,
        })
    }

    /// An array of i32.
    ///
    /// # Errors
    /// If the value is no such array.
    pub fn i32s(&self, key: &str) -> Result<Option<&[i32]>> {
        self.typed(key, "an array of i32", |value| match value {
            MetadataValue::Array(MetadataArray::I32(v)) => Some(v.as_slice()),
            _ => None,
        })
    }

    fn typed<'a, T>(
        &'a self,
        key: &str,
        wanted: &str,
        convert: impl FnOnce(&'a MetadataValue) -> Option<T>,
    ) -> Result<Option<T>> {
        let Some(value) = self.get(key) else {
            return Ok(None);
        };
        match convert(value) {
            Some(converted) => Ok(Some(converted)),
            None => Err(Error::InvalidModelFile(format!(
                "metadata key {} must be {wanted}, not {}",
                quoted(key),
                value.described()
            ))),
        }
    }
}

macro_rules! value_from {
    ($($source:ty => $variant:ident),* $(,)?) => {$(
        impl From<$source> for MetadataValue {
            fn from(value: $source) -> Self { MetadataValue::$variant(value) }
        }
        impl From<Vec<$source>> for MetadataArray {
            fn from(values: Vec<$source>) -> Self { MetadataArray::$variant(values) }
        }
        impl From<Vec<$source>> for MetadataValue {
            fn from(values: Vec<$source>) -> Self { MetadataValue::Array(values.into()) }
        }
    )*};
}

value_from! {
    u8 => U8, i8 => I8, u16 => U16, i16 => I16, u32 => U32, i32 => I32, u64 => U64, i64 => I64,
    f32 => F32, f64 => F64, bool => Bool, String => String,
}

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
