//! A checkpoint of floats, read as if a GGUF file of other types and shapes had been made of it: rows
//! are converted as they are read. Knows no tensor by name.

use super::{
    ByteSource, Gguf, Metadata, TensorInfo, TensorType, dequantize,
    gguf::tensor::checked_size_bytes, quantize, source::check_range,
};
use crate::{Error, Result};

/// Elements converted at a time.
const CHUNK_ELEMENTS: usize = 1 << 18;

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
    /// Stored tensors of one row length, one below the other, and what is added to each element.
    Stored(Vec<TensorInfo>, f32),
    /// These values.
    Values(Vec<f32>),
}

/// The bytes of the tensors as they are to be, one behind the other.
#[derive(Debug)]
pub struct ConvertedSource<S> {
    stored: S,
    /// In the order of their offsets.
    tensors: Vec<(TensorInfo, Origin)>,
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
                Origin::Stored(parts, _) => {
                    parts.iter().all(|part| part.shape[0] == tensor.shape[0])
                        && parts.iter().map(TensorInfo::row_count).sum::<u64>()
                            == tensor.row_count()
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
            ConvertedSource { stored, tensors },
        ))
    }

    /// The elements of some rows.
    async fn elements(
        &self,
        origin: &Origin,
        cols: usize,
        first: u64,
        out: &mut [f32],
    ) -> Result<()> {
        let (parts, plus) = match origin {
            Origin::Values(values) => {
                let start = first as usize * cols;
                out.copy_from_slice(&values[start..start + out.len()]);
                return Ok(());
            }
            Origin::Stored(parts, plus) => (parts, *plus),
        };
        let (mut row, mut done) = (first, 0);
        for part in parts {
            if row >= part.row_count() {
                row -= part.row_count();
                continue;
            }
            let count = (part.row_count() - row).min(((out.len() - done) / cols) as u64);
            let mut bytes = vec![0; (count * part.row_bytes()) as usize];
            let offset_bytes = part.offset_bytes + row * part.row_bytes();
            self.stored.read_at(offset_bytes, &mut bytes).await?;
            let values = &mut out[done..done + count as usize * cols];
            dequantize(part.ty, &bytes, values);
            done += values.len();
            row = 0;
            if done == out.len() {
                break;
            }
        }
        if plus != 0.0 {
            out.iter_mut().for_each(|value| *value += plus);
        }
        Ok(())
    }
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
            let (tensor, origin) = &self.tensors[next - 1];
            let within = offset_bytes - tensor.offset_bytes;
            let wanted = (tensor.size_bytes - within).min((buf.len() - read) as u64) as usize;
            // As it is stored: nothing to convert.
            if let Origin::Stored(parts, 0.0) = origin
                && let [part] = &parts[..]
                && part.ty == tensor.ty
            {
                let piece = &mut buf[read..read + wanted];
                self.stored
                    .read_at(part.offset_bytes + within, piece)
                    .await?;
                read += wanted;
                continue;
            }
            let (cols, row_bytes) = (tensor.shape[0] as usize, tensor.row_bytes());
            let first = within / row_bytes;
            let skipped = (within % row_bytes) as usize;
            let rows = (skipped + wanted).div_ceil(row_bytes as usize);
            let rows = rows.min((CHUNK_ELEMENTS / cols).max(1));
            let mut values = vec![0.0; rows * cols];
            self.elements(origin, cols, first, &mut values).await?;
            let bytes = quantize(tensor.ty, &values);
            let count = (bytes.len() - skipped).min(wanted);
            buf[read..read + count].copy_from_slice(&bytes[skipped..skipped + count]);
            read += count;
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
        let stack = Origin::Stored(vec![stored(2 * 128, 3), stored(0, 2)], 0.0);
        let recipes = vec![
            recipe("stack", &[32, 5], TensorType::Q8_0, stack),
            recipe(
                "same",
                &[32, 2],
                TensorType::F32,
                Origin::Stored(vec![stored(128, 2)], 0.0),
            ),
            recipe(
                "more",
                &[32, 1],
                TensorType::F32,
                Origin::Stored(vec![stored(0, 1)], 1.0),
            ),
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
        whole.extend(floats.chain([0.5, 0.25]).flat_map(f32::to_le_bytes));
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
            origin: Origin::Stored(vec![stored(0, 3)], 0.0),
        };
        let made = ConvertedSource::new(BytesSource([]), Metadata::new(), vec![recipe]);
        assert!(made.unwrap_err().to_string().contains("\"stack\""));
    }
}
