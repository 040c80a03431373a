//! Packed matrices of GPTQ (<https://arxiv.org/abs/2210.17323>) and AWQ
//! (<https://arxiv.org/abs/2306.00978>) checkpoints: integer levels in words, with a scale and a zero point per
//! group of columns; value = scale * (level - zero). Names and configurations of checkpoints are read in `model`.

use half::f16;

use super::{
    encode::encode, quoted::quoted, safetensors::StoredTensor, source::ByteSource,
    tensor::TensorInfo,
};
use crate::{
    Error, Result,
    tensor_types::{BLOCK_COLS, TensorType},
};

/// Rows unpacked at a time: those of a word of AWQ. More rows would be too far apart for the cache.
const TILE_ROWS: usize = 8;
/// The nibble of a word in which AWQ stores each of eight neighboring rows.
const AWQ_NIBBLES: [usize; 8] = [0, 4, 1, 5, 2, 6, 3, 7];

/// The order of levels in words of 32 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Packing {
    /// AutoGPTQ's order. A word has neighboring columns of a row, the first in the lowest bits; words of
    /// neighboring rows are adjacent. A word of zeros has those of neighboring rows.
    Gptq {
        /// Bits of a level: 4 or 8.
        bits: usize,
        /// The number that is added to a stored zero, modulo 2^bits: 1 in the format `gptq`, 0 in `gptq_v2`.
        zero_offset: u32,
    },
    /// AutoAWQ's GEMM order. A word has eight rows of a column, even ones in the lower half; so do words of zeros.
    Awq,
}

impl Packing {
    fn bits(self) -> usize {
        match self {
            Packing::Gptq { bits, .. } => bits,
            Packing::Awq => 4,
        }
    }

    /// Number of levels or zeros in a word.
    fn per_word(self) -> usize {
        32 / self.bits()
    }
}

/// The settings of all packed matrices in the configuration of a checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scheme {
    /// Order of levels.
    pub packing: Packing,
    /// Columns of a group; `None` for all columns.
    pub group_cols: Option<usize>,
    /// Whether all zeros are the middle level: 8 or 128.
    pub is_symmetric: bool,
    /// Whether groups are runs of columns. Otherwise a tensor lists the group of each column (act-order).
    pub has_runs: bool,
}

/// The tensors of one packed matrix. Shapes in this comment are outermost first: `[groups, rows]`.
#[derive(Debug, Clone)]
pub struct PackedTensors {
    /// GPTQ: `[cols / n, rows]` words of n levels; AWQ: `[cols, rows / 8]`.
    pub levels: StoredTensor,
    /// `[groups, rows / n]` words.
    pub zeros: StoredTensor,
    /// `[groups, rows]` floats.
    pub scales: TensorInfo,
    /// `[cols]`: the group of each column; `None` if groups are runs of columns.
    pub groups: Option<StoredTensor>,
}

/// A packed matrix.
#[derive(Debug, Clone)]
pub struct Packed {
    scheme: Scheme,
    tensors: PackedTensors,
    rows: usize,
    cols: usize,
    group_cols: usize,
}

impl Packed {
    /// Checks that the shapes and types of the tensors fit together.
    ///
    /// # Errors
    /// [`Error::InvalidModelFile`] naming a tensor of another shape or type.
    pub fn new(scheme: Scheme, tensors: PackedTensors) -> Result<Packed> {
        let per_word = scheme.packing.per_word() as u64;
        let invalid = |name: &str| {
            Error::InvalidModelFile(format!(
                "tensor {} of a packed matrix has a wrong type or a shape that does not fit the other tensors",
                quoted(name)
            ))
        };
        let levels = &tensors.levels;
        let &[inner, outer] = &levels.shape[..] else {
            return Err(invalid(&levels.name));
        };
        let [rows, cols] = match scheme.packing {
            Packing::Gptq { .. } => [Some(inner), outer.checked_mul(per_word)],
            Packing::Awq => [inner.checked_mul(per_word), Some(outer)],
        };
        let small = |count: Option<u64>| count.and_then(|it| u32::try_from(it).ok());
        let (Some(rows @ 1..), Some(cols @ 1..)) = (small(rows), small(cols)) else {
            return Err(invalid(&levels.name));
        };
        let (rows, cols) = (rows as usize, cols as usize);
        let group_cols = scheme.group_cols.unwrap_or(cols).max(1);
        let groups = cols.div_ceil(group_cols) as u64;
        let zeros_shape = [rows as u64 / per_word, groups];
        if !levels.is_i32(&levels.shape) {
            return Err(invalid(&levels.name));
        }
        if !(rows as u64).is_multiple_of(per_word) || !tensors.zeros.is_i32(&zeros_shape) {
            return Err(invalid(&tensors.zeros.name));
        }
        if tensors.scales.shape != [rows as u64, groups] {
            return Err(invalid(&tensors.scales.name));
        }
        if let Some(indices) = &tensors.groups
            && !indices.is_i32(&[cols as u64])
        {
            return Err(invalid(&indices.name));
        }
        Ok(Packed {
            scheme,
            tensors,
            rows,
            cols,
            group_cols,
        })
    }

