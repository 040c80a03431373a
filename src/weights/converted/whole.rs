//! Conversions of parts whose rows need elements from all over a tensor, so that the whole tensor is in memory.

use std::ops::Range;

use super::Part;
use crate::{
    Result,
    tensor_types::TensorType,
    weights::{encode::encode, tensor::TensorInfo},
};

/// Rows of a transposed matrix assembled at a time.
const TILE_ROWS: usize = 16;

/// The rows of a part of `stored`, whose elements are `values`, as type `ty`.
///
/// # Errors
/// Same as [`encode`].
pub(super) fn whole(
    part: &Part,
    stored: &TensorInfo,
    values: &[f32],
    ty: TensorType,
) -> Result<Vec<u8>> {
    let cols = (stored.shape[0] as usize).max(1);
    let converted: Vec<f32> = match part {
        Part::NegatedExp(_) => values.iter().map(|value| -value.exp()).collect(),
        Part::Reciprocal(_) => values.iter().map(|value| value.recip()).collect(),
        Part::ChannelsFirst(_) => values.chunks_exact(cols).flat_map(channels_first).collect(),
        Part::Alternate(_, first) => values.iter().skip(*first).step_by(2).copied().collect(),
        Part::Frame(_, frame) => {
            let frames = stored.shape[1] as usize;
            let rows = values.chunks_exact(cols).skip(*frame).step_by(frames);
            rows.flatten().copied().collect()
        }
        Part::Transposed(_) => return transposed(stored, values, 0..cols, ty),
        Part::TransposedHalf(_, half) => {
            let first = *half as usize * (cols / 2);
            return transposed(stored, values, first..first + cols / 2, ty);
        }
        _ => unreachable!("rows that are converted while they are read"),
    };
    encode(&stored.name, ty, &converted)
}

/// A row of pixels of three channels, channel by channel.
fn channels_first(row: &[f32]) -> impl Iterator<Item = f32> {
    (0..3).flat_map(move |channel| row.iter().skip(channel).step_by(3).copied())
}

/// The columns `chosen` of each matrix as rows of type `ty`.
fn transposed(
    stored: &TensorInfo,
    values: &[f32],
    chosen: Range<usize>,
    ty: TensorType,
) -> Result<Vec<u8>> {
    let rows = stored.shape[0] as usize;
    let cols = stored.shape.get(1).map_or(1, |cols| *cols as usize);
    let mut bytes = Vec::new();
    for matrix in values.chunks_exact((rows * cols).max(1)) {
        for first in chosen.clone().step_by(TILE_ROWS) {
            let count = TILE_ROWS.min(chosen.end - first);
            let mut tile = vec![0.0; count * cols];
            for (col, values) in matrix.chunks_exact(rows).enumerate() {
                for (row, value) in values[first..first + count].iter().enumerate() {
                    tile[row * cols + col] = *value;
                }
            }
            bytes.extend(encode(&stored.name, ty, &tile)?);
        }
    }
    Ok(bytes)
}
