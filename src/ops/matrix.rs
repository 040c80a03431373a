//! Weight matrices in their file's bits, in blocks of 32 columns, quants and scales apart. Knows
//! nothing of files: whoever fills a matrix lays the words out as `Format` says.

use burn::{
    module::Module,
    tensor::{DType, Device, Int, Tensor},
};
use half::{bf16, f16};

use super::{backend, shader};

/// Columns of a block, whatever the format.
pub const BLOCK_COLS: usize = 32;

/// How the words of a matrix encode its elements. A new format is one arm in each match below, one
/// file in `shaders/shared/weights` and one decoder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// f32 elements.
    F32,
    /// IEEE half elements.
    F16,
    /// bfloat16 elements.
    Bf16,
    /// 32 i8 and an f16 scale.
    Q8_0,
    /// 32 nibbles and an f16 scale; byte j holds elements j (low) and j + 16 (high), minus 8.
    Q4_0,
}

impl Format {
    /// All formats, for tests.
    pub const ALL: [Format; 5] = [
        Format::F32,
        Format::F16,
        Format::Bf16,
        Format::Q8_0,
        Format::Q4_0,
    ];

    /// The name in kernels' names.
    pub fn name(self) -> &'static str {
        match self {
            Format::F32 => "f32",
            Format::F16 => "f16",
            Format::Bf16 => "bf16",
            Format::Q8_0 => "q8_0",
            Format::Q4_0 => "q4_0",
        }
    }

    /// Quant words (u32) of one block of 32 columns.
    pub fn block_words(self) -> usize {
        match self {
            Format::F32 => 32,
            Format::F16 | Format::Bf16 => 16,
            Format::Q8_0 => 8,
            Format::Q4_0 => 4,
        }
    }

    /// Whether blocks carry an f16 scale in a buffer of their own.
    pub fn has_scales(self) -> bool {
        matches!(self, Format::Q8_0 | Format::Q4_0)
    }

    pub(super) fn wgsl(self) -> &'static str {
        match self {
            Format::F32 => shader::weights::F32,
            Format::F16 => shader::weights::F16,
            Format::Bf16 => shader::weights::BF16,
            Format::Q8_0 => shader::weights::Q8_0,
            Format::Q4_0 => shader::weights::Q4_0,
        }
    }

    /// Decodes one block: the CPU twin of `weights_load`.
    pub fn decode(self, quants: &[u32], scales: &[u32], block: usize) -> [f32; BLOCK_COLS] {
        let words = &quants[block * self.block_words()..][..self.block_words()];
        let bytes: &[u8] = bytemuck::cast_slice(words);
        let scale = || {
            let bits = (scales[block / 2] >> (16 * (block % 2))) as u16;
            f16::from_bits(bits).to_f32()
        };
        let half_bits = |i: usize| u16::from_le_bytes([bytes[2 * i], bytes[2 * i + 1]]);
        match self {
            Format::F32 => std::array::from_fn(|i| f32::from_bits(words[i])),
            Format::F16 => std::array::from_fn(|i| f16::from_bits(half_bits(i)).to_f32()),
            Format::Bf16 => std::array::from_fn(|i| bf16::from_bits(half_bits(i)).to_f32()),
            Format::Q8_0 => {
                let d = scale();
                std::array::from_fn(|i| d * f32::from(bytes[i] as i8))
            }
            Format::Q4_0 => {
                let d = scale();
                std::array::from_fn(|i| {
                    let nibble = if i < 16 { bytes[i] & 15 } else { bytes[i - 16] >> 4 };
                    d * (f32::from(nibble) - 8.0)
                })
            }
        }
    }
}

/// Format and size of a matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct MatrixShape {
    /// How elements are encoded.
    pub format: Format,
    /// Outputs.
    pub rows: usize,
    /// Inputs; a multiple of 4. Rows are padded with zeros to whole blocks.
    pub cols: usize,
}

impl MatrixShape {
    /// Blocks of one row.
    pub fn row_blocks(self) -> usize {
        self.cols.div_ceil(BLOCK_COLS)
    }

    /// Words of the quants buffer.
    pub fn quant_words(self) -> usize {
        self.rows * self.row_blocks() * self.format.block_words()
    }

    /// Words of the scales buffer: two f16 a word, at least one word.
    pub fn scale_words(self) -> usize {
        if self.format.has_scales() {
            (self.rows * self.row_blocks()).div_ceil(2).max(1)
        } else {
            1
        }
    }

    /// Bytes that one pass over the matrix reads.
    pub fn read_bytes(self) -> usize {
        let scales = if self.format.has_scales() { self.scale_words() } else { 0 };
        4 * (self.quant_words() + scales)
    }
}

/// A weight matrix `[rows, cols]` on a device.
#[derive(Module, Debug)]
pub struct Matrix {
    /// Quant words, row after row.
    pub quants: Tensor<1, Int>,
    /// Scale words (a single unused word for formats without scales).
    pub scales: Tensor<1, Int>,
    /// Format and size.
    #[module(skip)]
    pub shape: MatrixShape,
}

impl Matrix {
    /// Reserves the memory of a matrix; fill it with [`Matrix::write`].
    pub fn reserve(shape: MatrixShape, device: &Device) -> Self {
        let words = |n: usize| Tensor::empty([n], (device, DType::U32));
        Self {
            quants: words(shape.quant_words()),
            scales: words(shape.scale_words()),
            shape,
        }
    }

    /// Overwrites quant words from `quants_at` on and scale words from `scales_at` on.
    pub fn write(
        mut self,
        quants_at: usize,
        quants: Vec<u32>,
        scales_at: usize,
        scales: Vec<u32>,
    ) -> Self {
        self.quants = backend::write_words(self.quants, quants_at, quants);
        if !scales.is_empty() {
            self.scales = backend::write_words(self.scales, scales_at, scales);
        }
        self
    }
}
