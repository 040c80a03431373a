//! The ordered keys and values of a GGUF header, with typed access.

mod value;
mod value_type;

pub use value::{MetadataArray, MetadataValue};
pub(super) use value_type::{ValueType, with_number_types};

use std::collections::HashMap;

use crate::{Error, Result, weights::quoted::quoted};

/// The metadata of a model file, in the file's order.
///
/// The typed accessors give `Ok(None)` for an absent key and [`Error::InvalidModelFile`] naming
/// the key for a value of another type. Integers of any width and sign are converted if the value fits.
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
    /// Metadata without entries.
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
    /// Fails if the value is not an integer or does not fit.
    pub fn u32(&self, key: &str) -> Result<Option<u32>> {
        self.typed(key, "a u32", |value| value.integer()?.try_into().ok())
    }

    /// An unsigned integer: a count, a size.
    ///
    /// # Errors
    /// Fails if the value is not an integer or does not fit.
    pub fn usize(&self, key: &str) -> Result<Option<usize>> {
        self.typed(key, "an unsigned integer", |value| {
            value.integer()?.try_into().ok()
        })
    }

    /// An integer.
    ///
    /// # Errors
    /// Fails if the value is not an integer or does not fit.
    pub fn i64(&self, key: &str) -> Result<Option<i64>> {
        self.typed(key, "an i64", |value| value.integer()?.try_into().ok())
    }

    /// A float; an f64 is rounded.
    ///
    /// # Errors
    /// Fails if the value is not a float.
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
    /// Fails if the value is not a bool.
    pub fn bool(&self, key: &str) -> Result<Option<bool>> {
        self.typed(key, "a bool", |value| match *value {
            MetadataValue::Bool(v) => Some(v),
            _ => None,
        })
    }

    /// A string.
    ///
    /// # Errors
    /// Fails if the value is not a string.
    pub fn str(&self, key: &str) -> Result<Option<&str>> {
        self.typed(key, "a string", |value| match value {
            MetadataValue::String(v) => Some(v.as_str()),
            _ => None,
        })
    }

    /// An array of strings.
    ///
    /// # Errors
    /// Fails if the value is not such an array.
    pub fn strings(&self, key: &str) -> Result<Option<&[String]>> {
        self.typed(key, "an array of strings", |value| match value {
            MetadataValue::Array(MetadataArray::String(v)) => Some(v.as_slice()),
            _ => None,
        })
    }

    /// An array of f32.
    ///
    /// # Errors
    /// Fails if the value is not such an array.
    pub fn f32s(&self, key: &str) -> Result<Option<&[f32]>> {
        self.typed(key, "an array of f32", |value| match value {
            MetadataValue::Array(MetadataArray::F32(v)) => Some(v.as_slice()),
            _ => None,
        })
    }

    /// An array of i32.
    ///
    /// # Errors
    /// Fails if the value is not such an array.
    pub fn i32s(&self, key: &str) -> Result<Option<&[i32]>> {
        self.typed(key, "an array of i32", |value| match value {
            MetadataValue::Array(MetadataArray::I32(v)) => Some(v.as_slice()),
            _ => None,
        })
    }

    /// An array of sizes.
    ///
    /// # Errors
    /// Fails if the value is not such an array.
    pub fn sizes(&self, key: &str) -> Result<Option<Vec<usize>>> {
        self.typed(key, "an array of sizes", |value| match value {
            MetadataValue::Array(MetadataArray::I32(v)) => {
                v.iter().map(|it| usize::try_from(*it).ok()).collect()
            }
            MetadataValue::Array(MetadataArray::U32(v)) => {
                v.iter().map(|it| usize::try_from(*it).ok()).collect()
            }
            _ => None,
        })
    }

    /// An array of bools.
    ///
    /// # Errors
    /// Fails if the value is not such an array.
    pub fn bools(&self, key: &str) -> Result<Option<&[bool]>> {
        self.typed(key, "an array of bools", |value| match value {
            MetadataValue::Array(MetadataArray::Bool(v)) => Some(v.as_slice()),
            _ => None,
        })
    }

    fn typed<'a, T>(
        &'a self,
        key: &str,
        expected: &str,
        convert: impl FnOnce(&'a MetadataValue) -> Option<T>,
    ) -> Result<Option<T>> {
        let Some(value) = self.get(key) else {
            return Ok(None);
        };
        match convert(value) {
            Some(converted) => Ok(Some(converted)),
            None => Err(Error::InvalidModelFile(format!(
                "metadata key {} must be {expected}, not {}",
                quoted(key),
                value.described()
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Metadata {
        let mut metadata = Metadata::new();
        metadata.insert("int", 7i8);
        metadata.insert("negative", -1i64);
        metadata.insert("large", 1u64 << 40);
        metadata.insert("float", 0.5f32);
        metadata.insert("double", 0.25f64);
        metadata.insert("flag", true);
        metadata.insert("text", "hello");
        metadata.insert("strings", vec!["a".to_owned()]);
        metadata.insert("floats", vec![1.0f32]);
        metadata.insert("ints", vec![3i32]);
        metadata
    }

    #[test]
    fn typed_access() {
        let m = sample();
        assert_eq!(m.u32("int"), Ok(Some(7)));
        assert_eq!(m.usize("int"), Ok(Some(7)));
        assert_eq!(m.f32("float"), Ok(Some(0.5)));
        assert_eq!(m.f32("double"), Ok(Some(0.25)));
        assert_eq!(m.bool("flag"), Ok(Some(true)));
        assert_eq!(m.str("text"), Ok(Some("hello")));
        assert_eq!(m.strings("strings"), Ok(Some(&["a".to_owned()][..])));
        assert_eq!(m.f32s("floats"), Ok(Some(&[1.0][..])));
        assert_eq!(m.i32s("ints"), Ok(Some(&[3][..])));
        assert_eq!(m.u32("absent"), Ok(None));
        assert_eq!(m.strings("absent"), Ok(None));
    }

    #[test]
    fn a_wrong_type_names_the_key_and_both_types() {
        let m = sample();
        let message = |error: Error| error.to_string();
        let text = message(m.u32("text").unwrap_err());
        assert_eq!(
            text,
            "invalid model file: metadata key \"text\" must be a u32, not string"
        );
        let negative = message(m.u32("negative").unwrap_err());
        assert!(
            negative.ends_with("\"negative\" must be a u32, not i64 -1"),
            "{negative}"
        );
        assert!(m.u32("large").is_err());
        assert!(m.usize("negative").is_err());
        assert!(m.f32("int").is_err());
        assert!(m.bool("int").is_err());
        assert!(m.str("strings").is_err());
        let floats = message(m.i32s("floats").unwrap_err());
        assert!(
            floats.ends_with("must be an array of i32, not an array of 1 f32"),
            "{floats}"
        );
        assert!(m.strings("text").is_err());
        assert!(m.f32s("ints").is_err());
    }

    #[test]
    fn insert_replaces_in_place_and_keeps_order() {
        let mut m = sample();
        let former = m.insert("text", "bye");
        assert_eq!(former, Some("hello".into()));
        assert_eq!(m.len(), 10);
        assert_eq!(m.iter().nth(6), Some(("text", &"bye".into())));
        assert_eq!(m.iter().next(), Some(("int", &7i8.into())));
    }
}
