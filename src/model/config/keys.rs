//! Typed access to the metadata keys of one architecture, with checks of their ranges. The callers decide
//! which keys to read.

use crate::{
    Error, Result,
    weights::{Metadata, MetadataValue},
};

/// The metadata keys `ARCHITECTURE.key` of one architecture.
#[derive(Debug, Clone, Copy)]
pub struct Keys<'a> {
    metadata: &'a Metadata,
    architecture: &'a str,
}

/// The error for a file that lacks `what`.
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

    /// All metadata of the file.
    pub fn metadata(&self) -> &'a Metadata {
        self.metadata
    }

    /// `general.architecture`.
    pub fn architecture(&self) -> &'a str {
        self.architecture
    }

    /// The full name of a key.
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

    /// An optional size.
    pub fn size_if(&self, key: &str) -> Result<Option<usize>> {
        let name = self.name(key);
        match self.metadata.usize(&name)? {
            Some(value) if !(1..=1 << 24).contains(&value) => {
                Err(Error::InvalidModelFile(format!("{name} is {value}")))
            }
            value => Ok(value),
        }
    }

    /// An optional size. Zero counts as absent.
    pub fn size_or_zero(&self, key: &str) -> Result<Option<usize>> {
        match self.metadata.usize(&self.name(key))? {
            Some(0) => Ok(None),
            _ => self.size_if(key),
        }
    }

    /// The largest entry of a size per layer, of which some may be 0, or a size of all layers.
    pub fn largest_or(&self, key: &str, default: usize) -> Result<usize> {
        let name = self.name(key);
        match self.metadata.get(&name) {
            Some(MetadataValue::Array(_)) => {
                let sizes = self.metadata.sizes(&name)?.unwrap_or_default();
                match sizes.into_iter().max() {
                    Some(size) if (1..=1 << 24).contains(&size) => Ok(size),
                    _ => Err(Error::InvalidModelFile(format!("{name} has no size"))),
                }
            }
            _ => self.size_or(key, default),
        }
    }

    /// An optional positive number.
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

    /// An optional boolean.
    pub fn bool(&self, key: &str) -> Result<Option<bool>> {
        self.metadata.bool(&self.name(key))
    }

    /// An optional list of booleans, one per layer.
    pub fn layer_flags(&self, key: &str, layers: usize) -> Result<Option<&'a [bool]>> {
        let name = self.name(key);
        match self.metadata.bools(&name)? {
            Some(flags) if flags.len() != layers => Err(Error::InvalidModelFile(format!(
                "{name} has {} entries for {layers} layers",
                flags.len()
            ))),
            flags => Ok(flags),
        }
    }

    /// Optional sizes, one per layer, which may be 0; a single one is that of all.
    pub fn layer_sizes(&self, key: &str, layers: usize) -> Result<Option<Vec<usize>>> {
        let name = self.name(key);
        if !matches!(self.metadata.get(&name), Some(MetadataValue::Array(_))) {
            return Ok(self.size_if(key)?.map(|size| vec![size; layers]));
        }
        let sizes = self.metadata.sizes(&name)?.unwrap_or_default();
        if sizes.len() != layers {
            return Err(Error::InvalidModelFile(format!(
                "{name} has {} entries for {layers} layers",
                sizes.len()
            )));
        }
        match sizes.iter().all(|size| *size <= 1 << 24) {
            true => Ok(Some(sizes)),
            false => Err(Error::InvalidModelFile(format!("{name} is {sizes:?}"))),
        }
    }

    /// An optional string.
    pub fn str(&self, key: &str) -> Result<Option<&'a str>> {
        self.metadata.str(&self.name(key))
    }

    /// The error for a value that this build does not support.
    pub fn unsupported(&self, what: &str) -> Error {
        Error::UnsupportedModel(format!("{} with {what}", self.architecture))
    }
}
