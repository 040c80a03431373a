//! Matrices of three levels as BitNet's checkpoints hold them: four rows in each row of bytes, and one scale.

use super::{safetensors::StoredTensor, source::ByteSource, tensor::TensorInfo};
use crate::{Error, Result, tensor_types::TensorType};

/// Rows in a row of bytes. Each is a quarter of the matrix away from the next.
const ROWS: u64 = 4;
/// Elements of a block of TQ2_0.
const BLOCK: usize = 256;

/// A matrix of -1, 0 and 1, times a scale.
#[derive(Debug, Clone)]
pub struct Ternary {
    /// `[rows / 4, cols]` bytes, outermost first: a level plus one in two bits, the first quarter of the rows lowest.
    levels: StoredTensor,
    scale: TensorInfo,
    /// Whether the stored number is the reciprocal of the scale.
    is_reciprocal: bool,
    shape: [u64; 2],
}

impl Ternary {
    /// # Errors
    /// [`Error::InvalidModelFile`] if the tensors are not such a matrix and its scale.
    pub fn new(levels: StoredTensor, scale: TensorInfo, is_reciprocal: bool) -> Result<Ternary> {
        match (&*levels.dtype, &levels.shape[..], scale.element_count()) {
            ("U8", &[cols, rows], 1) if cols > 0 && rows > 0 => Ok(Ternary {
                shape: [cols, rows.saturating_mul(ROWS)],
                levels,
                scale,
                is_reciprocal,
            }),
            (dtype, shape, _) => Err(Error::InvalidModelFile(format!(
                "tensor {} is no matrix of three levels with one scale: {dtype} {shape:?} and {:?}",
                levels.name, scale.shape
            ))),
        }
    }

    /// Shape in GGUF order.
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// The type that has its levels: floats for rows that are no whole blocks.
    pub fn ty(&self) -> TensorType {
        match self.shape[0].is_multiple_of(BLOCK as u64) {
            true => TensorType::TQ2_0,
            false => TensorType::F16,
        }
    }

    /// Rows as type [`ty`](Self::ty).
    pub async fn read<S: ByteSource>(&self, source: &S, first: u64, rows: u64) -> Result<Vec<u8>> {
        let scale = self.scale.read_f32(source).await?[0];
        let scale = if self.is_reciprocal {
            scale.recip()
        } else {
            scale
        };
        let [cols, all] = self.shape;
        let quarter = all / ROWS;
        let mut bytes = Vec::new();
        let mut row = first;
        while row < first + rows {
            let (part, within) = (row / quarter, row % quarter);
            let count = (quarter - within).min(first + rows - row);
            let at = self.levels.offset_bytes + within * cols;
            let levels = source.read_vec(at, count * cols).await?;
            let levels: Vec<u8> = levels.iter().map(|it| it >> (2 * part) & 3).collect();
            match self.ty() {
                TensorType::TQ2_0 => levels
                    .as_chunks::<BLOCK>()
                    .0
                    .iter()
                    .for_each(|block| push_block(block, scale, &mut bytes)),
                ty => {
                    let values = levels.iter().map(|it| (f32::from(*it) - 1.0) * scale);
                    bytes.extend(ty.quantize(&values.collect::<Vec<_>>()));
                }
            }
            row += count;
        }
        Ok(bytes)
    }
}

/// A block of TQ2_0: for each half 32 bytes, which have an element of each of four runs; the scale.
fn push_block(levels: &[u8; BLOCK], scale: f32, bytes: &mut Vec<u8>) {
    for half in levels.as_chunks::<{ BLOCK / 2 }>().0 {
        let runs = half.as_chunks::<32>().0;
        bytes.extend((0..32).map(|i| {
            let bits = runs.iter().zip([0, 2, 4, 6]);
            bits.fold(0, |byte, (run, shift)| byte | run[i] << shift)
        }));
    }
    bytes.extend(TensorType::F16.quantize(&[scale]));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::weights::BytesSource;
    use pollster::block_on;

    fn matrix(cols: u64, is_reciprocal: bool) -> (Ternary, BytesSource<Vec<u8>>) {
        let levels = StoredTensor {
            name: "x".into(),
            shape: vec![cols, 2],
            dtype: "U8".into(),
            offset_bytes: 0,
            size_bytes: 2 * cols,
        };
        let scale = TensorInfo {
            name: "s".into(),
            shape: vec![1],
            ty: TensorType::F32,
            offset_bytes: 2 * cols,
            size_bytes: 4,
        };
        // Levels 0 to 2 in each pair of bits.
        let bytes = (0..2 * cols).map(|i| {
            let level = |part: u64| ((i * 7 + part * (i / 3)) % 3) as u8;
            (0..4).fold(0, |byte, part| byte | level(part) << (2 * part))
        });
        let bytes: Vec<u8> = bytes.chain(0.25f32.to_le_bytes()).collect();
        let made = Ternary::new(levels, scale, is_reciprocal).unwrap();
        (made, BytesSource(bytes))
    }

    #[test]
    fn rows_are_quarters_apart_and_keep_their_levels() {
        for (cols, is_reciprocal, scale) in [(256u64, false, 0.25), (40, true, 4.0)] {
            let (ternary, source) = matrix(cols, is_reciprocal);
            assert_eq!(ternary.shape(), [cols, 8]);
            let bytes = block_on(ternary.read(&source, 1, 6)).unwrap();
            let mut values = vec![0.0; 6 * cols as usize];
            ternary.ty().dequantize(&bytes, &mut values);
            for (at, value) in (cols..).zip(values) {
                let (row, col) = (at / cols, at % cols);
                let byte = source.0[(row % 2 * cols + col) as usize];
                let level = byte >> (2 * (row / 2)) & 3;
                assert_eq!(value, (f32::from(level) - 1.0) * scale, "{row}, {col}");
            }
        }
    }

    #[test]
    fn other_tensors_are_refused() {
        let (ternary, _) = matrix(256, false);
        let scales = TensorInfo {
            shape: vec![2],
            ..ternary.scale.clone()
        };
        let floats = StoredTensor {
            dtype: "F16".into(),
            ..ternary.levels.clone()
        };
        for made in [
            Ternary::new(ternary.levels.clone(), scales, false),
            Ternary::new(floats, ternary.scale.clone(), false),
        ] {
            assert!(made.unwrap_err().to_string().contains("three levels"));
        }
    }
}