    /// Shape of the matrix in GGUF order: columns, then rows.
    pub fn shape(&self) -> [u64; 2] {
        [self.cols as u64, self.rows as u64]
    }

    /// The type whose blocks can hold the levels unchanged, if there is one.
    pub fn blocks(&self) -> Option<TensorType> {
        let is_whole = |cols: usize| cols.is_multiple_of(BLOCK_COLS);
        let fits = self.scheme.has_runs
            && is_whole(self.cols)
            && (is_whole(self.group_cols) || self.group_cols >= self.cols);
        match (self.scheme.packing.bits(), self.scheme.is_symmetric) {
            _ if !fits => None,
            (4, true) => Some(TensorType::Q4_0),
            (4, false) => Some(TensorType::Q4_1),
            (8, true) => Some(TensorType::Q8_0),
            _ => None,
        }
    }

    /// The whole matrix in type `ty`: [`Packed::blocks`], which keeps the stored levels, or any other quantizable
    /// type.
    ///
    /// # Errors
    /// [`Error::InvalidModelFile`] for groups and zeros that contradict the scheme; errors of `source`.
    pub async fn read<S: ByteSource>(&self, source: &S, ty: TensorType) -> Result<Vec<u8>> {
        let fetched = self.fetch(source).await?;
        let mut bytes = Vec::new();
        let mut levels = vec![0; TILE_ROWS * self.cols];
        for first in (0..self.rows).step_by(TILE_ROWS) {
            let count = TILE_ROWS.min(self.rows - first);
            fetched.levels(first, &mut levels[..count * self.cols]);
            for (i, levels) in levels.chunks_exact(self.cols).take(count).enumerate() {
                if self.blocks() == Some(ty) {
                    self.push_levels(&fetched, first + i, levels, &mut bytes)?;
                } else {
                    let values = fetched.values(first + i, levels);
                    bytes.extend(encode(&self.tensors.levels.name, ty, &values)?);
                }
            }
        }
        Ok(bytes)
    }

    async fn fetch<S: ByteSource>(&self, source: &S) -> Result<Fetched> {
        let PackedTensors {
            levels,
            zeros,
            scales,
            groups,
        } = &self.tensors;
        let runs = (0..self.cols).map(|col| (col / self.group_cols) as u32);
        let group_of_col = match groups {
            None => runs.collect(),
            Some(groups) => {
                let stored = words(source, groups).await?;
                let count = self.cols.div_ceil(self.group_cols) as u32;
                let differs = self.scheme.has_runs && !runs.eq(stored.iter().copied());
                if differs || stored.iter().any(|&group| group >= count) {
                    return Err(Error::InvalidModelFile(format!(
                        "tensor {}: the groups of columns differ from the configuration",
                        quoted(&groups.name)
                    )));
                }
                stored
            }
        };
        Ok(Fetched {
            packing: self.scheme.packing,
            rows: self.rows,
            cols: self.cols,
            words: words(source, levels).await?,
            zeros: words(source, zeros).await?,
            scales: scales.read_f32(source).await?,
            group_of_col,
        })
    }

