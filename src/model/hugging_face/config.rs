//! `config.json`: typed access. Knows no key.

use serde_json::{Map, Value};

use crate::{Error, Result};

/// The members of `config.json`, or of an object in it. Null is as good as absent.
#[derive(Debug, Clone)]
pub struct Config(Map<String, Value>);

impl Config {
    /// Reads the file.
    pub fn parse(bytes: &[u8]) -> Result<Config> {
        serde_json::from_slice(bytes)
            .map(Config)
            .map_err(|error| Error::InvalidModelFile(format!("config.json: {error}")))
    }

    /// Adds a member, unless one of that name is there.
    pub fn add(&mut self, key: &str, value: Value) {
        if self.get(key).is_none() {
            self.0.insert(key.to_owned(), value);
        }
    }

    /// Whether a member is there as null, where absence has another meaning.
    pub fn is_null(&self, key: &str) -> bool {
        self.0.get(key).is_some_and(Value::is_null)
    }

    /// A member that is there.
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

    /// A count that must be there.
    pub fn needed(&self, key: &str) -> Result<u32> {
        self.size(key)?.ok_or_else(|| missing(key))
    }

    /// A number.
    pub fn number(&self, key: &str) -> Result<Option<f64>> {
        self.typed(key, "a number", Value::as_f64)
    }

    /// A choice.
    pub fn bool(&self, key: &str) -> Result<Option<bool>> {
        self.typed(key, "true or false", Value::as_bool)
    }

    /// A text.
    pub fn str(&self, key: &str) -> Result<Option<&str>> {
        self.typed(key, "a string", Value::as_str)
    }

    /// Numbers.
    pub fn numbers(&self, key: &str) -> Result<Option<Vec<f32>>> {
        self.typed(key, "a list of numbers", |value| {
            let values = value.as_array()?.iter();
            values
                .map(|value| value.as_f64().map(|v| v as f32))
                .collect()
        })
    }

    /// An object.
    pub fn object(&self, key: &str) -> Result<Option<Config>> {
        self.typed(key, "an object", |value| {
            value.as_object().cloned().map(Config)
        })
    }

    /// Elements of a head.
    pub fn head_dim(&self) -> Result<u32> {
        if let Some(head_dim) = self.size("head_dim")? {
            return Ok(head_dim);
        }
        let heads = self.needed("num_attention_heads")?.max(1);
        Ok(self.needed("hidden_size")? / heads)
    }
}

/// The error of a file without `key`.
pub fn missing(key: &str) -> Error {
    Error::InvalidModelFile(format!("config.json: {key} is missing"))
}
