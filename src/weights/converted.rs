//! A checkpoint presented as a GGUF file of other types and shapes. Rows are converted while they are read;
//! transposed and packed matrices are converted as a whole.

use std::cell::RefCell;

use super::{
    encode::encode,
    gguf::{Gguf, Metadata},
    packed::Packed,
    scaled::{Fp8, Mxfp4},
    source::{ByteSource, check_range},
    tensor::{TensorInfo, checked_size_bytes},
    ternary::Ternary,
};
use crate::{Error, Result, tensor_types::TensorType};

/// Elements converted at a time.
const CHUNK_ELEMENTS: usize = 1 << 18;
/// Rows of a transposed matrix assembled at a time.
const TILE_ROWS: usize = 16;

/// A tensor to produce.
#[derive(Debug, Clone)]
pub struct Recipe {
    /// Name of the tensor.
    pub name: String,
    /// Shape in GGUF order.
    pub shape: Vec<u64>,
    /// A quantizable type, or the type of all stored parts.
    pub ty: TensorType,
    /// Source of the elements.
    pub origin: Origin,
}

/// Where the elements of a tensor come from.
#[derive(Debug, Clone)]
pub enum Origin {
    /// The rows of stored tensors of one row length, concatenated.
    Stored(Vec<Part>),
    /// These values.
    Values(Vec<f32>),
}

/// A stored tensor and how its rows are obtained.
#[derive(Debug, Clone)]
pub enum Part {
    /// The rows of the tensor; the number is added to each element.
    Rows(TensorInfo, f32),
    /// The columns of the tensor, as rows.
    Transposed(TensorInfo),
    /// A frame of the kernels of a convolution over time, a row per kernel. The tensor is `[outputs, channels, frames,
    /// pixels]`.
    Frame(TensorInfo, usize),
    /// The rows of the tensor, which are those of pixels of three channels, channel by channel.
    ChannelsFirst(TensorInfo),
    /// The rows of a packed matrix.
    Packed(Box<Packed>),
    /// Some of the rows of the tensor.
    Selected(TensorInfo, Selection),
    /// `-exp(x)` of each element of the tensor.
    NegatedExp(TensorInfo),
    /// Every second element of the rows of the tensor, from this one on.
    Alternate(TensorInfo, usize),
    /// The rows of the tensor, each multiplied by the factor of its run.
    Scaled(TensorInfo, RowFactors),
    /// The rows of a matrix of 8-bit floats.
    Fp8(Box<Fp8>),
    /// The rows of MXFP4 blocks.
    Mxfp4(Box<Mxfp4>),
    /// The rows of a matrix of three levels.
    Ternary(Box<Ternary>),
}

/// Numbers of rows that follow each other, and their factors. The last run is that of all further rows, too.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RowFactors(pub Vec<(u64, f32)>);

impl RowFactors {
    /// The factor of a row.
    fn of(&self, row: u64) -> f32 {
        let mut end = 0u64;
        let run = self.0.iter().find(|(rows, _)| {
            end = rows.saturating_add(end);
            row < end
        });
        run.or(self.0.last()).map_or(1.0, |(_, factor)| *factor)
    }
}

/// Of every `period` rows `count` ones, from row `first` on.
#[derive(Debug, Clone, Copy)]
pub struct Selection {
    first: u64,
    count: u64,
    period: u64,
}

impl Selection {
    /// The first half (0) or the second half (1) of the rows; of each matrix, if the tensor has several.
    ///
    /// # Errors
    /// [`Error::InvalidModelFile`] naming a tensor with an odd number of rows.
    pub fn half(tensor: &TensorInfo, half: u64) -> Result<Selection> {
        match tensor.shape.get(1) {
            Some(rows) if rows.is_multiple_of(2) => Ok(Selection {
                first: half * (rows / 2),
                count: rows / 2,
                period: *rows,
            }),
            _ => Err(Error::InvalidModelFile(format!(
                "tensor {} of shape {:?} has no halves",
                tensor.name, tensor.shape
            ))),
        }
    }

