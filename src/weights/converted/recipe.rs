//! The parts of a converted tensor: stored tensors, and the order of their rows.

use crate::{
    Error, Result,
    tensor_types::TensorType,
    weights::{
        nvfp4::Nvfp4,
        packed::Packed,
        scaled::{Fp8, Mxfp4},
        tensor::TensorInfo,
        ternary::Ternary,
    },
};

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

/// The source of a tensor's elements.
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
    /// The columns of each matrix of the tensor, as rows.
    Transposed(TensorInfo),
    /// The first half (0) or the second half (1) of the columns as rows; of each matrix, if there are several.
    TransposedHalf(TensorInfo, u64),
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
    /// The rows of a matrix of NVFP4.
    Nvfp4(Box<Nvfp4>),
    /// The rows of a matrix of three levels.
    Ternary(Box<Ternary>),
    /// `1 / x` of each element of the tensor.
    Reciprocal(TensorInfo),
}

/// Numbers of rows that follow each other, and their factors. The last run is that of all further rows, too.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RowFactors(pub Vec<(u64, f32)>);

impl RowFactors {
    /// The factor of a row.
    pub(super) fn of(&self, row: u64) -> f32 {
        let mut end = 0u64;
        let run = self.0.iter().find(|(rows, _)| {
            end = rows.saturating_add(end);
            row < end
        });
        run.or(self.0.last()).map_or(1.0, |(_, factor)| *factor)
    }
}

/// A selection of rows: the `count` rows from row `first` on, in every `period` rows.
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

    /// The rows from `first` on.
    ///
    /// # Errors
    /// [`Error::InvalidModelFile`] naming a tensor without such rows.
    pub fn from(tensor: &TensorInfo, first: u64) -> Result<Selection> {
        match tensor.shape[..] {
            [_, rows] if rows > first => Ok(Selection {
                first,
                count: rows - first,
                period: rows,
            }),
            _ => Err(Error::InvalidModelFile(format!(
                "tensor {} of shape {:?} has no row {first}",
                tensor.name, tensor.shape
            ))),
        }
    }

    /// The stored row of a selected row, and the number of rows that follow each other from it on.
    pub(super) fn run(self, row: u64) -> (u64, u64) {
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
            Part::Transposed(tensor) => transposed(tensor, 1),
            Part::TransposedHalf(tensor, _) => transposed(tensor, 2),
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
            Part::NegatedExp(tensor)
            | Part::Reciprocal(tensor)
            | Part::ChannelsFirst(tensor)
            | Part::Scaled(tensor, _) => tensor.shape.clone(),
            Part::Alternate(tensor, _) => {
                let mut shape = tensor.shape.clone();
                shape[0] /= 2;
                shape
            }
            Part::Fp8(matrix) => matrix.shape().to_vec(),
            Part::Mxfp4(blocks) => blocks.shape(),
            Part::Nvfp4(matrix) => matrix.shape().to_vec(),
            Part::Ternary(matrix) => matrix.shape().to_vec(),
        }
    }

    /// Number of rows.
    pub(super) fn row_count(&self) -> u64 {
        self.shape()[1..].iter().product()
    }
}

/// The shape of the tensor whose rows are the columns of each matrix of `tensor`, or of one of as many `parts` of them.
fn transposed(tensor: &TensorInfo, parts: u64) -> Vec<u64> {
    match tensor.shape[..] {
        [cols, rows, ref matrices @ ..] => [&[rows, cols / parts], matrices].concat(),
        ref shape => shape.to_vec(),
    }
}
