//! GGUF v2 and v3: the header that describes a model file, read and written. Knows nothing of what
//! keys and tensors mean to a model, and never touches tensor data when reading.

mod header;
mod metadata;
pub mod split;
pub(super) mod tensor;
mod writer;

pub use metadata::{Metadata, MetadataArray, MetadataValue};
pub use tensor::TensorInfo;
pub use writer::{GgufWriter, TensorDataWriter};

use std::collections::HashMap;

use super::ByteSource;
use crate::{Error, Result};

/// First bytes of every GGUF file.
const MAGIC: [u8; 4] = *b"GGUF";
/// Alignment of tensor data where `general.alignment` does not say otherwise.
const DEFAULT_ALIGNMENT_BYTES: u64 = 32;
/// Largest alignment accepted; real files have at most a memory page.
const MAX_ALIGNMENT_BYTES: u32 = 1 << 20;
/// The key that sets the alignment of tensor data.
const ALIGNMENT_KEY: &str = "general.alignment";

/// What the header of a GGUF file says: everything but the tensors' data.
///
/// Invariants after [`Gguf::read`]: names are unique; every tensor's data lies in the file,
/// aligned, apart from every other's, and holds exactly its shape.
#[derive(Debug, Clone)]
pub struct Gguf {
    /// 2 or 3; their layout is the same.
    pub version: u32,
    /// Keys and values in the file's order.
    pub metadata: Metadata,
    /// Tensors in the file's order.
    pub tensors: Vec<TensorInfo>,
    /// Every tensor's data starts at a multiple of this after the header.
    pub alignment_bytes: u64,
    index_of: HashMap<String, usize>,
}

impl Gguf {
    /// Reads the header, in growing chunks, and nothing after it.
    ///
    /// # Errors
    /// [`crate::Error::InvalidModelFile`] for a damaged or hostile file and
    /// [`crate::Error::UnsupportedModel`] for versions and tensor types that this build cannot
    /// run, both naming the offence; what `source` fails with.
    pub async fn read<S: ByteSource>(source: &S) -> Result<Gguf> {
        header::read(source).await
    }

    /// A description of tensors that are not in a file of this form, or not in one alone.
    ///
    /// # Errors
    /// [`Error::InvalidModelFile`] naming a tensor that occurs twice.
    pub(crate) fn of(metadata: Metadata, tensors: Vec<TensorInfo>) -> Result<Gguf> {
        let mut index_of = HashMap::new();
        for (index, tensor) in tensors.iter().enumerate() {
            if index_of.insert(tensor.name.clone(), index).is_some() {
                return Err(Error::InvalidModelFile(format!(
                    "two tensors are named {}",
                    quoted(&tensor.name)
                )));
            }
        }
        Ok(Gguf {
            version: 3,
            alignment_bytes: alignment_bytes(&metadata)?,
            metadata,
            tensors,
            index_of,
        })
    }

    /// The tensor of this name.
    pub fn tensor(&self, name: &str) -> Option<&TensorInfo> {
        self.index_of.get(name).map(|&index| &self.tensors[index])
    }
}

/// The alignment of tensor data that the metadata asks for.
fn alignment_bytes(metadata: &Metadata) -> Result<u64> {
    match metadata.u32(ALIGNMENT_KEY)? {
        None => Ok(DEFAULT_ALIGNMENT_BYTES),
        Some(bytes) if bytes.is_power_of_two() && bytes <= MAX_ALIGNMENT_BYTES => Ok(bytes.into()),
        Some(bytes) => Err(Error::InvalidModelFile(format!(
            "{ALIGNMENT_KEY} is {bytes}, not a power of two up to {MAX_ALIGNMENT_BYTES}"
        ))),
    }
}

/// A name out of a file for messages: escaped and cut, since a hostile file chooses it.
pub(super) fn quoted(name: &str) -> String {
    const MAX_CHARS: usize = 80;
    let mut shown: String = name.chars().take(MAX_CHARS).collect();
    if shown.len() < name.len() {
        shown.push_str("...");
    }
    format!("{shown:?}")
}

#[cfg(test)]
mod hostile_tests;