    /// The stored row of a selected row, and the number of rows that follow each other from it on.
    fn run(self, row: u64) -> (u64, u64) {
        let (group, within) = (row / self.count, row % self.count);
        (
            group * self.period + self.first + within,
            self.count - within,
        )
    }
}

impl Part {
    /// Shape of the rows in GGUF order.
    pub fn shape(&self) -> Vec<u64> {
        match self {
            Part::Rows(tensor, _) => tensor.shape.clone(),
            Part::Transposed(tensor) => tensor.shape.iter().rev().copied().collect(),
            Part::Frame(tensor, _) => match tensor.shape[..] {
                [pixels, _, channels, outputs] => vec![pixels.saturating_mul(channels), outputs],
                _ => vec![0, 0],
            },
            Part::Packed(packed) => packed.shape().to_vec(),
            Part::Selected(tensor, selection) => {
                let mut shape = tensor.shape.clone();
                shape[1] = selection.count;
                shape
            }
            Part::NegatedExp(tensor) | Part::ChannelsFirst(tensor) | Part::Scaled(tensor, _) => {
                tensor.shape.clone()
            }
            Part::Alternate(tensor, _) => {
                let mut shape = tensor.shape.clone();
                shape[0] /= 2;
                shape
            }
            Part::Fp8(matrix) => matrix.shape().to_vec(),
            Part::Mxfp4(blocks) => blocks.shape(),
            Part::Ternary(matrix) => matrix.shape().to_vec(),
        }
    }

    fn row_count(&self) -> u64 {
        self.shape()[1..].iter().product()
    }
}

/// A part that was converted as a whole.
#[derive(Debug)]
struct WholePart {
    /// Indices of the tensor and of its part.
    index: (usize, usize),
    bytes: Vec<u8>,
}

/// The bytes of the converted tensors, concatenated.
#[derive(Debug)]
pub struct ConvertedSource<S> {
    stored: S,
    /// The tensors in the order of their offsets.
    tensors: Vec<(TensorInfo, Origin)>,
    /// The part that was last converted as a whole. It is kept because a loader reads a tensor in
    /// several pieces.
    latest: RefCell<Option<WholePart>>,
}

impl<S: ByteSource> ConvertedSource<S> {
    /// The source, and the header that a GGUF file of these tensors would have.
    ///
    /// # Errors
    /// [`Error::InvalidModelFile`] for a name that occurs twice, and for a shape that is invalid or differs from
    /// that of the origin.
    pub fn new(
        stored: S,
        metadata: Metadata,
        recipes: Vec<Recipe>,
    ) -> Result<(Gguf, ConvertedSource<S>)> {
        let (mut tensors, mut offset_bytes) = (Vec::new(), 0u64);
        for recipe in recipes {
            let Recipe {
                name,
                shape,
                ty,
                origin,
            } = recipe;
            let size_bytes = checked_size_bytes(&name, &shape, ty)?;
            let tensor = TensorInfo {
                name,
                shape,
                ty,
                offset_bytes,
                size_bytes,
            };
            let fits = match &origin {
                Origin::Values(values) => values.len() as u64 == tensor.element_count(),
                Origin::Stored(parts) => {
                    parts.iter().all(|part| part.shape()[0] == tensor.shape[0])
                        && parts.iter().map(Part::row_count).sum::<u64>() == tensor.row_count()
                }
            };
            let end = offset_bytes.checked_add(size_bytes).filter(|_| fits);
            offset_bytes = end.ok_or_else(|| {
                Error::InvalidModelFile(format!(
                    "tensor {:?} cannot have the shape {:?}",
                    tensor.name, tensor.shape
                ))
            })?;
            tensors.push((tensor, origin));
        }
        let infos = tensors.iter().map(|(tensor, _)| tensor.clone()).collect();
        Ok((
            Gguf::new(metadata, infos)?,
            ConvertedSource {
                stored,
                tensors,
                latest: RefCell::new(None),
            },
        ))
    }

