//! Matrices of eight or four bits with scales in a tensor beside them: 8-bit floats, and blocks of MXFP4. Which tensors of a
//! checkpoint are such a matrix is decided in `model`.

use std::array::from_fn;

use super::{encode::encode, safetensors::StoredTensor, source::ByteSource, tensor::TensorInfo};
use crate::{Error, Result, tensor_types::TensorType};

/// Bytes of a file block of MXFP4: the exponent, then 32 levels.
const MXFP4_BYTES: usize = 17;
/// Bytes of the levels of a block.
const LEVEL_BYTES: usize = 16;

/// A matrix of 8-bit floats (E4M3). Each scale is the factor of a rectangle of elements.
#[derive(Debug, Clone)]
pub struct Fp8 {
    levels: StoredTensor,
    scales: TensorInfo,
    /// Columns and rows of a rectangle.
    rectangle: [u64; 2],
}

/// Rows of MXFP4 blocks, with their exponents in another tensor.
#[derive(Debug, Clone)]
pub struct Mxfp4 {
    /// `[rows, blocks, 16]` bytes, outermost first: neighboring elements in a byte, the first in the lower half.
    blocks: StoredTensor,
    /// `[rows, blocks]` bytes.
    exponents: StoredTensor,
    /// Every second row from this one on; all if `None`.
    every_second: Option<u64>,
}

impl Fp8 {
    /// `rectangle` is that of scales which are neither one for the matrix nor one for each row.
    ///
    /// # Errors
    /// [`Error::InvalidModelFile`] if the scales do not fit the matrix.
    pub fn new(
        levels: StoredTensor,
        scales: TensorInfo,
        rectangle: Option<[u64; 2]>,
    ) -> Result<Fp8> {
        let misfit = || {
            Error::InvalidModelFile(format!(
                "tensor {} of shape {:?} has scales of shape {:?}",
                levels.name, levels.shape, scales.shape
            ))
        };
        let [cols, rows] = levels.shape[..] else {
            return Err(misfit());
        };
        if cols == 0 || rows == 0 {
            return Err(misfit());
        }
        let found = match scales.shape[..] {
            [1] | [1, 1] => [cols, rows],
            [count] | [1, count] if count == rows => [cols, 1],
            _ => rectangle.filter(|it| !it.contains(&0)).ok_or_else(misfit)?,
        };
        // A stated rectangle may be larger than the matrix, and than addresses.
        let rectangle = [found[0].min(cols), found[1].min(rows)];
        let grid = [cols.div_ceil(rectangle[0]), rows.div_ceil(rectangle[1])];
        // A grid of one column may be a list.
        if scales.shape != grid && (grid[0] != 1 || scales.shape != grid[1..]) {
            return Err(misfit());
        }
        Ok(Fp8 {
            levels,
            scales,
            rectangle,
        })
    }

    /// Shape in GGUF order.
    pub fn shape(&self) -> &[u64] {
        &self.levels.shape
    }

    /// Rows as type `ty`.
    ///
    /// # Errors
    /// [`Error::UnsupportedModel`] if a value is beyond the range of `ty`; errors of `source`.
    pub async fn read<S: ByteSource>(
        &self,
        source: &S,
        first: u64,
        rows: u64,
        ty: TensorType,
    ) -> Result<Vec<u8>> {
        let cols = self.levels.shape[0];
        let at = self.levels.offset_bytes + first * cols;
        let levels = source.read_vec(at, rows * cols).await?;
        let [width, height] = self.rectangle;
        let grid_cols = cols.div_ceil(width);
        let grid_rows = first / height..(first + rows - 1) / height + 1;
        let scales = TensorInfo {
            name: String::new(),
            shape: vec![grid_cols, grid_rows.end - grid_rows.start],
            ty: self.scales.ty,
            offset_bytes: self.scales.offset_bytes
                + grid_rows.start * grid_cols * self.scales.ty.block_bytes() as u64,
            size_bytes: (grid_rows.end - grid_rows.start)
                * grid_cols
                * self.scales.ty.block_bytes() as u64,
        };
        let scales = scales.read_f32(source).await?;
        let values: [f32; 256] = from_fn(|level| e4m3(level as u8));
        let mut floats = Vec::with_capacity(levels.len());
        for (row, levels) in (first..).zip(levels.chunks_exact(cols as usize)) {
            let scales = &scales[((row / height - grid_rows.start) * grid_cols) as usize..];
            for (levels, scale) in levels.chunks(width as usize).zip(scales) {
                floats.extend(levels.iter().map(|it| values[usize::from(*it)] * scale));
            }
        }
        encode(&self.levels.name, ty, &floats)
    }
}

