//! The parts that ggml's IQ1, IQ2 and IQ3 types share: super-blocks of 256 elements whose quants are indices into grids (`grids.rs`).
//! Kernels do not look up grids. A quant of theirs is the number of a value: a level and a sign, or a level and a shift.
//! Value = d / divisor * (2 * scale + 1) * value of the quant.

use std::marker::PhantomData;

use super::{
    codec::f16_at,
    kernel_order::{BLOCK_COLS, Values, bit, nibble, pair, push_bits, push_nibbles, push_pairs},
    planes,
    quantized::{Quantized, columns, weighted, word},
};
use crate::simd::{Simd, Weights};

/// Elements per file block.
pub(super) const LEN: usize = 256;
const RUNS: usize = LEN / BLOCK_COLS;

/// The values that the quants of a type stand for. Several types have the same.
pub(crate) trait Levels {
    /// Bits of a quant: 3 or 4.
    const BITS: usize;
    /// Scales of a run of 32 elements: 1 or 2.
    const GROUPS: usize;
    const DIVISOR: f32;
    /// The results of [`Levels::value`], plus [`Levels::ZERO`].
    const TABLE: [i8; 16];
    const ZERO: i32;
    /// The greatest value of the table.
    const GREATEST: usize;

    /// The value of a quant, an integer.
    fn value(quant: u8) -> f32;
}

/// A type of this kind.
pub(crate) trait Codebook {
    type Levels: Levels;
    /// Bytes of a file block.
    const BYTES: usize;

    /// The bits of d, which begin a block of most types.
    fn d(block: &[u8]) -> [u8; 2] {
        [block[0], block[1]]
    }
    /// The scale of a group of 16 or 32 elements, below 16.
    fn scale(block: &[u8], group: usize) -> u8;
    /// The quants of elements `8 * eight..8 * eight + 8`.
    fn eight(block: &[u8], eight: usize) -> [u8; 8];
}

/// `Declaration::repack`: quants of 3 bits as Q3_K's, quants of 4 bits as nibbles; four bits for each scale, d, two bytes of
/// padding.
pub(super) fn repack<C: Codebook>(bytes: &[u8], quants: &mut Vec<u8>, scales: &mut Vec<u8>) {
    for block in bytes.chunks_exact(C::BYTES) {
        for run in 0..RUNS {
            let columns = columns::<Panels<C>>(block, run);
            if C::Levels::BITS == 4 {
                push_nibbles(quants, |i| columns[i]);
            } else {
                push_pairs(quants, |i| columns[i]);
                push_bits(quants, |i| columns[i] >> 2);
            }
        }
        let pairs = 0..C::Levels::GROUPS * RUNS / 2;
        scales.extend(pairs.map(|i| C::scale(block, 2 * i) | C::scale(block, 2 * i + 1) << 4));
        scales.extend(C::d(block));
        scales.extend([0; 2]);
    }
}

/// `Declaration::decode` of what [`repack`] writes.
pub(super) fn decode<C: Codebook>(quants: &[u8], scales: &[u8], run: usize) -> Values {
    let quants = &quants[run * 4 * C::Levels::BITS..];
    let d = f16_at(scales, C::Levels::GROUPS * RUNS / 2) / C::Levels::DIVISOR;
    std::array::from_fn(|i| {
        let quant = match C::Levels::BITS {
            4 => nibble(quants, i),
            _ => pair(quants, i) | bit(&quants[8..], i) << 2,
        };
        let group = C::Levels::GROUPS * run + i * C::Levels::GROUPS / BLOCK_COLS;
        let scale = scales[group / 2] >> (group % 2 * 4) & 15;
        d * odd(scale) * C::Levels::value(quant)
    })
}

/// The factor that a scale stands for.
pub(super) fn odd(scale: u8) -> f32 {
    f32::from(2 * scale + 1)
}

/// Units have the factors of each group, then d / divisor in f32.
pub(crate) struct Panels<C>(PhantomData<C>);

impl<C: Codebook> Panels<C> {
    /// The place of d in a unit.
    const D: usize = 8 * C::Levels::GROUPS * RUNS;
}