    /// Fills the start of `buf` with bytes of tensor `index` from `within` on. Returns the number of bytes.
    async fn read_piece(&self, index: usize, within: u64, buf: &mut [u8]) -> Result<usize> {
        let (tensor, origin) = &self.tensors[index];
        let parts = match origin {
            Origin::Values(values) => {
                return Ok(copy(&tensor.ty.quantize(values), within as usize, buf));
            }
            Origin::Stored(parts) => parts,
        };
        let row_bytes = tensor.row_bytes();
        let mut within = within;
        let mut part = 0;
        while within >= parts[part].row_count() * row_bytes {
            within -= parts[part].row_count() * row_bytes;
            part += 1;
        }
        let left = parts[part].row_count() * row_bytes - within;
        let count = left.min(buf.len() as u64) as usize;
        let buf = &mut buf[..count];
        let (index, ty) = ((index, part), tensor.ty);
        match &parts[part] {
            Part::Rows(stored, plus) => self.read_rows(tensor, stored, *plus, within, buf).await,
            Part::Selected(stored, selection) => {
                let (row, rows) = selection.run(within / row_bytes);
                let skipped = within % row_bytes;
                let left = rows * row_bytes - skipped;
                let count = left.min(buf.len() as u64) as usize;
                let within = row * row_bytes + skipped;
                self.read_rows(tensor, stored, 0.0, within, &mut buf[..count])
                    .await
            }
            Part::Scaled(stored, factors) => {
                let (first, rows, skipped) = rows_of(tensor, within, buf.len());
                let mut values = self.row_values(stored, first, rows).await?;
                let cols = stored.shape[0] as usize;
                for (row, values) in (first..).zip(values.chunks_exact_mut(cols)) {
                    let factor = factors.of(row);
                    values.iter_mut().for_each(|value| *value *= factor);
                }
                Ok(copy(&encode(&stored.name, ty, &values)?, skipped, buf))
            }
            Part::Fp8(matrix) => {
                let (first, rows, skipped) = rows_of(tensor, within, buf.len());
                let bytes = matrix.read(&self.stored, first, rows, ty).await?;
                Ok(copy(&bytes, skipped, buf))
            }
            Part::Mxfp4(blocks) => {
                let (first, rows, skipped) = rows_of(tensor, within, buf.len());
                let bytes = blocks.read(&self.stored, first, rows).await?;
                Ok(copy(&bytes, skipped, buf))
            }
            Part::Ternary(matrix) => {
                let (first, rows, skipped) = rows_of(tensor, within, buf.len());
                let bytes = matrix.read(&self.stored, first, rows).await?;
                Ok(copy(&bytes, skipped, buf))
            }
            Part::NegatedExp(stored) => {
                let converted = self.elements(stored, ty, |values| {
                    values.iter().map(|value| -value.exp()).collect()
                });
                self.read_whole(index, converted, within, buf).await
            }
            Part::ChannelsFirst(stored) => {
                let cols = (stored.shape[0] as usize).max(1);
                let converted = self.elements(stored, ty, |values| {
                    let rows = values.chunks_exact(cols);
                    let channel = |row: &[f32], channel: usize| -> Vec<f32> {
                        row.iter().skip(channel).step_by(3).copied().collect()
                    };
                    let channels = rows.flat_map(|row| (0..3).flat_map(move |it| channel(row, it)));
                    channels.collect()
                });
                self.read_whole(index, converted, within, buf).await
            }
            Part::Alternate(stored, first) => {
                let converted = self.elements(stored, ty, |values| {
                    values.iter().skip(*first).step_by(2).copied().collect()
                });
                self.read_whole(index, converted, within, buf).await
            }
            Part::Transposed(stored) => {
                let converted = self.transposed(stored, ty);
                self.read_whole(index, converted, within, buf).await
            }
            Part::Frame(stored, frame) => {
                let converted = self.frame(stored, *frame, ty);
                self.read_whole(index, converted, within, buf).await
            }
            Part::Packed(packed) => {
                let converted = packed.read(&self.stored, ty);
                self.read_whole(index, converted, within, buf).await
            }
        }
    }

