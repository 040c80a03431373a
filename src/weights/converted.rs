//! A checkpoint as if a GGUF file of other types and shapes had been made of it: rows are converted as
//! they are read, matrices that lie otherwise than by rows as a whole. Knows no tensor by name.

use std::cell::RefCell;

use super::{
    ByteSource, Gguf, Metadata, TensorInfo, TensorType, dequantize,
    gguf::tensor::checked_size_bytes, packed::Packed, quantize, source::check_range,
};
use crate::{Error, Result};

/// Elements converted at a time.
const CHUNK_ELEMENTS: usize = 1 << 18;
/// Rows of a transposed matrix put together at a time.
const TILE_ROWS: usize = 16;

/// A tensor to be made.
#[derive(Debug, Clone)]
pub struct Recipe {
    /// Its name.
    pub name: String,
    /// In GGUF order.
    pub shape: Vec<u64>,
    /// A type that can be quantized, or that of all that it is made of.
    pub ty: TensorType,
    /// What it is made of.
    pub origin: Origin,
}

/// What a tensor is made of.
#[derive(Debug, Clone)]
pub enum Origin {
    /// Stored tensors of one row length, one below the other.
    Stored(Vec<Part>),
    /// These values.
    Values(Vec<f32>),
}

/// A stored tensor.
#[derive(Debug, Clone)]
pub enum Part {
    /// Its rows, and what is added to each element.
    Rows(TensorInfo, f32),
    /// Its columns as rows.
    Transposed(TensorInfo),
    /// The rows that are packed in it.
    Packed(Box<Packed>),
}

impl Part {
    /// In GGUF order.
    pub fn shape(&self) -> Vec<u64> {
        match self {
            Part::Rows(tensor, _) => tensor.shape.clone(),
            Part::Transposed(tensor) => tensor.shape.iter().rev().copied().collect(),
            Part::Packed(packed) => packed.shape().to_vec(),
        }
    }

    fn row_count(&self) -> u64 {
        self.shape()[1..].iter().product()
    }
}

/// A part that was converted as a whole: of which tensor, and which of its parts.
#[derive(Debug)]
struct Made {
    tensor: usize,
    part: usize,
    bytes: Vec<u8>,
}

/// The bytes of the tensors as they are to be, one behind the other.
#[derive(Debug)]
pub struct ConvertedSource<S> {
    stored: S,
    /// In the order of their offsets.
    tensors: Vec<(TensorInfo, Origin)>,
    /// Whoever loads a tensor reads it piece by piece.
    latest: RefCell<Option<Made>>,
}

impl<S: ByteSource> ConvertedSource<S> {
    /// The source, and the header that such a file would have.
    ///
    /// # Errors
    /// [`Error::InvalidModelFile`] for a name that occurs twice, and for shapes that no tensor can have
    /// or its origin has not.
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
            Gguf::of(metadata, infos)?,
            ConvertedSource {
                stored,
                tensors,
                latest: RefCell::new(None),
            },
        ))
    }

    /// Fills the start of `buf` with a tensor's bytes from `within` on. Gives how many.
    async fn read_piece(&self, index: usize, within: u64, buf: &mut [u8]) -> Result<usize> {
        let (tensor, origin) = &self.tensors[index];
        let parts = match origin {
            Origin::Values(values) => {
                return Ok(copy(&quantize(tensor.ty, values), within as usize, buf));
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
        let is_latest = |latest: &Made| (latest.tensor, latest.part) == (index, part);
        let is_made = self.latest.borrow().as_ref().is_some_and(is_latest);
        if !is_made {
            self.latest.take();
        }
        let bytes = match &parts[part] {
            // As it is stored: nothing to convert.
            Part::Rows(stored, 0.0) if stored.ty == tensor.ty => {
                let offset_bytes = stored.offset_bytes + within;
                self.stored.read_at(offset_bytes, buf).await?;
                return Ok(count);
            }
            Part::Rows(stored, plus) => {
                let first = within / row_bytes;
                let skipped = (within % row_bytes) as usize;
                let rows = (skipped + count).div_ceil(row_bytes as usize) as u64;
                let rows = rows.min((CHUNK_ELEMENTS as u64 / tensor.shape[0]).max(1));
                let mut values = self.floats(stored, first, rows).await?;
                if *plus != 0.0 {
                    values.iter_mut().for_each(|value| *value += plus);
                }
                return Ok(copy(&quantize(tensor.ty, &values), skipped, buf));
            }
            _ if is_made => None,
            Part::Transposed(stored) => Some(self.transposed(stored, tensor.ty).await?),
            Part::Packed(packed) => Some(packed.read(&self.stored, tensor.ty).await?),
        };
        if let Some(bytes) = bytes {
            self.latest.replace(Some(Made {
                tensor: index,
                part,
                bytes,
            }));
        }
        let latest = self.latest.borrow();
        let made = latest.as_ref().map_or(&[][..], |made| &made.bytes);
        Ok(copy(made, within as usize, buf))
    }

    /// The columns of a matrix as rows.
    async fn transposed(&self, stored: &TensorInfo, ty: TensorType) -> Result<Vec<u8>> {
        let values = self.floats(stored, 0, stored.row_count()).await?;
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
            bytes.extend(quantize(ty, &tile));
        }
        Ok(bytes)
    }

    /// The elements of some stored rows.
    async fn floats(&self, stored: &TensorInfo, first: u64, rows: u64) -> Result<Vec<f32>> {
        let mut bytes = vec![0; (rows * stored.row_bytes()) as usize];
        let offset_bytes = stored.offset_bytes + first * stored.row_bytes();
        self.stored.read_at(offset_bytes, &mut bytes).await?;
        let mut values = vec![0.0; (rows * stored.shape[0]) as usize];
        dequantize(stored.ty, &bytes, &mut values);
        Ok(values)
    }
}

/// Fills the start of `buf` with what follows the first bytes that are skipped. Gives how many.
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

    /// Any range of bytes is that of all tensors made at once, parts stacked, sums added.
    #[test]
    fn every_range_is_that_of_the_whole() {
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
                "made",
                &[2],
                TensorType::F32,
                Origin::Values(vec![0.5, 0.25]),
            ),
        ];
        let made = ConvertedSource::new(BytesSource(bytes), Metadata::new(), recipes);
        let (gguf, source) = made.unwrap();
        let mut whole = quantize(TensorType::Q8_0, &values[64..]);
        whole.extend(quantize(TensorType::Q8_0, &values[..64]));
        let floats = values[32..96].iter().copied();
        let floats = floats.chain(values[..32].iter().map(|value| value + 1.0));
        whole.extend(floats.flat_map(f32::to_le_bytes));
        let turned: Vec<f32> = (0..4 * 32)
            .map(|i| values[32 + i % 4 * 32 + i / 4])
            .collect();
        for _ in 0..2 {
            whole.extend(quantize(TensorType::F16, &turned));
        }
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
    fn shapes_that_the_origin_has_not_are_refused() {
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
