//! The parts that IQ1_S and IQ1_M share: levels -1, 0 and 1 shifted by an eighth up or down, value = d / 8 * (2 * scale + 1) * (8 *
//! level + 1 or - 1), and the layout of the kernels. Eight elements are a point of a grid of 2048 and a shift.

use super::{
    codebook::{self, Codebook, Levels, odd},
    codec::f16_at,
    declaration::{Declaration, ScaleWord, forms},
    kernel_order::{BLOCK_COLS, Values, pair, push_pairs},
    quantized::columns,
};

/// The declaration of a type, which differs in its id, its block and the offsets of f16 values in it.
pub(super) const fn declaration<C: Codebook>(
    gguf_id: u32,
    halves: &'static [usize],
) -> Declaration {
    Declaration {
        gguf_id,
        block_len: codebook::LEN,
        block_bytes: C::BYTES,
        halves,
        kernel_block_words: 2,
        scale_bytes: 12,
        scale_words: &[ScaleWord::Bits, ScaleWord::Bits, ScaleWord::LowerHalf],
        has_row_factors: false,
        wgsl: forms!(["blocks"] "parts/bytes", "iq1"),
        i8_wgsl: None,
        repack: repack::<C>,
        decode,
        quantize: None,
    }
}

/// The levels of both types.
pub(crate) struct ShiftedLevels;

impl Levels for ShiftedLevels {
    const BITS: usize = 3;
    const GROUPS: usize = 2;
    const DIVISOR: f32 = 8.0;
    /// Values of quants plus [`Levels::ZERO`]. Blocks have no fourth level.
    const TABLE: [i8; 16] = [2, 10, 18, 0, 0, 8, 16, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    const ZERO: i32 = 9;
    const GREATEST: usize = 18;

    /// The value of two bits of a level plus 1, and a bit that is 1 for a shift down.
    fn value(quant: u8) -> f32 {
        let level = f32::from(quant & 3) - 1.0;
        8.0 * level + if quant & 4 == 0 { 1.0 } else { -1.0 }
    }
}

/// The quants of eight elements.
pub(super) fn quants(levels: [u8; 8], is_down: bool) -> [u8; 8] {
    levels.map(|level| level | u8::from(is_down) << 2)
}

/// Pairs of bits. Four bits for each group of 16 elements: its scale, and the shift of the first eight. Then d, and a bit for
/// the shift of the other eight of each group.
fn repack<C: Codebook>(bytes: &[u8], quants: &mut Vec<u8>, scales: &mut Vec<u8>) {
    for block in bytes.chunks_exact(C::BYTES) {
        for run in 0..codebook::LEN / BLOCK_COLS {
            let columns = columns::<codebook::Panels<C>>(block, run);
            push_pairs(quants, |i| columns[i]);
        }
        let shift = |eight: usize| C::eight(block, eight)[0] >> 2;
        let four = |group: usize| C::scale(block, group) | shift(2 * group) << 3;
        scales.extend((0..8).map(|i| four(2 * i) | four(2 * i + 1) << 4));
        scales.extend(C::d(block));
        let others = (0..16).fold(0u16, |bits, i| bits | u16::from(shift(2 * i + 1)) << i);
        scales.extend(others.to_le_bytes());
    }
}

/// `Declaration::decode` of what [`repack`] writes.
fn decode(quants: &[u8], scales: &[u8], run: usize) -> Values {
    let quants = &quants[run * 8..];
    let d = f16_at(scales, 8) / ShiftedLevels::DIVISOR;
    let others = u16::from_le_bytes([scales[10], scales[11]]);
    std::array::from_fn(|i| {
        let group = 2 * run + i / 16;
        let four = scales[run] >> (i / 16 * 4) & 15;
        let shift = match i / 8 % 2 {
            0 => four >> 3,
            _ => (others >> group & 1) as u8,
        };
        d * odd(four & 7) * ShiftedLevels::value(pair(quants, i) | shift << 2)
    })
}