    /// [`read_piece`](Self::read_piece) of [`Part::Rows`]: reads the stored rows that `buf` needs, at most
    /// `CHUNK_ELEMENTS` elements.
    async fn read_rows(
        &self,
        tensor: &TensorInfo,
        stored: &TensorInfo,
        plus: f32,
        within: u64,
        buf: &mut [u8],
    ) -> Result<usize> {
        if stored.ty == tensor.ty && plus == 0.0 {
            self.stored
                .read_at(stored.offset_bytes + within, buf)
                .await?;
            return Ok(buf.len());
        }
        let (first, rows, skipped) = rows_of(tensor, within, buf.len());
        let mut values = self.row_values(stored, first, rows).await?;
        if plus != 0.0 {
            values.iter_mut().for_each(|value| *value += plus);
        }
        let bytes = encode(&stored.name, tensor.ty, &values)?;
        Ok(copy(&bytes, skipped, buf))
    }

    /// The elements of `rows` rows of a stored tensor, from row `first` on.
    async fn row_values(&self, stored: &TensorInfo, first: u64, rows: u64) -> Result<Vec<f32>> {
        let rows = TensorInfo {
            name: String::new(),
            shape: vec![stored.shape[0], rows],
            ty: stored.ty,
            offset_bytes: stored.offset_bytes + first * stored.row_bytes(),
            size_bytes: rows * stored.row_bytes(),
        };
        rows.read_f32(&self.stored).await
    }

    /// [`read_piece`](Self::read_piece) of a part that is converted as a whole, by `converted` unless it is the
    /// latest one.
    async fn read_whole(
        &self,
        index: (usize, usize),
        converted: impl Future<Output = Result<Vec<u8>>>,
        within: u64,
        buf: &mut [u8],
    ) -> Result<usize> {
        let is_latest = |latest: &WholePart| latest.index == index;
        if !self.latest.borrow().as_ref().is_some_and(is_latest) {
            // Frees the memory of the previous part first.
            self.latest.take();
            let bytes = converted.await?;
            self.latest.replace(Some(WholePart { index, bytes }));
        }
        let latest = self.latest.borrow();
        let bytes = latest.as_ref().map_or(&[][..], |latest| &latest.bytes);
        Ok(copy(bytes, within as usize, buf))
    }

    /// All elements, changed, as rows of type `ty`.
    async fn elements(
        &self,
        stored: &TensorInfo,
        ty: TensorType,
        change: impl FnOnce(&[f32]) -> Vec<f32>,
    ) -> Result<Vec<u8>> {
        let values = stored.read_f32(&self.stored).await?;
        encode(&stored.name, ty, &change(&values))
    }

    /// A frame of the kernels of a convolution, as rows of type `ty`.
    async fn frame(&self, stored: &TensorInfo, frame: usize, ty: TensorType) -> Result<Vec<u8>> {
        let values = stored.read_f32(&self.stored).await?;
        let [pixels, frames] = [stored.shape[0], stored.shape[1]].map(|it| it as usize);
        let rows = values.chunks_exact(pixels).skip(frame).step_by(frames);
        encode(&stored.name, ty, &rows.collect::<Vec<_>>().concat())
    }

    /// The columns of a matrix as rows of type `ty`.
    async fn transposed(&self, stored: &TensorInfo, ty: TensorType) -> Result<Vec<u8>> {
        let values = stored.read_f32(&self.stored).await?;
        let rows = stored.shape[0] as usize;
        let cols = values.len() / rows;
        let mut bytes = Vec::new();
        for first in (0..rows).step_by(TILE_ROWS) {
            let count = TILE_ROWS.min(rows - first);
            let mut tile = vec![0.0; count * cols];
            for (col, values) in values.chunks_exact(rows).enumerate() {
                for (row, value) in values[first..first + count].iter().enumerate() {
                    tile[row * cols + col] = *value;
                }
            }
            bytes.extend(encode(&stored.name, ty, &tile)?);
        }
        Ok(bytes)
    }
}