/// The value of an 8-bit float with four bits of exponent.
fn e4m3(level: u8) -> f32 {
    let (exponent, fraction) = (level >> 3 & 15, f32::from(level & 7));
    let size = match exponent {
        0 => fraction * (-9f32).exp2(),
        15 if fraction == 7.0 => f32::NAN,
        _ => (1.0 + fraction / 8.0) * (f32::from(exponent) - 7.0).exp2(),
    };
    if level < 128 { size } else { -size }
}

impl Mxfp4 {
    /// # Errors
    /// [`Error::InvalidModelFile`] if the tensors do not fit each other.
    pub fn new(
        blocks: StoredTensor,
        exponents: StoredTensor,
        every_second: Option<u64>,
    ) -> Result<Mxfp4> {
        let is_bytes = |tensor: &StoredTensor| tensor.dtype == "U8";
        let fits = match blocks.shape.split_first() {
            Some((16, rest)) => rest == exponents.shape && (2..=3).contains(&rest.len()),
            _ => false,
        };
        let is_even =
            every_second.is_none() || exponents.shape.get(1).is_some_and(|it| it % 2 == 0);
        if !(fits && is_even && is_bytes(&blocks) && is_bytes(&exponents)) {
            return Err(Error::InvalidModelFile(format!(
                "tensors {} and {} are no MXFP4 blocks: {} {:?} and {} {:?}",
                blocks.name,
                exponents.name,
                blocks.dtype,
                blocks.shape,
                exponents.dtype,
                exponents.shape
            )));
        }
        Ok(Mxfp4 {
            blocks,
            exponents,
            every_second,
        })
    }

    /// Shape in GGUF order.
    pub fn shape(&self) -> Vec<u64> {
        let mut shape = self.exponents.shape.clone();
        shape[0] = shape[0].saturating_mul(32);
        if self.every_second.is_some() {
            shape[1] /= 2;
        }
        shape
    }

