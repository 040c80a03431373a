//! Matrices of NVFP4 as checkpoints have them: levels in one tensor and the scales of groups in another. Which tensors of a
//! checkpoint are such a matrix is decided in `model`, and so is the factor of the whole matrix.

use super::{safetensors::StoredTensor, source::ByteSource};
use crate::{Error, Result};

/// Elements of a block of GGUF files.
const LEN: u64 = 64;
/// Elements that share a scale.
const GROUP: u64 = 16;
/// Bytes of the levels of a group.
const GROUP_BYTES: usize = GROUP as usize / 2;

/// The rows of a matrix of 4-bit floats. Each group of 16 elements has an 8-bit float (E4M3) as a scale.
#[derive(Debug, Clone)]
pub struct Nvfp4 {
    /// Bytes of two neighboring elements, the first in the lower half.
    levels: StoredTensor,
    scales: StoredTensor,
}

impl Nvfp4 {
    /// # Errors
    /// [`Error::InvalidModelFile`] if the tensors do not fit each other, or rows are no whole blocks of GGUF files.
    pub fn new(levels: StoredTensor, scales: StoredTensor) -> Result<Nvfp4> {
        let fits = match (&levels.shape[..], &scales.shape[..]) {
            ([bytes, rows], [groups, of_rows]) => {
                rows == of_rows
                    && groups.checked_mul(GROUP / 2) == Some(*bytes)
                    && groups.is_multiple_of(LEN / GROUP)
                    && (*groups > 0 && *rows > 0)
            }
            _ => false,
        };
        if !(fits && levels.dtype == "U8" && scales.dtype == "F8_E4M3") {
            return Err(Error::InvalidModelFile(format!(
                "tensors {} and {} are no NVFP4 matrix: {} {:?} and {} {:?}",
                levels.name, scales.name, levels.dtype, levels.shape, scales.dtype, scales.shape
            )));
        }
        Ok(Nvfp4 { levels, scales })
    }

    /// Shape in GGUF order.
    pub fn shape(&self) -> [u64; 2] {
        [2 * self.levels.shape[0], self.levels.shape[1]]
    }

    /// Rows as NVFP4 blocks of GGUF files: the scales of four groups, then for each group elements i and i + 8 in a byte.
    pub async fn read<S: ByteSource>(&self, source: &S, first: u64, rows: u64) -> Result<Vec<u8>> {
        let [row_bytes, row_groups] = [self.levels.shape[0], self.scales.shape[0]];
        let at = self.levels.offset_bytes + first * row_bytes;
        let levels = source.read_vec(at, rows * row_bytes).await?;
        let at = self.scales.offset_bytes + first * row_groups;
        let scales = source.read_vec(at, rows * row_groups).await?;
        let mut bytes = Vec::with_capacity(levels.len() + scales.len());
        let groups = levels.as_chunks::<GROUP_BYTES>().0;
        let per_block = (LEN / GROUP) as usize;
        for (scales, groups) in scales.chunks(per_block).zip(groups.chunks(per_block)) {
            bytes.extend(scales);
            for group in groups {
                let level = |i: usize| group[i / 2] >> (i % 2 * 4) & 15;
                bytes.extend((0..GROUP_BYTES).map(|i| level(i) | level(i + GROUP_BYTES) << 4));
            }
        }
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{tensor_types::TensorType, weights::BytesSource};
    use pollster::block_on;

    fn stored(dtype: &str, shape: [u64; 2], offset_bytes: u64) -> StoredTensor {
        StoredTensor {
            name: "x".into(),
            shape: shape.to_vec(),
            dtype: dtype.into(),
            offset_bytes,
            size_bytes: shape.iter().product(),
        }
    }

    #[test]
    fn rows_become_blocks_of_the_same_values() {
        // Three rows of two blocks.
        let levels: Vec<u8> = (0..3 * 64).map(|i| (i * 37 % 251) as u8).collect();
        let scales: Vec<u8> = (0..3 * 8).map(|i| 0x20 + 3 * i).collect();
        let source = BytesSource([&levels[..], &scales].concat());
        let levels_of = || stored("U8", [64, 3], 0);
        let matrix = Nvfp4::new(levels_of(), stored("F8_E4M3", [8, 3], 192)).unwrap();
        assert_eq!(matrix.shape(), [128, 3]);
        let blocks = block_on(matrix.read(&source, 1, 2)).unwrap();
        let mut values = vec![0.0; 256];
        TensorType::NVFP4.dequantize(&blocks, &mut values);
        let floats = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0];
        for (i, value) in values.iter().enumerate() {
            let element = 128 + i;
            let level = levels[element / 2] >> (element % 2 * 4) & 15;
            let sign = if level < 8 { 1.0 } else { -1.0 };
            let scale = scales[element / 16];
            let size = (1.0 + f32::from(scale & 7) / 8.0) * f32::from(scale >> 3).exp2() / 128.0;
            assert_eq!(
                *value,
                sign * floats[usize::from(level & 7)] * size,
                "{element}"
            );
        }
        for scales in [
            stored("F8_E4M3", [8, 2], 192),
            stored("F8_E4M3", [4, 3], 192),
            stored("U8", [8, 3], 192),
        ] {
            let error = Nvfp4::new(levels_of(), scales).unwrap_err().to_string();
            assert!(error.contains("no NVFP4 matrix"), "{error}");
        }
    }
}
