//! A checkpoint presented as a GGUF file of other types and shapes. Rows are converted while they are read;
//! transposed and packed matrices are converted as a whole (`whole`). `recipe` says what a tensor consists of.

use std::cell::RefCell;

mod recipe;
#[cfg(test)]
mod tests;
mod whole;

pub use recipe::{Origin, Part, Recipe, RowFactors, Selection};
use whole::whole;

use super::{
    encode::encode,
    gguf::{Gguf, Metadata},
    source::{ByteSource, check_range},
    tensor::{TensorInfo, checked_size_bytes},
};
use crate::{Error, Result, tensor_types::TensorType};

/// Elements converted at a time.
const CHUNK_ELEMENTS: usize = 1 << 18;

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
        self.read_part((index, part), &parts[part], within, &mut buf[..count])
            .await
    }

    /// [`read_piece`](Self::read_piece) of one part: `index` are those of the tensor and of the part, `within` counts from
    /// the start of the part.
    async fn read_part(
        &self,
        index: (usize, usize),
        part: &Part,
        within: u64,
        buf: &mut [u8],
    ) -> Result<usize> {
        let tensor = &self.tensors[index.0].0;
        let (ty, row_bytes) = (tensor.ty, tensor.row_bytes());
        match part {
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
            Part::Fp8(_) | Part::Mxfp4(_) | Part::Nvfp4(_) | Part::Ternary(_) => {
                let (first, rows, skipped) = rows_of(tensor, within, buf.len());
                let bytes = self.scaled_rows(part, first, rows, ty).await?;
                Ok(copy(&bytes, skipped, buf))
            }
            Part::Packed(packed) => {
                let converted = packed.read(&self.stored, ty);
                self.read_whole(index, converted, within, buf).await
            }
            Part::NegatedExp(stored)
            | Part::Reciprocal(stored)
            | Part::ChannelsFirst(stored)
            | Part::Alternate(stored, _)
            | Part::Transposed(stored)
            | Part::TransposedHalf(stored, _)
            | Part::Frame(stored, _) => {
                let converted = async {
                    let values = stored.read_f32(&self.stored).await?;
                    whole(part, stored, &values, ty)
                };
                self.read_whole(index, converted, within, buf).await
            }
        }
    }

    /// Rows of a part whose scales are in another tensor, from row `first` on.
    async fn scaled_rows(
        &self,
        part: &Part,
        first: u64,
        rows: u64,
        ty: TensorType,
    ) -> Result<Vec<u8>> {
        match part {
            Part::Fp8(matrix) => matrix.read(&self.stored, first, rows, ty).await,
            Part::Mxfp4(blocks) => blocks.read(&self.stored, first, rows).await,
            Part::Nvfp4(matrix) => matrix.read(&self.stored, first, rows).await,
            Part::Ternary(matrix) => matrix.read(&self.stored, first, rows).await,
            _ => unreachable!("a part without scales"),
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