    /// Rows as MXFP4 blocks of GGUF files: elements i and i + 16 in a byte.
    pub async fn read<S: ByteSource>(&self, source: &S, first: u64, rows: u64) -> Result<Vec<u8>> {
        let step = if self.every_second.is_some() { 2 } else { 1 };
        let start = first * step + self.every_second.unwrap_or(0);
        // The rows in between are read, too: one read instead of many.
        let span = (rows - 1) * step + 1;
        let per_row = self.exponents.shape[0];
        let exponents = source.read_vec(
            self.exponents.offset_bytes + start * per_row,
            span * per_row,
        );
        let exponents = exponents.await?;
        let level_bytes = LEVEL_BYTES as u64 * per_row;
        let levels = source.read_vec(
            self.blocks.offset_bytes + start * level_bytes,
            span * level_bytes,
        );
        let levels = levels.await?;
        let mut bytes = Vec::with_capacity(rows as usize * per_row as usize * MXFP4_BYTES);
        for row in (0..span as usize).step_by(step as usize) {
            let blocks = row * per_row as usize..(row + 1) * per_row as usize;
            let levels = levels[blocks.start * LEVEL_BYTES..]
                .as_chunks::<LEVEL_BYTES>()
                .0;
            for (exponent, levels) in exponents[blocks].iter().zip(levels) {
                let level = |i: usize| levels[i / 2] >> (i % 2 * 4) & 15;
                bytes.push(*exponent);
                bytes.extend((0..LEVEL_BYTES).map(|i| level(i) | level(i + 16) << 4));
            }
        }
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::weights::BytesSource;
    use pollster::block_on;

    fn stored(dtype: &str, shape: &[u64], offset_bytes: u64) -> StoredTensor {
        StoredTensor {
            name: "x".into(),
            shape: shape.to_vec(),
            dtype: dtype.into(),
            offset_bytes,
            size_bytes: shape.iter().product(),
        }
    }

    fn scales(shape: &[u64]) -> TensorInfo {
        TensorInfo {
            name: "s".into(),
            shape: shape.to_vec(),
            ty: TensorType::F32,
            offset_bytes: 24,
            size_bytes: 4 * shape.iter().product::<u64>(),
        }
    }

    #[test]
    fn eight_bit_floats_are_multiplied_by_the_scale_of_their_rectangle() {
        // 1, 1.125, -2, the smallest subnormal, the largest, 0.
        let row = [0x38, 0x39, 0xc0, 0x01, 0x7e, 0x80];
        let values = [1.0, 1.125, -2.0, 0.001_953_125, 448.0, -0.0];
        let factors = [1.0f32, 2.0, 3.0, 4.0];
        let mut bytes = row.repeat(4);
        bytes.extend(factors.iter().flat_map(|it| it.to_le_bytes()));
        for (shape, rectangle, of) in [
            (&[1][..], None, [0, 0, 0, 0]),
            (&[4], None, [0, 1, 2, 3]),
            (&[1, 4], None, [0, 1, 2, 3]),
            (&[1, 2], Some([8, 2]), [0, 0, 1, 1]),
            (&[2, 2], Some([4, 3]), [0, 0, 0, 2]),
        ] {
            let fp8 = Fp8::new(stored("F8_E4M3", &[6, 4], 0), scales(shape), rectangle).unwrap();
            let source = BytesSource(bytes.clone());
            let read = block_on(fp8.read(&source, 1, 3, TensorType::F32)).unwrap();
            let read = read
                .as_chunks::<4>()
                .0
                .iter()
                .map(|it| f32::from_le_bytes(*it));
            let expected = of[1..].iter().flat_map(|first| {
                values.iter().enumerate().map(move |(col, value)| {
                    let next = usize::from(shape == [2, 2] && col >= 4);
                    value * factors[first + next]
                })
            });
            assert_eq!(
                read.collect::<Vec<_>>(),
                expected.collect::<Vec<_>>(),
                "{shape:?}"
            );
        }
        for (shape, rectangle) in [
            (&[3][..], None),
            (&[2, 2], None),
            (&[2, 2], Some([2, 2])),
            // Columns and rows of the grid are exchanged.
            (&[2, 3], Some([2, 2])),
        ] {
            let made = Fp8::new(stored("F8_E4M3", &[6, 4], 0), scales(shape), rectangle);
            assert!(made.unwrap_err().to_string().contains("scales of shape"));
        }
        let empty = Fp8::new(stored("F8_E4M3", &[0, 4], 0), scales(&[1]), None);
        assert!(empty.unwrap_err().to_string().contains("scales of shape"));
    }

    #[test]
    fn products_beyond_the_range_of_the_type_are_refused() {
        // 448 * 147 is more than F16 holds.
        let mut bytes = vec![0x7e; 24];
        bytes.extend(147f32.to_le_bytes());
        let fp8 = Fp8::new(stored("F8_E4M3", &[6, 4], 0), scales(&[1]), None).unwrap();
        let source = BytesSource(bytes);
        let read = |ty| block_on(fp8.read(&source, 1, 2, ty));
        let error = read(TensorType::F16).unwrap_err().to_string();
        assert!(
            error.contains("tensor \"x\" has the value 6.5856e4"),
            "{error}"
        );
        assert!(read(TensorType::BF16).is_ok());
    }

    #[test]
    fn blocks_are_reordered_and_rows_selected() {
        let levels: Vec<u8> = (0..4 * 16).map(|i| (i * 37 % 251) as u8).collect();
        let exponents = [121, 122, 123, 124];
        let source = BytesSource([&levels[..], &exponents].concat());
        let new = |every_second| {
            let blocks = stored("U8", &[16, 1, 4], 0);
            Mxfp4::new(blocks, stored("U8", &[1, 4], 64), every_second)
        };
        for (every_second, rows) in [(None, &[1, 2][..]), (Some(1), &[3]), (Some(0), &[2])] {
            let mxfp4 = new(every_second).unwrap();
            let count = rows.len() as u64;
            let read = block_on(mxfp4.read(&source, 1, count)).unwrap();
            for (row, block) in rows.iter().zip(read.as_chunks::<17>().0) {
                assert_eq!(block[0], exponents[*row]);
                for i in 0..32 {
                    let stored = levels[row * 16 + i / 2] >> (i % 2 * 4) & 15;
                    assert_eq!(block[1 + i % 16] >> (i / 16 * 4) & 15, stored);
                }
            }
        }
        assert_eq!(new(Some(0)).unwrap().shape(), [32, 2]);
        let odd = Mxfp4::new(
            stored("U8", &[16, 1, 3], 0),
            stored("U8", &[1, 3], 48),
            Some(0),
        );
        assert!(odd.unwrap_err().to_string().contains("no MXFP4 blocks"));
    }
}
