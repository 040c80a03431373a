//! The description of one tensor in the header of a model file, and the checks of shapes and ranges that all containers
//! share.

use super::{quoted::quoted, source::ByteSource};
use crate::{Error, Result, tensor_types::TensorType};

/// The maximum number of dimensions that a tensor can have in GGUF.
pub(super) const MAX_DIMS: usize = 4;

/// The position of a tensor in the file and its contents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TensorInfo {
    /// The checkpoint's name: `blk.0.attn_q.weight`.
    pub name: String,
    /// One to four dimensions, none of them zero. GGUF order: `shape[0]` is contiguous.
    pub shape: Vec<u64>,
    /// The type of its elements; `shape[0]` is a multiple of the length of a file block.
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

    /// All elements as f32.
    ///
    /// # Errors
    /// Errors of `source`.
    pub async fn read_f32<S: ByteSource>(&self, source: &S) -> Result<Vec<f32>> {
        let bytes = source.read_vec(self.offset_bytes, self.size_bytes).await?;
        let mut values = vec![0.0; self.element_count() as usize];
        self.ty.dequantize(&bytes, &mut values);
        Ok(values)
    }
}

/// The size in bytes of a tensor of this shape.
///
/// # Errors
/// [`Error::InvalidModelFile`] for a shape that no tensor of the type can have.
pub(super) fn checked_size_bytes(name: &str, shape: &[u64], ty: TensorType) -> Result<u64> {
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

/// Checks that no two tensors overlap. Each tensor is (name, offset, size in bytes); all end inside the file.
pub(super) fn check_apart<'a>(tensors: impl Iterator<Item = (&'a str, u64, u64)>) -> Result<()> {
    let mut by_offset: Vec<_> = tensors.collect();
    by_offset.sort_by_key(|&(_, offset_bytes, _)| offset_bytes);
    for pair in by_offset.windows(2) {
        let [(name, offset_bytes, size_bytes), next] = [pair[0], pair[1]];
        // No overflow: the data ends inside the file.
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
