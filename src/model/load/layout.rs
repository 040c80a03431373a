//! How the rows of a file's tensors are laid out for the kernels. Knows no model.

use crate::{
    ops::matrix::{BLOCK_COLS, Format, Matrix, MatrixShape},
    weights::{TensorInfo, TensorType, split_blocks},
};

/// The shape of a whole tensor as a matrix.
pub(super) fn matrix_shape(tensor: &TensorInfo) -> MatrixShape {
    MatrixShape {
        format: format_of(tensor.ty),
        rows: tensor.row_count() as usize,
        cols: tensor.shape[0] as usize,
    }
}

/// The kernels' name of a type.
pub(in crate::model) fn format_of(ty: TensorType) -> Format {
    match ty {
        TensorType::F32 => Format::F32,
        TensorType::F16 => Format::F16,
        TensorType::BF16 => Format::Bf16,
        TensorType::Q8_0 => Format::Q8_0,
        TensorType::Q4_0 => Format::Q4_0,
        TensorType::Q4_1 => Format::Q4_1,
        TensorType::Q5_0 => Format::Q5_0,
        TensorType::Q5_1 => Format::Q5_1,
        TensorType::Q2_K => Format::Q2K,
        TensorType::Q3_K => Format::Q3K,
        TensorType::Q4_K => Format::Q4K,
        TensorType::Q5_K => Format::Q5K,
        TensorType::Q6_K => Format::Q6K,
        TensorType::IQ4_NL => Format::Iq4Nl,
        TensorType::IQ4_XS => Format::Iq4Xs,
        TensorType::MXFP4 => Format::Mxfp4,
    }
}

/// What a tensor takes on a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::model) struct DeviceBytes {
    quants: u64,
    scales: u64,
}

impl DeviceBytes {
    /// As [`MatrixShape`] counts words, but of any tensor that a header describes, on a machine with
    /// addresses of 32 bits too. Vectors are kept as f32.
    pub(in crate::model) fn of(tensor: &TensorInfo) -> DeviceBytes {
        if tensor.shape.len() == 1 {
            return DeviceBytes {
                quants: 4 * tensor.element_count(),
                scales: 0,
            };
        }
        let format = format_of(tensor.ty);
        let blocks = tensor.row_count() * tensor.shape[0].div_ceil(BLOCK_COLS as u64);
        let (bytes, per_blocks) = format.scale_bytes();
        let scales = blocks.div_ceil(per_blocks as u64) * bytes as u64;
        DeviceBytes {
            quants: 4 * blocks * format.block_words() as u64,
            scales: scales.next_multiple_of(4).max(4),
        }
    }

    /// The larger of its buffers.
    pub(in crate::model) fn largest(self) -> u64 {
        self.quants.max(self.scales)
    }

    /// All of its buffers.
    pub(in crate::model) fn sum(self) -> u64 {
        self.quants + self.scales
    }
}

/// Lays rows of a file out for the kernels, a part at a time.
pub(in crate::model) struct Layout {
    shape: MatrixShape,
    quants_at: usize,
    scales_at: usize,
    /// Scales that do not fill a word yet wait for the next rows.
    scales: Vec<u8>,
}

/// Words of a matrix and where they belong.
pub(in crate::model) struct Part {
    quants_at: usize,
    quants: Vec<u32>,
    scales_at: usize,
    scales: Vec<u32>,
}

impl Part {
    /// Writes them there.
    pub(in crate::model) fn write(self, matrix: Matrix) -> Matrix {
        matrix.write(self.quants_at, self.quants, self.scales_at, self.scales)
    }
}

impl Layout {
    /// Nothing yet.
    pub(in crate::model) fn new(shape: MatrixShape) -> Self {
        Self {
            shape,
            quants_at: 0,
            scales_at: 0,
            scales: Vec::new(),
        }
    }

