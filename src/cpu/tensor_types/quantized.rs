//! The panels of quantized types: from blocks of the file to units of a panel, exact values, and the parts of
//! the kernels that differ by type. Knows neither inputs nor instruction sets.

use std::ops::Range;

use super::planes;
use crate::simd::{Simd, Weights};

/// A type of quantized blocks. A unit of a panel has a block of the file of each of 8 rows: the planes of the
/// quants (see [`planes`]) of each run of 32 columns, then the scales, in groups of 8 rows.
pub(crate) trait Quantized {
    /// Bits of a quant.
    const BITS: usize;
    /// Runs of 32 columns in a unit.
    const RUNS: usize;
    /// Dot products of a run: 1, or 2 of 16 columns each.
    const GROUPS: usize = 1;
    /// The result of [`Quantized::vector`].
    const WEIGHTS: Weights;
    /// The greatest of the weights if they are not signed.
    const GREATEST: usize = (1 << Self::BITS) - 1;
    /// Whether [`Quantized::add`] reads sums of the inputs.
    const SUMS: bool = false;
    /// Bytes of a block in the file.
    const FILE_BYTES: usize;
    /// Bytes of the scales of a unit, those of 8 rows.
    const SCALE_BYTES: usize;

    /// Bytes of the planes of a run.
    const RUN_BYTES: usize = 32 * Self::BITS;
    /// Vectors whose products add up without saturation; a power of two that divides a group.
    const FLUSH: usize = {
        let mut vectors = 8 / Self::GROUPS;
        while vectors * Self::GREATEST > 129 {
            vectors /= 2;
        }
        vectors
    };

    /// The quants of a run: byte j of word i is that of column 4 * i + j.
    fn quants(block: &[u8], run: usize) -> [u32; 8];
    /// Writes the scales of a block to those of a unit.
    fn pack_scales(block: &[u8], row: usize, scales: &mut [u8]);
    /// The exact values of a run, from its quants and the scales of the unit.
    fn values(quants: [u8; 32], scales: &[u8], row: usize, run: usize) -> [f32; 32];

    /// The part that all runs of a unit share.
    type Head<S: Simd>: Copy;
    /// The factors of a run.
    type Factors<S: Simd>: Copy;

    /// # Safety
    /// The same conditions as for [`Simd`].
    unsafe fn head<S: Simd>(scales: *const u8) -> Self::Head<S>;
    /// # Safety
    /// The same conditions as for [`Simd`].
    unsafe fn factors<S: Simd>(
        head: Self::Head<S>,
        scales: *const u8,
        run: usize,
    ) -> Self::Factors<S>;

    /// The weights of columns `4 * i..4 * i + 4` of a run.
    ///
    /// # Safety
    /// The same conditions as for [`Simd`].
    #[inline(always)]
    unsafe fn vector<S: Simd>(run: *const u8, i: usize) -> S::Bytes {
        unsafe { planes::vector::<S>(Self::BITS, run, i) }
    }

    /// Adds the products of a run. `dots` are those of its groups, the same one twice if it has one.
    ///
    /// # Safety
    /// The same conditions as for [`Simd`]. `x_scale` is the scale of the inputs, `x_sums` are the sums of the groups' inputs.
    unsafe fn add<S: Simd>(
        total: S::Floats,
        dots: [S::Ints; 2],
        factors: Self::Factors<S>,
        x_scale: *const f32,
        x_sums: *const f32,
    ) -> S::Floats;
}

/// `total + dot * factor * x_scale`, for formats with one factor.
#[inline(always)]
pub(super) unsafe fn add_scaled<S: Simd>(
    total: S::Floats,
    dot: S::Ints,
    factor: S::Floats,
    x_scale: *const f32,
) -> S::Floats {
    unsafe {
        let product = S::mul(S::floats(dot), factor);
        S::add(total, S::mul(product, S::splat_f32(x_scale)))
    }
}

/// `dots[0] * factors[0] + dots[1] * factors[1]`. Exact if these are integers below 2^24.
#[inline(always)]
pub(super) unsafe fn weighted<S: Simd>(dots: [S::Floats; 2], factors: [S::Floats; 2]) -> S::Floats {
    unsafe { S::add(S::mul(dots[0], factors[0]), S::mul(dots[1], factors[1])) }
}

/// The quants of a run of a file block, column by column.
pub(super) fn columns<Q: Quantized>(block: &[u8], run: usize) -> [u8; 32] {
    let words = Q::quants(block, run);
    std::array::from_fn(|i| words[i / 4].to_le_bytes()[i % 4])
}

/// `Declaration::repack` of types whose kernels have the bytes `scale_bytes` of a file block as its scales. `push` appends the
/// quants of a run.
pub(super) fn repack_runs<Q: Quantized>(
    bytes: &[u8],
    quants: &mut Vec<u8>,
    scales: &mut Vec<u8>,
    scale_bytes: Range<usize>,
    push: impl Fn(&mut Vec<u8>, [u8; 32]),
) {
    for block in bytes.chunks_exact(Q::FILE_BYTES) {
        for run in 0..Q::RUNS {
            push(quants, columns::<Q>(block, run));
        }
        scales.extend_from_slice(&block[scale_bytes.clone()]);
    }
}

/// The little-endian word at byte `at`.
pub(super) fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// Copies the f16 at byte `at` of a block to those of 8 rows.
pub(super) fn copy_f16(block: &[u8], at: usize, row: usize, halves: &mut [u8]) {
    halves[2 * row..][..2].copy_from_slice(&block[at..at + 2]);
}

/// 16 bytes of the file that have the first 16 quants in their low nibbles and the others in their high ones.
pub(super) fn file_nibbles(bytes: &[u8]) -> [u32; 8] {
    std::array::from_fn(|i| word(bytes, i % 4 * 4) >> (i / 4 * 4) & 0x0f0f_0f0f)
}

/// A word of the file with a bit for each quant; gives one bit in each byte.
pub(super) fn file_bits(bits: u32) -> [u32; 8] {
    std::array::from_fn(|i| {
        let four = bits >> (4 * i) & 15;
        (four | four << 7 | four << 14 | four << 21) & 0x0101_0101
    })
}

/// The quants of `low`, with those of `high` from bit `bit` on.
pub(super) fn join(low: [u32; 8], high: [u32; 8], bit: u32) -> [u32; 8] {
    std::array::from_fn(|i| low[i] | high[i] << bit)
}
