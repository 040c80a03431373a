//! Typed access to the members of a `config.json`. The callers decide which members to read.

use serde_json::{Map, Value};

use crate::{Error, Result};

/// Largest JSON file of a folder that is read, `tokenizer.json` apart.
pub const MAX_JSON_BYTES: u64 = 32 << 20;
/// The maximum number of elements of a head. Tables of rotations are made before the loader compares the size with those of tensors.
const MAX_HEAD_DIM: u32 = 1 << 16;

/// The members of a `config.json`, or of an object in it. Null counts as absent.
#[derive(Debug, Clone)]
pub struct ConfigJson(Map<String, Value>);

impl ConfigJson {
    /// Parses the file.
    pub fn parse(bytes: &[u8]) -> Result<ConfigJson> {
        serde_json::from_slice(bytes)
            .map(ConfigJson)
            .map_err(|error| Error::InvalidModelFile(format!("config.json: {error}")))
    }

    /// Sets a member.
    pub fn set(&mut self, key: &str, value: impl Into<Value>) {
        self.0.insert(key.to_owned(), value.into());
    }

    /// Removes a member.
    pub fn remove(&mut self, key: &str) {
        self.0.remove(key);
    }

    /// Sets a member unless it is present.
    pub fn add(&mut self, key: &str, value: impl Into<Value>) {
        if self.get(key).is_none() {
            self.set(key, value);
        }
    }

    /// Moves the value of member `from` to member `to`, unless `to` is present.
    pub fn rename(&mut self, from: &str, to: &str) {
        if let Some(value) = self.get(from).cloned() {
            self.add(to, value);
        }
    }

    /// The error for the value of a member that this build does not support.
    pub fn unsupported(&self, key: &str) -> Error {
        let model_type = self.0.get("model_type").and_then(Value::as_str);
        self.unsupported_by(model_type.unwrap_or_default(), key)
    }

    /// Same as [`Self::unsupported`], with `what` in place of the model type.
    pub fn unsupported_by(&self, what: &str, key: &str) -> Error {
        let value = self.get(key).map(ToString::to_string).unwrap_or_default();
        let value: String = value.chars().take(80).collect();
        Error::UnsupportedModel(format!("{what} with {key} {value}"))
    }

    /// Refuses the value of a member unless `is_supported`.
    ///
    /// # Errors
    /// [`Error::UnsupportedModel`] naming the member and its value.
    pub fn require(&self, key: &str, is_supported: bool) -> Result<()> {
        match is_supported {
            true => Ok(()),
            false => Err(self.unsupported(key)),
        }
    }

    /// Whether a member is present as null, for members where absence means something else.
    pub fn is_null(&self, key: &str) -> bool {
        self.0.get(key).is_some_and(Value::is_null)
    }

    /// A member, if it is present.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.0.get(key).filter(|value| !value.is_null())
    }

    fn typed<'a, T>(
        &'a self,
        key: &str,
        wanted: &str,
        convert: impl FnOnce(&'a Value) -> Option<T>,
    ) -> Result<Option<T>> {
        let Some(value) = self.get(key) else {
            return Ok(None);
        };
        convert(value)
            .map(Some)
            .ok_or_else(|| Error::InvalidModelFile(format!("config.json: {key} must be {wanted}")))
    }

    /// A count.
    pub fn size(&self, key: &str) -> Result<Option<u32>> {
        self.typed(key, "a small whole number", |value| {
            value.as_u64()?.try_into().ok()
        })
    }

    /// A count that must be present.
    pub fn needed(&self, key: &str) -> Result<u32> {
        self.size(key)?.ok_or_else(|| missing(key))
    }

    /// A number.
    pub fn number(&self, key: &str) -> Result<Option<f64>> {
        self.typed(key, "a number", Value::as_f64)
    }

    /// A boolean.
    pub fn bool(&self, key: &str) -> Result<Option<bool>> {
        self.typed(key, "true or false", Value::as_bool)
    }

    /// A string.
    pub fn str(&self, key: &str) -> Result<Option<&str>> {
        self.typed(key, "a string", Value::as_str)
    }

    /// A list of numbers.
    pub fn numbers(&self, key: &str) -> Result<Option<Vec<f32>>> {
        self.typed(key, "a list of numbers", |value| {
            let values = value.as_array()?.iter();
            values
                .map(|value| value.as_f64().map(|v| v as f32))
                .collect()
        })
    }

    /// A list of strings.
    pub fn strings(&self, key: &str) -> Result<Option<Vec<&str>>> {
        self.typed(key, "a list of strings", |value| {
            value
                .as_array()?
                .iter()
                .map(|value| value.as_str())
                .collect()
        })
    }

    /// An object.
    pub fn object(&self, key: &str) -> Result<Option<ConfigJson>> {
        self.typed(key, "an object", |value| {
            value.as_object().cloned().map(ConfigJson)
        })
    }

    /// Elements of a head.
    pub fn head_dim(&self) -> Result<u32> {
        let head_dim = match self.size("head_dim")? {
            Some(head_dim) => head_dim,
            None => self.needed("hidden_size")? / self.needed("num_attention_heads")?.max(1),
        };
        match head_dim <= MAX_HEAD_DIM {
            true => Ok(head_dim),
            false => Err(Error::InvalidModelFile(format!(
                "config.json: heads of {head_dim} elements; the limit is {MAX_HEAD_DIM}"
            ))),
        }
    }
}

/// The error for a file that lacks `key`.
pub fn missing(key: &str) -> Error {
    Error::InvalidModelFile(format!("config.json: {key} is missing"))
}
