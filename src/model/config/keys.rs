//! Reads one architecture's keys out of metadata and checks their ranges. Knows no key.

use crate::{Error, Result, weights::Metadata};

/// Keys of one architecture: `ARCHITECTURE.key`.
#[derive(Debug, Clone, Copy)]
pub struct Keys<'a> {
    metadata: &'a Metadata,
    architecture: &'a str,
}

/// The error of a file without `what`.
pub fn missing(what: &str) -> Error {
    Error::InvalidModelFile(format!("{what} is missing"))
}

impl<'a> Keys<'a> {
    /// The keys of `architecture`.
    pub fn new(metadata: &'a Metadata, architecture: &'a str) -> Keys<'a> {
        Keys {
            metadata,
            architecture,
        }
    }

    /// The whole name of a key.
    pub fn name(&self, key: &str) -> String {
        format!("{}.{key}", self.architecture)
    }

    /// A size: at least 1, and small enough that products of a few stay far from overflow.
    pub fn size(&self, key: &str) -> Result<usize> {
        self.size_if(key)?.ok_or_else(|| missing(&self.name(key)))
    }

    /// A size with a default.
    pub fn size_or(&self, key: &str, default: usize) -> Result<usize> {
        Ok(self.size_if(key)?.unwrap_or(default))
    }

    /// A size that may be absent.
    pub fn size_if(&self, key: &str) -> Result<Option<usize>> {
        let name = self.name(key);
        match self.metadata.usize(&name)? {
            Some(value) if !(1..=1 << 24).contains(&value) => {
                Err(Error::InvalidModelFile(format!("{name} is {value}")))
            }
            value => Ok(value),
        }
    }

    /// A size that may be absent, and for which zero means the same.
    pub fn size_or_zero(&self, key: &str) -> Result<Option<usize>> {
        match self.metadata.usize(&self.name(key))? {
            Some(0) => Ok(None),
            _ => self.size_if(key),
        }
    }

    /// A positive number that may be absent.
    pub fn positive(&self, key: &str) -> Result<Option<f32>> {
        let name = self.name(key);
        match self.metadata.f32(&name)? {
            Some(value) if !(value.is_finite() && value > 0.0) => {
                Err(Error::InvalidModelFile(format!("{name} is {value}")))
            }
            value => Ok(value),
        }
    }

    /// A positive number with a default.
    pub fn positive_or(&self, key: &str, default: f32) -> Result<f32> {
        Ok(self.positive(key)?.unwrap_or(default))
    }

    /// A choice with a default.
    pub fn bool_or(&self, key: &str, default: bool) -> Result<bool> {
        Ok(self.metadata.bool(&self.name(key))?.unwrap_or(default))
    }

    /// A string that may be absent.
    pub fn str(&self, key: &str) -> Result<Option<&'a str>> {
        self.metadata.str(&self.name(key))
    }

    /// The error of a value that this build cannot run.
    pub fn unsupported(&self, what: &str) -> Error {
        Error::UnsupportedModel(format!("{} with {what}", self.architecture))
    }
}
