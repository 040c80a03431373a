//! The formats of matrices: what their words are, and which WGSL reads them.

use super::BLOCK_COLS;
use crate::ops::shader::weights;

/// How the words of a matrix encode its elements. A new format is one arm in each match below, one in
/// `decode`, one file in `shaders/shared/weights` and one decoder of the file's blocks.
///
/// Quants come in orders that one mask and one shift take apart by words. *Nibbles*: byte j of 16 has
/// element j low and j + 16 high. *Pairs*: bits 2 * i of byte j of word k of two are element
/// 16 * k + 4 * i + j. *Bits*: bit i of byte j of a word is element 4 * i + j.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// f32 elements.
    F32,
    /// IEEE half elements.
    F16,
    /// bfloat16 elements.
    Bf16,
    /// d * q: 32 i8; an f16 d.
    Q8_0,
    /// d * (q - 8): nibbles; an f16 d.
    Q4_0,
    /// d * q + m: nibbles; an f16 d and an f16 m.
    Q4_1,
    /// d * (q - 16): nibbles; fifth bits and an f16 d, six bytes a block.
    Q5_0,
    /// d * q + m: nibbles; fifth bits, an f16 d and an f16 m.
    Q5_1,
    /// d * scale * q - dmin * minimum in groups of 16: pairs; per super-block of 256, a byte per group
    /// with the scale low and the minimum high, then f16 d and dmin.
    Q2K,
    /// d * (scale - 32) * (q - 4) in groups of 16: pairs and bits; per super-block, the file's 12 bytes
    /// of 6-bit scales, an f16 d, two bytes of padding.
    Q3K,
    /// d * scale * q - dmin * minimum: nibbles; per super-block, f16 d and dmin and the file's 12 bytes
    /// of 6-bit scales and minima.
    Q4K,
    /// As Q4K, with the fifth bits of eight blocks after the nibbles of eight.
    Q5K,
    /// d * scale * (q - 32) in groups of 16: nibbles of eight blocks, then pairs of eight; per
    /// super-block, 16 i8 scales, an f16 d, two bytes of padding.
    Q6K,
    /// d * table\[q\]: nibbles; an f16 d.
    Iq4Nl,
    /// d * (scale - 32) * table\[q\]: nibbles; per super-block, an f16 d, the upper two bits of each
    /// block's scale, the lower four.
    Iq4Xs,
    /// 2^(e - 127) * table\[q\]: nibbles, numbered in the order of their values; a byte e.
    Mxfp4,
}

/// What a word of scales holds, for whoever makes words up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScaleWord {
    /// Two f16.
    Halves,
    /// An f16 in the lower half, bits of scales above.
    LowerHalf,
    /// An f16 in the upper half, bits of quants below.
    UpperHalf,
    /// Bits of scales or quants.
    Bits,
    /// Four biased exponents.
    Exponents,
}

impl Format {
    /// All formats, for tests.
    pub const ALL: [Format; 16] = [
        Format::F32,
        Format::F16,
        Format::Bf16,
        Format::Q8_0,
        Format::Q4_0,
        Format::Q4_1,
        Format::Q5_0,
        Format::Q5_1,
        Format::Q2K,
        Format::Q3K,
        Format::Q4K,
        Format::Q5K,
        Format::Q6K,
        Format::Iq4Nl,
        Format::Iq4Xs,
        Format::Mxfp4,
    ];

