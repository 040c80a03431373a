//! Repacks the rows of tensors for the kernels, and computes the memory that they take on a device.

use crate::{
    ops::matrix::{Layout, Matrix, MatrixShape},
    tensor_types::{BLOCK_COLS, PANEL_ROWS},
    weights::TensorInfo,
};

/// The shape of a whole tensor as a matrix.
pub(super) fn matrix_shape(tensor: &TensorInfo) -> MatrixShape {
    MatrixShape {
        ty: tensor.ty,
        rows: tensor.row_count() as usize,
        cols: tensor.shape[0] as usize,
    }
}

/// The memory that a tensor takes on a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::model) struct DeviceBytes {
    quants: u64,
    scales: u64,
}

impl DeviceBytes {
    /// The sizes of [`MatrixShape`] in bytes, for any tensor that a header may describe: in u64, because the
    /// tensor may be larger than the address space of wasm32. Vectors are converted to f32.
    pub(in crate::model) fn of(tensor: &TensorInfo) -> DeviceBytes {
        if tensor.shape.len() == 1 || is_kept_as_vector(tensor) {
            return DeviceBytes {
                quants: 4 * tensor.element_count(),
                scales: 0,
            };
        }
        let blocks = tensor.row_count() * tensor.shape[0].div_ceil(BLOCK_COLS as u64);
        let (bytes, per_blocks) = tensor.ty.scale_bytes();
        let factors = match tensor.ty.has_row_factors() {
            true => 4 * tensor.row_count(),
            false => 0,
        };
        let scales = blocks.div_ceil(per_blocks as u64) * bytes as u64 + factors;
        DeviceBytes {
            quants: 4 * blocks * tensor.ty.kernel_block_words() as u64,
            scales: scales.next_multiple_of(4).max(4),
        }
    }

    /// Size of the larger buffer.
    pub(in crate::model) fn largest(self) -> u64 {
        self.quants.max(self.scales)
    }

    /// Size of all buffers.
    pub(in crate::model) fn sum(self) -> u64 {
        self.quants + self.scales
    }
}

/// Whether a tensor of several dimensions holds the taps of a convolution, or a number per head.
fn is_kept_as_vector(tensor: &TensorInfo) -> bool {
    let parts = ["conv1d.weight", "shortconv.conv.weight", "ssm_a", "ssm_d"];
    parts.iter().any(|part| tensor.name.ends_with(part))
}

/// Repacks the rows of a matrix for the kernels, some rows at a time.
pub(in crate::model) struct RowRepacker {
    shape: MatrixShape,
    layout: Layout,
    /// Rows that do not fill a panel yet, as in the file.
    rows: Vec<u8>,
    quants_at: usize,
    scales_at: usize,
    /// Scales that do not fill a word yet. They are completed by the next rows.
    scales: Vec<u8>,
    /// The factors of the rows that follow, in types that have some; ones beyond the last.
    factors: std::vec::IntoIter<f32>,
}

/// Words of a matrix, and their positions in its buffers.
pub(in crate::model) struct MatrixWords {
    quants_at: usize,
    quants: Vec<u32>,
    scales_at: usize,
    scales: Vec<u32>,
}

impl MatrixWords {
    /// Writes the words to `matrix`.
    pub(in crate::model) fn write(self, matrix: Matrix) -> Matrix {
        matrix.write(self.quants_at, self.quants, self.scales_at, self.scales)
    }
}

impl RowRepacker {
    /// Starts at the first row.
    pub(in crate::model) fn new(shape: MatrixShape, layout: Layout) -> Self {
        Self {
            shape,
            layout,
            rows: Vec::new(),
            quants_at: 0,
            scales_at: 0,
            scales: Vec::new(),
            factors: Vec::new().into_iter(),
        }
    }

    /// Sets the factors of all rows, for a type that has some.
    pub(super) fn with_factors(self, factors: Vec<f32>) -> Self {
        Self {
            factors: factors.into_iter(),
            ..self
        }
    }

