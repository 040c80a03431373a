//! One tensor's entry in a GGUF header and the rules that it must keep. Knows nothing of how
//! entries are encoded.

use super::quoted;
use crate::weights::TensorType;
use crate::{Error, Result};

/// Most dimensions a tensor can have in GGUF.
pub(super) const MAX_DIMS: usize = 4;

/// Where a tensor is in the file and what it holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TensorInfo {
    /// The checkpoint's name: `blk.0.attn_q.weight`.
    pub name: String,
    /// One to four dimensions, none of them zero. GGUF order: `shape[0]` is contiguous.
    pub shape: Vec<u64>,
    /// The type of its blocks; `shape[0]` is a multiple of the block's length.
    pub ty: TensorType,
    /// Start of its data, from the start of the file.
    pub offset_bytes: u64,
    /// Size of its data.
    pub size_bytes: u64,
}

impl TensorInfo {
    /// Number of elements.
    pub fn element_count(&self) -> u64 {
        self.shape.iter().product()
    }

    /// Number of contiguous rows of `shape[0]` elements.
    pub fn row_count(&self) -> u64 {
        self.shape[1..].iter().product()
    }

    /// Size of one row of `shape[0]` elements.
    pub fn row_bytes(&self) -> u64 {
        self.size_bytes / self.row_count()
    }
}

/// The size of a tensor of this shape, or what is wrong with the shape.
pub(in crate::weights) fn checked_size_bytes(
    name: &str,
    shape: &[u64],
    ty: TensorType,
) -> Result<u64> {
    let invalid = |what: String| {
        Error::InvalidModelFile(format!("tensor {} of shape {shape:?} {what}", quoted(name)))
    };
    if shape.is_empty() || shape.len() > MAX_DIMS {
        return Err(invalid(format!(
            "has {} dimensions, not 1 to {MAX_DIMS}",
            shape.len()
        )));
    }
    if shape.contains(&0) {
        return Err(invalid("has a dimension of zero".into()));
    }
    let block_len = ty.block_len() as u64;
    if !shape[0].is_multiple_of(block_len) {
        return Err(invalid(format!(
            "has type {ty}, but rows of {} elements are not whole blocks of {block_len}",
            shape[0]
        )));
    }
    shape
        .iter()
        .try_fold(1u64, |product, &dim| product.checked_mul(dim))
        .and_then(|elements| (elements / block_len).checked_mul(ty.block_bytes() as u64))
        .ok_or_else(|| invalid("is larger than 2^64 bytes".into()))
}

/// Checks that no two tensors share bytes: their names, where they start, and their sizes.
pub(in crate::weights) fn check_apart<'a>(
    tensors: impl Iterator<Item = (&'a str, u64, u64)>,
) -> Result<()> {
    let mut by_offset: Vec<_> = tensors.collect();
    by_offset.sort_by_key(|&(_, offset_bytes, _)| offset_bytes);
    for pair in by_offset.windows(2) {
        let [(name, offset_bytes, size_bytes), next] = [pair[0], pair[1]];
        // Data ends inside the file: no overflow.
        if offset_bytes + size_bytes > next.1 {
            return Err(Error::InvalidModelFile(format!(
                "tensors {} and {} overlap: {size_bytes} bytes from {offset_bytes} on, {} bytes from {} on",
                quoted(name),
                quoted(next.0),
                next.2,
                next.1,
            )));
        }
    }
    Ok(())
}
