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
    /// Super-blocks of 256: 6-bit quants as in the file (48 words); 16 i8 scales, an f16 and two
    /// bytes of padding (5 words).
    Q6K,
}

impl Format {
    /// All formats, for tests.
    pub const ALL: [Format; 6] = [
        Format::F32,
        Format::F16,
        Format::Bf16,
        Format::Q8_0,
        Format::Q4_0,
        Format::Q6K,
    ];

    /// The name in kernels' names.
    pub fn name(self) -> &'static str {
        match self {
            Format::F32 => "f32",
            Format::F16 => "f16",
            Format::Bf16 => "bf16",
            Format::Q8_0 => "q8_0",
            Format::Q4_0 => "q4_0",
            Format::Q6K => "q6_k",
        }
    }

    /// Quant words (u32) of one block of 32 columns.
    pub fn block_words(self) -> usize {
        match self {
            Format::F32 => 32,
            Format::F16 | Format::Bf16 => 16,
            Format::Q8_0 => 8,
            Format::Q4_0 => 4,
            Format::Q6K => 6,
        }
    }

    /// Columns that a row has a multiple of (unquantized rows are padded to whole blocks).
    pub fn row_multiple(self) -> usize {
        match self {
            Format::F32 | Format::F16 | Format::Bf16 => 4,
            Format::Q8_0 | Format::Q4_0 => BLOCK_COLS,
            Format::Q6K => 256,
        }
    }

    /// Whether blocks carry scales in a buffer of their own.
    pub fn has_scales(self) -> bool {
        matches!(self, Format::Q8_0 | Format::Q4_0 | Format::Q6K)
    }

    pub(super) fn wgsl(self) -> &'static str {
        match self {
            Format::F32 => shader::weights::F32,
            Format::F16 => shader::weights::F16,
            Format::Bf16 => shader::weights::BF16,
            Format::Q8_0 => shader::weights::Q8_0,
            Format::Q4_0 => shader::weights::Q4_0,
            Format::Q6K => shader::weights::Q6_K,
        }
    }

    /// The module for products of bytes, where the format has one.
    pub(super) fn i8_wgsl(self) -> Option<&'static str> {
        match self {
            Format::Q8_0 => Some(shader::weights::I8_Q8_0),
            Format::Q4_0 => Some(shader::weights::I8_Q4_0),
            _ => None,
        }
    }

    /// Decodes one block: the CPU twin of `weights_load`.
    pub fn decode(self, quants: &[u32], scales: &[u32], block: usize) -> [f32; BLOCK_COLS] {
        if self == Format::Q6K {
            return decode_q6_k(quants, scales, block);
        }
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
                    let nibble = if i < 16 {
                        bytes[i] & 15
                    } else {
                        bytes[i - 16] >> 4
                    };
                    d * (f32::from(nibble) - 8.0)
                })
            }
            Format::Q6K => unreachable!("decoded above, by super-blocks"),
        }
    }
}

/// One run of 32 elements of a Q6_K super-block; see `shaders/shared/weights/q6_k.wgsl`.
fn decode_q6_k(quants: &[u32], scales: &[u32], block: usize) -> [f32; BLOCK_COLS] {
    let (superblock, run, half) = (block / 8, block % 4, block % 8 / 4);
    let quants: &[u8] = bytemuck::cast_slice(&quants[superblock * 48..][..48]);
    let scales: &[u8] = bytemuck::cast_slice(&scales[superblock * 5..][..5]);
    let d = f16::from_le_bytes([scales[16], scales[17]]).to_f32();
    std::array::from_fn(|i| {
        let low = quants[half * 64 + run % 2 * 32 + i] >> (run / 2 * 4) & 15;
        let high = quants[128 + half * 32 + i] >> (run * 2) & 3;
        let scale = scales[block % 8 * 2 + i / 16] as i8;
        d * f32::from(scale) * (f32::from(low | high << 4) - 32.0)
    })
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

    /// Words of the scales buffer: at least one.
    pub fn scale_words(self) -> usize {
        self.scale_word_at(self.rows * self.row_blocks() + 1).max(1)
    }

    /// Scale word at which block `block` starts; only blocks at whole words start there.
    pub fn scale_word_at(self, block: usize) -> usize {
        match self.format {
            Format::F32 | Format::F16 | Format::Bf16 => 0,
            Format::Q8_0 | Format::Q4_0 => block / 2,
            Format::Q6K => block / 8 * 5,
        }
    }

    /// Bytes that one pass over the matrix reads.
    pub fn read_bytes(self) -> usize {
        let scales = if self.format.has_scales() {
            self.scale_words()
        } else {
            0
        };
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