impl<C: Codebook> Quantized for Panels<C> {
    const BITS: usize = C::Levels::BITS;
    const RUNS: usize = RUNS;
    const GROUPS: usize = C::Levels::GROUPS;
    const WEIGHTS: Weights = Weights::Shifted(C::Levels::ZERO);
    const GREATEST: usize = C::Levels::GREATEST;
    const FILE_BYTES: usize = C::BYTES;
    const SCALE_BYTES: usize = Self::D + 8 * 4;

    fn quants(block: &[u8], run: usize) -> [u32; 8] {
        let eights: [[u8; 8]; 4] = std::array::from_fn(|i| C::eight(block, 4 * run + i));
        let bytes = eights.as_flattened();
        std::array::from_fn(|i| word(bytes, 4 * i))
    }

    fn pack_scales(block: &[u8], row: usize, scales: &mut [u8]) {
        for group in 0..C::Levels::GROUPS * RUNS {
            scales[8 * group + row] = 2 * C::scale(block, group) + 1;
        }
        let d = f16_at(&C::d(block), 0) / C::Levels::DIVISOR;
        scales[Self::D + 4 * row..][..4].copy_from_slice(&d.to_le_bytes());
    }

    fn values(quants: [u8; 32], scales: &[u8], row: usize, run: usize) -> [f32; 32] {
        let d = f32::from_bits(word(scales, Self::D + 4 * row));
        std::array::from_fn(|column| {
            let group = C::Levels::GROUPS * run + column * C::Levels::GROUPS / BLOCK_COLS;
            d * f32::from(scales[8 * group + row]) * C::Levels::value(quants[column])
        })
    }

    type Head<S: Simd> = S::Floats;
    /// d, and the factors of the groups, the same one twice if there is one.
    type Factors<S: Simd> = (S::Floats, [S::Floats; 2]);

    #[inline(always)]
    unsafe fn head<S: Simd>(scales: *const u8) -> S::Floats {
        unsafe { S::f32s(scales.add(Self::D)) }
    }

    #[inline(always)]
    unsafe fn factors<S: Simd>(
        d: S::Floats,
        scales: *const u8,
        run: usize,
    ) -> (S::Floats, [S::Floats; 2]) {
        unsafe {
            let scales = scales.add(8 * C::Levels::GROUPS * run);
            let last = scales.add(8 * (C::Levels::GROUPS - 1));
            (d, [S::u8s(scales), S::u8s(last)])
        }
    }

    #[inline(always)]
    unsafe fn vector<S: Simd>(run: *const u8, i: usize) -> S::Bytes {
        unsafe {
            S::table(
                &C::Levels::TABLE,
                planes::vector::<S>(C::Levels::BITS, run, i),
            )
        }
    }

    /// Products of sums and factors are integers below 2^24, thus exact.
    #[inline(always)]
    unsafe fn add<S: Simd>(
        total: S::Floats,
        dots: [S::Ints; 2],
        (d, factors): (S::Floats, [S::Floats; 2]),
        x_scale: *const f32,
        _x_sums: *const f32,
    ) -> S::Floats {
        unsafe {
            let sum = if C::Levels::GROUPS == 2 {
                weighted::<S>([S::floats(dots[0]), S::floats(dots[1])], factors)
            } else {
                S::mul(S::floats(dots[0]), factors[0])
            };
            let product = S::mul(sum, d);
            S::add(total, S::mul(product, S::splat_f32(x_scale)))
        }
    }
}

/// The low bits of the bytes of signs: seven bits are in the file, and the eighth makes the number of ones even.
pub(super) fn even_signs(seven: u32) -> u8 {
    let seven = (seven & 127) as u8;
    seven | (seven.count_ones() as u8 & 1) << 7
}

/// The little-endian u16 of number `i` of some bytes.
pub(super) fn half(bytes: &[u8], i: usize) -> u16 {
    u16::from_le_bytes([bytes[2 * i], bytes[2 * i + 1]])
}

/// The nibble of number `i` of some bytes, the low one of a byte first.
pub(super) fn low_first(bytes: &[u8], i: usize) -> u8 {
    bytes[i / 2] >> (i % 2 * 4) & 15
}
