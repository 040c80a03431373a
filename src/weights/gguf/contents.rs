//! The contents of the header of a GGUF file, and the constants of the format.

use std::collections::HashMap;

use super::metadata::Metadata;
use crate::{
    Error, Result,
    weights::{quoted::quoted, tensor::TensorInfo},
};

/// First bytes of every GGUF file.
pub(super) const MAGIC: [u8; 4] = *b"GGUF";
/// Alignment of tensor data without `general.alignment`.
const DEFAULT_ALIGNMENT_BYTES: u64 = 32;
/// Largest alignment accepted; real files use at most a memory page.
const MAX_ALIGNMENT_BYTES: u32 = 1 << 20;
/// The key that sets the alignment of tensor data.
pub(super) const ALIGNMENT_KEY: &str = "general.alignment";

/// The header of a GGUF file: everything except the data of the tensors.
///
/// Invariants after [`Gguf::read`]: names are unique; the data of every tensor is inside the file, aligned,
/// apart from all others, and of the size that its shape needs.
#[derive(Debug, Clone)]
pub struct Gguf {
    /// 2 or 3; their layout is the same.
    pub version: u32,
    /// Keys and values in the file's order.
    pub metadata: Metadata,
    /// Tensors in the file's order.
    pub tensors: Vec<TensorInfo>,
    /// The data of every tensor starts at a multiple of this after the header.
    pub alignment_bytes: u64,
    index_of: HashMap<String, usize>,
}

impl Gguf {
    /// A header of version 3. The tensors may be in several files, or in files of another format.
    ///
    /// # Errors
    /// [`Error::InvalidModelFile`] naming a tensor that occurs twice.
    pub(crate) fn new(metadata: Metadata, tensors: Vec<TensorInfo>) -> Result<Gguf> {
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

/// The alignment of tensor data that the metadata specifies.
pub(super) fn alignment_bytes(metadata: &Metadata) -> Result<u64> {
    match metadata.u32(ALIGNMENT_KEY)? {
        None => Ok(DEFAULT_ALIGNMENT_BYTES),
        Some(bytes) if bytes.is_power_of_two() && bytes <= MAX_ALIGNMENT_BYTES => Ok(bytes.into()),
        Some(bytes) => Err(Error::InvalidModelFile(format!(
            "{ALIGNMENT_KEY} is {bytes}, not a power of two up to {MAX_ALIGNMENT_BYTES}"
        ))),
    }
}