    /// The name in kernels' names.
    pub fn name(self) -> &'static str {
        match self {
            Format::F32 => "f32",
            Format::F16 => "f16",
            Format::Bf16 => "bf16",
            Format::Q8_0 => "q8_0",
            Format::Q4_0 => "q4_0",
            Format::Q4_1 => "q4_1",
            Format::Q5_0 => "q5_0",
            Format::Q5_1 => "q5_1",
            Format::Q2K => "q2_k",
            Format::Q3K => "q3_k",
            Format::Q4K => "q4_k",
            Format::Q5K => "q5_k",
            Format::Q6K => "q6_k",
            Format::Iq4Nl => "iq4_nl",
            Format::Iq4Xs => "iq4_xs",
            Format::Mxfp4 => "mxfp4",
        }
    }

    /// Quant words (u32) of one block of 32 columns.
    pub fn block_words(self) -> usize {
        match self {
            Format::F32 => 32,
            Format::F16 | Format::Bf16 => 16,
            Format::Q8_0 => 8,
            Format::Q6K => 6,
            Format::Q5K => 5,
            Format::Q4_0 | Format::Q4_1 | Format::Q5_0 | Format::Q5_1 | Format::Q4K => 4,
            Format::Iq4Nl | Format::Iq4Xs | Format::Mxfp4 => 4,
            Format::Q3K => 3,
            Format::Q2K => 2,
        }
    }

    /// Bytes of scales, and the number of blocks that they are for. They follow each other without
    /// gaps.
    pub fn scale_bytes(self) -> (usize, usize) {
        match self {
            Format::F32 | Format::F16 | Format::Bf16 => (0, 1),
            Format::Mxfp4 => (1, 1),
            Format::Q8_0 | Format::Q4_0 | Format::Iq4Nl => (2, 1),
            Format::Q4_1 => (4, 1),
            Format::Q5_0 => (6, 1),
            Format::Q5_1 => (8, 1),
            Format::Iq4Xs => (8, 8),
            Format::Q3K | Format::Q4K | Format::Q5K => (16, 8),
            Format::Q2K | Format::Q6K => (20, 8),
        }
    }

    /// Columns that a row has a multiple of (unquantized rows are padded to whole blocks).
    pub fn row_multiple(self) -> usize {
        match self.scale_bytes() {
            (0, _) => 4,
            (_, blocks) => blocks * BLOCK_COLS,
        }
    }

    /// Whether blocks carry scales in a buffer of their own.
    pub fn has_scales(self) -> bool {
        self.scale_bytes().0 > 0
    }

    /// What word `at` of the scales holds.
    pub fn scale_word(self, at: usize) -> ScaleWord {
        match (self, at) {
            (Format::Mxfp4, _) => ScaleWord::Exponents,
            (Format::Q5_0, _) if at % 3 == 1 => ScaleWord::LowerHalf,
            (Format::Q5_0, _) if at % 3 == 2 => ScaleWord::UpperHalf,
            (Format::Q5_1, _) if at % 2 == 1 => ScaleWord::Halves,
            (Format::Q4K | Format::Q5K, _) if at.is_multiple_of(4) => ScaleWord::Halves,
            (Format::Q2K, _) if at % 5 == 4 => ScaleWord::Halves,
            (Format::Q6K, _) if at % 5 == 4 => ScaleWord::LowerHalf,
            (Format::Q3K, _) if at % 4 == 3 => ScaleWord::LowerHalf,
            (Format::Iq4Xs, _) if at.is_multiple_of(2) => ScaleWord::LowerHalf,
            (Format::Q8_0 | Format::Q4_0 | Format::Q4_1 | Format::Iq4Nl, _) => ScaleWord::Halves,
            _ => ScaleWord::Bits,
        }
    }

    /// The module for products of bytes, where the format has one.
    pub(in crate::ops) fn i8_wgsl(self) -> Option<&'static str> {
        match self {
            Format::Q8_0 => Some(weights::I8_Q8_0),
            Format::Q4_0 => Some(weights::I8_Q4_0),
            _ => None,
        }
    }

    pub(in crate::ops) fn wgsl(self) -> &'static str {
        match self {
            Format::F32 => weights::F32,
            Format::F16 => weights::F16,
            Format::Bf16 => weights::BF16,
            Format::Q8_0 => weights::Q8_0,
            Format::Q4_0 => weights::Q4_0,
            Format::Q4_1 => weights::Q4_1,
            Format::Q5_0 => weights::Q5_0,
            Format::Q5_1 => weights::Q5_1,
            Format::Q2K => weights::Q2_K,
            Format::Q3K => weights::Q3_K,
            Format::Q4K => weights::Q4_K,
            Format::Q5K => weights::Q5_K,
            Format::Q6K => weights::Q6_K,
            Format::Iq4Nl => weights::IQ4_NL,
            Format::Iq4Xs => weights::IQ4_XS,
            Format::Mxfp4 => weights::MXFP4,
        }
    }
}