    /// Appends the blocks of a row: d is the scale; for Q4_1, m = -d * zero, rounded to f16.
    fn push_levels(
        &self,
        fetched: &Fetched,
        row: usize,
        levels: &[u8],
        bytes: &mut Vec<u8>,
    ) -> Result<()> {
        let bits = self.scheme.packing.bits();
        for (i, levels) in levels.as_chunks::<BLOCK_COLS>().0.iter().enumerate() {
            let group = i * BLOCK_COLS / self.group_cols;
            let (scale, zero) = fetched.scale_and_zero(group, row);
            let scale = f16::from_f32(scale);
            bytes.extend(scale.to_le_bytes());
            let middle = 1 << (bits - 1);
            if !self.scheme.is_symmetric {
                let min = -scale.to_f32() * zero as f32;
                bytes.extend(f16::from_f32(min).to_le_bytes());
            } else if zero != middle {
                return Err(Error::InvalidModelFile(format!(
                    "tensor {}: a zero of {zero}; the configuration says that all are {middle}",
                    quoted(&self.tensors.zeros.name)
                )));
            }
            if bits == 8 {
                // Q8_0 is signed.
                bytes.extend(levels.iter().map(|level| level ^ 128));
            } else {
                let (low, high) = levels.split_at(BLOCK_COLS / 2);
                bytes.extend(low.iter().zip(high).map(|(low, high)| low | high << 4));
            }
        }
        Ok(())
    }
}

/// A whole matrix in memory, with levels and zeros still in words.
struct Fetched {
    packing: Packing,
    rows: usize,
    cols: usize,
    words: Vec<u32>,
    zeros: Vec<u32>,
    scales: Vec<f32>,
    group_of_col: Vec<u32>,
}

impl Fetched {
    /// Unpacks the levels of whole rows from `first` on; as many as `out` holds.
    fn levels(&self, first: usize, out: &mut [u8]) {
        let (cols, per_word) = (self.cols, self.packing.per_word());
        let count = out.len() / cols;
        match self.packing {
            Packing::Gptq { bits, .. } => {
                let mask = (1 << bits) - 1;
                for (i, words) in self.words.chunks_exact(self.rows).enumerate() {
                    for (row, word) in words[first..first + count].iter().enumerate() {
                        let start = row * cols + i * per_word;
                        for (k, level) in out[start..start + per_word].iter_mut().enumerate() {
                            *level = (word >> (bits * k) & mask) as u8;
                        }
                    }
                }
            }
            Packing::Awq => {
                let (start, end) = (first / per_word, (first + count) / per_word);
                for (col, words) in self.words.chunks_exact(self.rows / per_word).enumerate() {
                    for (i, word) in words[start..end].iter().enumerate() {
                        for (k, nibble) in AWQ_NIBBLES.iter().enumerate() {
                            let row = i * per_word + k;
                            out[row * cols + col] = (word >> (4 * nibble) & 15) as u8;
                        }
                    }
                }
            }
        }
    }

    fn scale_and_zero(&self, group: usize, row: usize) -> (f32, u32) {
        let (bits, per_word) = (self.packing.bits(), self.packing.per_word());
        let word = self.zeros[(group * self.rows + row) / per_word];
        let (index, offset) = match self.packing {
            Packing::Gptq { zero_offset, .. } => (row % per_word, zero_offset),
            Packing::Awq => (AWQ_NIBBLES[row % per_word], 0),
        };
        let mask = (1 << bits) - 1;
        let zero = ((word >> (bits * index) & mask) + offset) & mask;
        (self.scales[group * self.rows + row], zero)
    }

    /// The values of a row with these levels.
    fn values(&self, row: usize, levels: &[u8]) -> Vec<f32> {
        let of = |(&group, &level): (&u32, &u8)| {
            let (scale, zero) = self.scale_and_zero(group as usize, row);
            scale * (f32::from(level) - zero as f32)
        };
        self.group_of_col.iter().zip(levels).map(of).collect()
    }
}

async fn words<S: ByteSource>(source: &S, tensor: &StoredTensor) -> Result<Vec<u32>> {
    let bytes = source
        .read_vec(tensor.offset_bytes, tensor.size_bytes)
        .await?;
    let words = bytes.as_chunks().0.iter();
    Ok(words.map(|&word| u32::from_le_bytes(word)).collect())
}

#[cfg(test)]
mod tests;