    /// Repacks the next rows, given as in the file. Rows of plain floats are padded with zeros to whole kernel blocks.
    pub(in crate::model) fn add(&mut self, bytes: &[u8]) -> MatrixWords {
        let shape = self.shape;
        let mut quants = Vec::new();
        if self.layout == Layout::Panels {
            return self.add_panels(bytes);
        }
        if shape.ty.has_row_factors() {
            for row in bytes.chunks_exact(self.row_bytes()) {
                let factor = self.factors.next().unwrap_or(1.0);
                self.scales.extend(factor.to_le_bytes());
                shape.ty.repack(row, &mut quants, &mut self.scales);
            }
        } else if shape.cols.is_multiple_of(BLOCK_COLS) {
            shape.ty.repack(bytes, &mut quants, &mut self.scales);
        } else {
            let padded = shape.row_blocks() * shape.ty.kernel_block_words() * 4;
            for row in bytes.chunks_exact(self.row_bytes()) {
                quants.extend_from_slice(row);
                quants.resize(quants.len().next_multiple_of(padded), 0);
            }
        }
        self.take_words(&quants)
    }

    /// The words that are left after the last rows.
    pub(in crate::model) fn finish(mut self) -> MatrixWords {
        if self.layout == Layout::Panels {
            let rows = std::mem::take(&mut self.rows);
            return self.pack(&rows);
        }
        let whole = self.scales.len().next_multiple_of(4);
        self.scales.resize(whole, 0);
        self.take_words(&[])
    }

    /// Packs all whole panels of the rows so far.
    fn add_panels(&mut self, bytes: &[u8]) -> MatrixWords {
        let panel_bytes = PANEL_ROWS * self.row_bytes();
        if self.rows.is_empty() && bytes.len().is_multiple_of(panel_bytes) {
            return self.pack(bytes);
        }
        let mut rows = std::mem::take(&mut self.rows);
        rows.extend_from_slice(bytes);
        let whole = rows.len() / panel_bytes * panel_bytes;
        self.rows = rows.split_off(whole);
        self.pack(&rows)
    }

    /// Panels of rows; the last panel may have fewer than eight.
    fn pack(&mut self, rows: &[u8]) -> MatrixWords {
        let ty = self.shape.ty;
        let panel_rows = rows.chunks(PANEL_ROWS * self.row_bytes());
        let panel_words = ty.panel_bytes(self.shape.cols) / 4;
        let mut words = vec![0u32; panel_rows.len() * panel_words];
        for (rows, panel) in panel_rows.zip(words.chunks_exact_mut(panel_words)) {
            ty.pack(self.shape.cols, rows, bytemuck::cast_slice_mut(panel));
        }
        let (quants_at, scales_at) = (self.quants_at, self.scales_at);
        self.quants_at += words.len();
        let count = match ty.has_row_factors() {
            true => rows.len() / self.row_bytes(),
            false => 0,
        };
        self.scales_at += count;
        let factors = self.factors.by_ref().chain(std::iter::repeat(1.0));
        MatrixWords {
            quants_at,
            quants: words,
            scales_at,
            scales: factors.take(count).map(f32::to_bits).collect(),
        }
    }

    /// Bytes of a row in the file.
    fn row_bytes(&self) -> usize {
        self.shape.cols / self.shape.ty.block_len() * self.shape.ty.block_bytes()
    }

    fn take_words(&mut self, quants: &[u8]) -> MatrixWords {
        let whole = self.scales.len() / 4 * 4;
        let taken = MatrixWords {
            quants_at: self.quants_at,
            quants: words(quants),
            scales_at: self.scales_at,
            scales: words(&self.scales[..whole]),
        };
        self.scales.drain(..whole);
        self.quants_at += taken.quants.len();
        self.scales_at += taken.scales.len();
        taken
    }
}

/// Little-endian bytes as words.
fn words(bytes: &[u8]) -> Vec<u32> {
    let words = bytes.as_chunks().0.iter();
    words.map(|&word| u32::from_le_bytes(word)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tensor_types::{TensorType, vectors};

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

    /// The words decode to the values of the file's blocks, for every number of rows at a time.
    #[test]
    fn every_type_decodes_the_same_from_the_layout_of_the_kernels() {
        for vectors in vectors::decoded() {
            let ty = vectors.ty;
            let shape = MatrixShape {
                ty,
                rows: vectors.values.len() / ty.block_len(),
                cols: ty.block_len(),
            };
            for rows in 1..=shape.rows {
                let mut repacker = RowRepacker::new(shape, Layout::Blocks);
                let parts = vectors.bytes.chunks(rows * ty.block_bytes());
                let mut parts: Vec<MatrixWords> = parts.map(|bytes| repacker.add(bytes)).collect();
                parts.push(repacker.finish());
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
                    .flat_map(|block| shape.decode_block(&quants, &scales, block))
                    .collect();
                assert_eq!(decoded, vectors.values, "{ty}, {rows} rows at a time");
            }
        }
    }
}