    /// The next rows; unquantized ones are padded with zeros to whole blocks.
    pub(in crate::model) fn add(&mut self, ty: TensorType, bytes: &[u8]) -> Part {
        let shape = self.shape;
        let mut quants = Vec::new();
        if shape.cols.is_multiple_of(BLOCK_COLS) {
            split_blocks(ty, bytes, &mut quants, &mut self.scales);
        } else {
            let padded = shape.row_blocks() * shape.format.block_words() * 4;
            for row in bytes.chunks_exact(ty.block_bytes() * shape.cols / ty.block_len()) {
                quants.extend_from_slice(row);
                quants.resize(quants.len().next_multiple_of(padded), 0);
            }
        }
        self.part(&quants)
    }

    /// What is left after the last rows.
    pub(super) fn rest(mut self) -> Part {
        let whole = self.scales.len().next_multiple_of(4);
        self.scales.resize(whole, 0);
        self.part(&[])
    }

    fn part(&mut self, quants: &[u8]) -> Part {
        let whole = self.scales.len() / 4 * 4;
        let part = Part {
            quants_at: self.quants_at,
            quants: words(quants),
            scales_at: self.scales_at,
            scales: words(&self.scales[..whole]),
        };
        self.scales.drain(..whole);
        self.quants_at += part.quants.len();
        self.scales_at += part.scales.len();
        part
    }
}

/// Whole words of little-endian bytes.
fn words(bytes: &[u8]) -> Vec<u32> {
    let words = bytes.as_chunks().0.iter();
    words.map(|&word| u32::from_le_bytes(word)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::weights::blocks::vectors;

    #[test]
    fn bytes_on_a_device_are_those_of_the_matrix() {
        for &ty in TensorType::ALL {
            for (cols, rows) in [(256, 1), (256, 7), (768, 3), (36, 5), (4, 1)] {
                if cols % ty.block_len() != 0 {
                    continue;
                }
                let tensor = TensorInfo {
                    name: "w".into(),
                    shape: vec![cols as u64, rows],
                    ty,
                    offset_bytes: 0,
                    size_bytes: rows * (cols / ty.block_len() * ty.block_bytes()) as u64,
                };
                let shape = matrix_shape(&tensor);
                let expected = DeviceBytes {
                    quants: 4 * shape.quant_words() as u64,
                    scales: 4 * shape.scale_words() as u64,
                };
                assert_eq!(DeviceBytes::of(&tensor), expected, "{ty} {cols} x {rows}");
            }
        }
    }

    /// What the kernels see of a file's blocks is what the file means by them, however few blocks come
    /// at a time.
    #[test]
    fn every_type_decodes_the_same_from_the_kernels_layout() {
        for vectors in vectors::decoded() {
            let ty = vectors.ty;
            let format = format_of(ty);
            assert_eq!(format.name(), ty.name().to_lowercase());
            let shape = MatrixShape {
                format,
                rows: vectors.values.len() / ty.block_len(),
                cols: ty.block_len(),
            };
            for rows in 1..=shape.rows {
                let mut layout = Layout::new(shape);
                let parts = vectors.bytes.chunks(rows * ty.block_bytes());
                let mut parts: Vec<Part> = parts.map(|bytes| layout.add(ty, bytes)).collect();
                parts.push(layout.rest());
                let (mut quants, mut scales) = (Vec::new(), Vec::new());
                for part in parts {
                    assert_eq!(
                        (part.quants_at, part.scales_at),
                        (quants.len(), scales.len())
                    );
                    quants.extend(part.quants);
                    scales.extend(part.scales);
                }
                assert_eq!(quants.len(), shape.quant_words(), "{ty}");
                assert_eq!(scales.len(), shape.scale_words(), "{ty}");
                let blocks = 0..shape.rows * shape.row_blocks();
                let decoded: Vec<f32> = blocks
                    .flat_map(|block| format.decode(&quants, &scales, block))
                    .collect();
                assert_eq!(decoded, vectors.values, "{ty}, {rows} rows at a time");
            }
        }
    }
}