/// The rows of a piece of `len_bytes`: the first, their number, which is limited, and the bytes of the first one before the
/// piece.
fn rows_of(tensor: &TensorInfo, within: u64, len_bytes: usize) -> (u64, u64, usize) {
    let row_bytes = tensor.row_bytes();
    let skipped = (within % row_bytes) as usize;
    let rows = (skipped + len_bytes).div_ceil(row_bytes as usize) as u64;
    let most = (CHUNK_ELEMENTS as u64 / tensor.shape[0]).max(1);
    (within / row_bytes, rows.min(most), skipped)
}

/// Fills the start of `buf` with the bytes after the first `skipped`. Returns the number of bytes.
fn copy(bytes: &[u8], skipped: usize, buf: &mut [u8]) -> usize {
    let count = (bytes.len() - skipped).min(buf.len());
    buf[..count].copy_from_slice(&bytes[skipped..skipped + count]);
    count
}

impl<S: ByteSource> ByteSource for ConvertedSource<S> {
    fn size_bytes(&self) -> u64 {
        let last = self.tensors.last();
        last.map_or(0, |(tensor, _)| tensor.offset_bytes + tensor.size_bytes)
    }

    async fn read_at(&self, offset_bytes: u64, buf: &mut [u8]) -> Result<()> {
        check_range(offset_bytes, buf.len(), self.size_bytes())?;
        let mut read = 0;
        while read < buf.len() {
            let offset_bytes = offset_bytes + read as u64;
            let next = self
                .tensors
                .partition_point(|(tensor, _)| tensor.offset_bytes <= offset_bytes);
            let tensor = &self.tensors[next - 1].0;
            let within = offset_bytes - tensor.offset_bytes;
            let wanted = (tensor.size_bytes - within).min((buf.len() - read) as u64) as usize;
            let piece = &mut buf[read..read + wanted];
            read += self.read_piece(next - 1, within, piece).await?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::weights::BytesSource;

    fn stored(offset_bytes: u64, rows: u64) -> TensorInfo {
        TensorInfo {
            name: String::new(),
            shape: vec![32, rows],
            ty: TensorType::F32,
            offset_bytes,
            size_bytes: 128 * rows,
        }
    }

    /// Every range of bytes equals that of all tensors converted at once, with parts stacked and numbers added.
    #[test]
    fn every_range_equals_that_of_the_whole() {
        let values: Vec<f32> = (0..32 * 5).map(|i| (i % 37) as f32 - 9.0).collect();
        let bytes: Vec<u8> = values
            .iter()
            .flat_map(|value| value.to_le_bytes())
            .collect();
        let recipe = |name: &str, shape: &[u64], ty, origin| Recipe {
            name: name.into(),
            shape: shape.to_vec(),
            ty,
            origin,
        };
        let rows = |at, count, plus| Part::Rows(stored(at, count), plus);
        let stack = Origin::Stored(vec![rows(2 * 128, 3, 0.0), rows(0, 2, 0.0)]);
        let transposed = Origin::Stored(vec![Part::Transposed(stored(128, 4)); 2]);
        // Two matrices of two rows, of which the second ones are taken.
        let pairs = TensorInfo {
            shape: vec![32, 2, 2],
            ..stored(128, 4)
        };
        let seconds = Selection::half(&pairs, 1).unwrap();
        let seconds = Origin::Stored(vec![Part::Selected(pairs, seconds)]);
        let negated = Origin::Stored(vec![Part::NegatedExp(stored(0, 1))]);
        let odd = Origin::Stored(vec![Part::Alternate(stored(0, 2), 1)]);
        // Factors of one row, and of the others.
        let factors = RowFactors(vec![(1, 3.0), (2, -0.5)]);
        let scaled = Origin::Stored(vec![Part::Scaled(stored(128, 4), factors)]);
        // 10 outputs of 2 channels of 2 frames of 4 pixels.
        let kernels = TensorInfo {
            shape: vec![4, 2, 2, 10],
            ..stored(0, 5)
        };
        let recipes = vec![
            recipe("stack", &[32, 5], TensorType::Q8_0, stack),
            recipe(
                "same",
                &[32, 2],
                TensorType::F32,
                Origin::Stored(vec![rows(128, 2, 0.0)]),
            ),
            recipe(
                "more",
                &[32, 1],
                TensorType::F32,
                Origin::Stored(vec![rows(0, 1, 1.0)]),
            ),
            recipe("turned", &[4, 64], TensorType::F16, transposed),
            recipe(
                "framed",
                &[8, 10],
                TensorType::F16,
                Origin::Stored(vec![Part::Frame(kernels, 1)]),
            ),
            recipe("odd", &[16, 2], TensorType::F32, odd),
            recipe("negated", &[32], TensorType::F32, negated),
            recipe("scaled", &[32, 4], TensorType::F16, scaled),
            recipe("seconds", &[32, 1, 2], TensorType::Q8_0, seconds),
            recipe(
                "made",
                &[2],
                TensorType::F32,
                Origin::Values(vec![0.5, 0.25]),
            ),
        ];
        let made = ConvertedSource::new(BytesSource(bytes), Metadata::new(), recipes);
        let (gguf, source) = made.unwrap();
        let mut whole = TensorType::Q8_0.quantize(&values[64..]);
        whole.extend(TensorType::Q8_0.quantize(&values[..64]));
        let floats = values[32..96].iter().copied();
        let floats = floats.chain(values[..32].iter().map(|value| value + 1.0));
        whole.extend(floats.flat_map(f32::to_le_bytes));
        let turned: Vec<f32> = (0..4 * 32)
            .map(|i| values[32 + i % 4 * 32 + i / 4])
            .collect();
        for _ in 0..2 {
            whole.extend(TensorType::F16.quantize(&turned));
        }
        let second = values.chunks_exact(4).skip(1).step_by(2);
        whole.extend(TensorType::F16.quantize(&second.collect::<Vec<_>>().concat()));
        let odd = values[..64].iter().skip(1).step_by(2);
        whole.extend(odd.flat_map(|value| value.to_le_bytes()));
        let negated = values[..32].iter().map(|value| -value.exp());
        whole.extend(negated.flat_map(f32::to_le_bytes));
        let scaled = values[32..].iter().enumerate();
        let scaled = scaled.map(|(i, value)| value * if i < 32 { 3.0 } else { -0.5 });
        whole.extend(TensorType::F16.quantize(&scaled.collect::<Vec<_>>()));
        let seconds = [&values[64..96], &values[128..160]].concat();
        whole.extend(TensorType::Q8_0.quantize(&seconds));
        whole.extend([0.5f32, 0.25].iter().flat_map(|value| value.to_le_bytes()));
        assert_eq!(source.size_bytes(), whole.len() as u64);
        assert_eq!(gguf.tensor("more").unwrap().offset_bytes, 5 * 34 + 256);
        for start in (0..whole.len()).step_by(7) {
            for end in (start..=whole.len()).step_by(5) {
                let mut bytes = vec![0; end - start];
                pollster::block_on(source.read_at(start as u64, &mut bytes)).unwrap();
                assert_eq!(bytes, whole[start..end], "{start}..{end}");
            }
        }
    }

    #[test]
    fn shapes_that_differ_from_the_origin_are_rejected() {
        let recipe = Recipe {
            name: "stack".into(),
            shape: vec![32, 4],
            ty: TensorType::F32,
            origin: Origin::Stored(vec![Part::Rows(stored(0, 3), 0.0)]),
        };
        let made = ConvertedSource::new(BytesSource([]), Metadata::new(), vec![recipe]);
        assert!(made.unwrap_err().to_string().contains("\"stack\""));
    }
}
