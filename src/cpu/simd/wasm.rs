//! simd128, and relaxed SIMD where the module is compiled with it. Longer than other files: one trait for one instruction
//! set.

use std::arch::wasm32::*;

use super::{Kernel, Simd, Weights};
use crate::inputs::Inputs;

/// Rows `4 * HALF..4 * HALF + 4` of panels, in vectors of 128 bits, with the instruction set that the module is
/// compiled with.
///
/// The compiler for wasm moves each operation to its only use, so that operations on two vectors with common operands
/// do not alternate: these operands would not stay in registers.
#[derive(Clone, Copy)]
pub(crate) struct Wasm<const HALF: usize, const PAIRS: bool>;

/// Reads 4 bytes of 8.
#[inline(always)]
unsafe fn load_half<const HALF: usize>(at: *const u8) -> v128 {
    unsafe { v128_load32_zero(at.add(4 * HALF).cast()) }
}

/// Reads and widens 4 u8.
#[inline(always)]
unsafe fn widen_u8<const HALF: usize>(at: *const u8) -> v128 {
    u32x4_extend_low_u16x8(u16x8_extend_low_u8x16(unsafe { load_half::<HALF>(at) }))
}

/// 4 f16, any.
#[inline(always)]
fn any_f16s(halves: v128) -> v128 {
    let wide = u32x4_extend_low_u16x8(halves);
    let sign = v128_and(i32x4_shl(wide, 16), i32x4_splat(i32::MIN));
    let bits = i32x4_shl(v128_and(wide, i32x4_splat(0x7fff)), 13);
    let one = i32x4_splat(113 << 23);
    // Subnormal: the implicit one of 2^-14 is added, then subtracted.
    let subnormal = f32x4_sub(v128_or(bits, one), one);
    let normal = i32x4_add(bits, i32x4_splat(112 << 23));
    let infinite = v128_or(bits, i32x4_splat(0x7f80_0000));
    let is_subnormal = i32x4_lt(bits, i32x4_splat(1 << 23));
    let is_infinite = i32x4_ge(bits, i32x4_splat(31 << 23));
    let finite = v128_bitselect(subnormal, normal, is_subnormal);
    v128_or(sign, v128_bitselect(infinite, finite, is_infinite))
}

impl<const HALF: usize, const PAIRS: bool> Simd for Wasm<HALF, PAIRS> {
    type Bytes = v128;
    type Ints = v128;
    type Floats = v128;
    type Input = Input;
    type Sum = Sum;

    #[inline(always)]
    unsafe fn load(at: *const u8) -> v128 {
        unsafe { v128_load(at.add(16 * HALF).cast()) }
    }

    #[inline(always)]
    unsafe fn splat(byte: u8) -> v128 {
        u8x16_splat(byte)
    }

    #[inline(always)]
    unsafe fn and(a: v128, b: v128) -> v128 {
        v128_and(a, b)
    }

    #[inline(always)]
    unsafe fn or(a: v128, b: v128) -> v128 {
        v128_or(a, b)
    }

    #[inline(always)]
    unsafe fn shl(a: v128, bits: u32) -> v128 {
        if bits == 0 { a } else { i16x8_shl(a, bits) }
    }

    #[inline(always)]
    unsafe fn shr(a: v128, bits: u32) -> v128 {
        if bits == 0 { a } else { u16x8_shr(a, bits) }
    }

    #[inline(always)]
    unsafe fn table(table: &[i8; 16], indices: v128) -> v128 {
        let t = table;
        let table = i8x16(
            t[0], t[1], t[2], t[3], t[4], t[5], t[6], t[7], t[8], t[9], t[10], t[11], t[12], t[13],
            t[14], t[15],
        );
        instructions::table(table, indices)
    }

    #[inline(always)]
    unsafe fn inputs(x: &Inputs, weights: Weights, at: usize) -> *const u8 {
        unsafe { instructions::inputs(x, weights, at) }
    }

    #[inline(always)]
    unsafe fn input(x: *const u8, weights: Weights, at: usize) -> Input {
        unsafe { instructions::input(x, weights, at) }
    }

    #[inline(always)]
    unsafe fn begin(weights: Weights, offset: *const i32) -> Sum {
        unsafe { instructions::begin::<PAIRS>(weights, offset) }
    }

    #[inline(always)]
    unsafe fn dot(weights: Weights, sum: Sum, w: v128, x: Input) -> Sum {
        instructions::dot::<PAIRS>(weights, sum, w, x)
    }

    #[inline(always)]
    unsafe fn flush(sum: Sum) -> Sum {
        instructions::flush::<PAIRS>(sum)
    }

    #[inline(always)]
    unsafe fn end(weights: Weights, sum: Sum, _offset: *const i32) -> v128 {
        instructions::end::<PAIRS>(weights, sum)
    }

    #[inline(always)]
    unsafe fn f32s(at: *const u8) -> v128 {
        unsafe { Self::load(at) }
    }

    #[inline(always)]
    unsafe fn f16s(at: *const u8) -> v128 {
        let halves = unsafe { v128_load64_zero(at.add(8 * HALF).cast()) };
        let wide = i32x4_extend_low_i16x8(halves);
        // Without the sign, exponents 1 to 30 are 0x0800_0000..0xf800_0000.
        let exponents = i32x4_sub(i32x4_shl(wide, 17), i32x4_splat(0x0800_0000));
        if v128_any_true(u32x4_gt(exponents, u32x4_splat(0xefff_ffff))) {
            return any_f16s(halves);
        }
        let bits = v128_and(i32x4_shl(wide, 13), u32x4_splat(0x8fff_e000));
        i32x4_add(bits, i32x4_splat(112 << 23))
    }

    /// Same as [`Simd::f16s`] of each, with one test for all.
    #[inline(always)]
    unsafe fn f16_columns(at: *const u8) -> [v128; 4] {
        unsafe {
            let at = at.add(8 * HALF);
            let first = v128_load64_lane::<1>(v128_load64_zero(at.cast()), at.add(16).cast());
            let second = v128_load64_zero(at.add(32).cast());
            let second = v128_load64_lane::<1>(second, at.add(48).cast());
            // Without the sign, exponents 1 to 30 are 0x0800..0xf800.
            let exponents = |v| i16x8_sub(i16x8_shl(v, 1), i16x8_splat(0x0800));
            let greatest = u16x8_max(exponents(first), exponents(second));
            if v128_any_true(u16x8_gt(greatest, u16x8_splat(0xefff))) {
                return [
                    any_f16s(first),
                    any_f16s(i64x2_shuffle::<1, 0>(first, first)),
                    any_f16s(second),
                    any_f16s(i64x2_shuffle::<1, 0>(second, second)),
                ];
            }
            let float = |wide| {
                let bits = v128_and(i32x4_shl(wide, 13), u32x4_splat(0x8fff_e000));
                i32x4_add(bits, i32x4_splat(112 << 23))
            };
            [
                float(i32x4_extend_low_i16x8(first)),
                float(i32x4_extend_high_i16x8(first)),
                float(i32x4_extend_low_i16x8(second)),
                float(i32x4_extend_high_i16x8(second)),
            ]
        }
    }

    #[inline(always)]
    unsafe fn bf16s(at: *const u8) -> v128 {
        let upper = unsafe { v128_load64_zero(at.add(8 * HALF).cast()) };
        i32x4_shl(u32x4_extend_low_u16x8(upper), 16)
    }

    #[inline(always)]
    unsafe fn exponents(at: *const u8) -> v128 {
        let e = unsafe { widen_u8::<HALF>(at) };
        let one = i32x4_splat(1);
        let normal = i32x4_shl(i32x4_sub(e, one), 23);
        // 2^-128 and 2^-127 are subnormal: bits 21 and 22.
        let subnormal = i32x4_shl(i32x4_add(e, one), 21);
        v128_bitselect(normal, subnormal, i32x4_gt(e, one))
    }

    #[inline(always)]
    unsafe fn u8s(at: *const u8) -> v128 {
        f32x4_convert_i32x4(unsafe { widen_u8::<HALF>(at) })
    }

    #[inline(always)]
    unsafe fn i8s(at: *const u8) -> v128 {
        let bytes = unsafe { load_half::<HALF>(at) };
        f32x4_convert_i32x4(i32x4_extend_low_i16x8(i16x8_extend_low_i8x16(bytes)))
    }

    #[inline(always)]
    unsafe fn u4s(at: *const u8) -> [v128; 2] {
        let bytes = unsafe { widen_u8::<HALF>(at) };
        [
            f32x4_convert_i32x4(v128_and(bytes, i32x4_splat(15))),
            f32x4_convert_i32x4(u32x4_shr(bytes, 4)),
        ]
    }

    #[inline(always)]
    unsafe fn floats(ints: v128) -> v128 {
        f32x4_convert_i32x4(ints)
    }

    #[inline(always)]
    unsafe fn splat_f32(at: *const f32) -> v128 {
        unsafe { v128_load32_splat(at.cast()) }
    }

    #[inline(always)]
    unsafe fn zero() -> v128 {
        f32x4_splat(0.0)
    }

    #[inline(always)]
    unsafe fn add(a: v128, b: v128) -> v128 {
        f32x4_add(a, b)
    }

    #[inline(always)]
    unsafe fn sub(a: v128, b: v128) -> v128 {
        f32x4_sub(a, b)
    }

    #[inline(always)]
    unsafe fn mul(a: v128, b: v128) -> v128 {
        f32x4_mul(a, b)
    }

    #[inline(always)]
    unsafe fn store(a: v128, at: *mut f32) {
        unsafe { v128_store(at.add(4 * HALF).cast(), a) }
    }

    /// Computes both halves of a tile.
    #[inline(always)]
    unsafe fn tile<K: Kernel, const T: usize>(
        panel: *const u8,
        cols: usize,
        x: &Inputs,
        token: usize,
        out: *mut f32,
    ) {
        unsafe {
            half::<K, T, 0, PAIRS>(panel, cols, x, token, out);
            half::<K, T, 1, PAIRS>(panel, cols, x, token, out);
        }
    }
}

#[inline(never)]
unsafe fn half<K: Kernel, const T: usize, const HALF: usize, const PAIRS: bool>(
    panel: *const u8,
    cols: usize,
    x: &Inputs,
    token: usize,
    out: *mut f32,
) {
    unsafe { K::tile::<Wasm<HALF, PAIRS>, T>(panel, cols, x, token, out) }
}

use instructions::{Input, Sum};

/// simd128: even and odd columns apart, as i16.
#[cfg(not(target_feature = "relaxed-simd"))]
mod instructions {
    use super::*;

    /// Columns 0 and 2, columns 1 and 3, as pairs of i16.
    pub(super) type Input = [v128; 2];
    /// The sums of even and of odd columns: additions wait less for each other.
    pub(super) type Sum = [v128; 2];

    #[inline(always)]
    pub(super) fn table(table: v128, indices: v128) -> v128 {
        i8x16_swizzle(table, indices)
    }

    #[inline(always)]
    pub(super) unsafe fn inputs(x: &Inputs, _weights: Weights, at: usize) -> *const u8 {
        unsafe { x.pairs.add(at).cast() }
    }

    #[inline(always)]
    pub(super) unsafe fn input(x: *const u8, _weights: Weights, at: usize) -> Input {
        unsafe {
            let pairs = x.add(2 * at);
            [
                v128_load32_splat(pairs.cast()),
                v128_load32_splat(pairs.add(4).cast()),
            ]
        }
    }

    #[inline(always)]
    pub(super) unsafe fn begin<const PAIRS: bool>(weights: Weights, offset: *const i32) -> Sum {
        let zero = i32x4_splat(0);
        match weights {
            Weights::Shifted(_) => [unsafe { v128_load32_splat(offset.cast()) }, zero],
            _ => [zero, zero],
        }
    }

    #[inline(always)]
    pub(super) fn dot<const PAIRS: bool>(weights: Weights, sum: Sum, w: v128, x: Input) -> Sum {
        let (even, odd) = match weights {
            Weights::Signed => (i16x8_shr(i16x8_shl(w, 8), 8), i16x8_shr(w, 8)),
            _ => (v128_and(w, i16x8_splat(0xff)), u16x8_shr(w, 8)),
        };
        [
            i32x4_add(sum[0], i32x4_dot_i16x8(even, x[0])),
            i32x4_add(sum[1], i32x4_dot_i16x8(odd, x[1])),
        ]
    }

    #[inline(always)]
    pub(super) fn flush<const PAIRS: bool>(sum: Sum) -> Sum {
        sum
    }

    #[inline(always)]
    pub(super) fn end<const PAIRS: bool>(_weights: Weights, sum: Sum) -> v128 {
        i32x4_add(sum[0], sum[1])
    }
}

/// Relaxed SIMD. The second operand of its dot products is always in 0..=127, where their result is defined.
#[cfg(target_feature = "relaxed-simd")]
mod instructions {
    use super::*;

    /// The quants; for signed weights, the positive ones, and the magnitudes of the negative ones.
    pub(super) type Input = [v128; 2];
    /// The second is to be subtracted; with `PAIRS`, it has sums of pairs in i16.
    pub(super) type Sum = [v128; 2];

    #[inline(always)]
    pub(super) fn table(table: v128, indices: v128) -> v128 {
        i8x16_relaxed_swizzle(table, indices)
    }

    #[inline(always)]
    pub(super) unsafe fn inputs(x: &Inputs, weights: Weights, at: usize) -> *const u8 {
        unsafe {
            match weights {
                Weights::Signed => x.signs.add(2 * at),
                _ => x.quants.add(at).cast(),
            }
        }
    }

    #[inline(always)]
    pub(super) unsafe fn input(x: *const u8, weights: Weights, at: usize) -> Input {
        unsafe {
            match weights {
                Weights::Signed => {
                    let signs = x.add(2 * at);
                    [
                        v128_load32_splat(signs.cast()),
                        v128_load32_splat(signs.add(4).cast()),
                    ]
                }
                _ => [v128_load32_splat(x.add(at).cast()); 2],
            }
        }
    }

    #[inline(always)]
    pub(super) unsafe fn begin<const PAIRS: bool>(weights: Weights, offset: *const i32) -> Sum {
        let zero = i32x4_splat(0);
        match weights {
            Weights::Shifted(_) => [unsafe { v128_load32_splat(offset.cast()) }, zero],
            _ => [zero, zero],
        }
    }

    #[inline(always)]
    pub(super) fn dot<const PAIRS: bool>(weights: Weights, [a, b]: Sum, w: v128, x: Input) -> Sum {
        if PAIRS {
            let dots = i16x8_relaxed_dot_i8x16_i7x16;
            return match weights {
                Weights::Signed => {
                    let pairs = i16x8_sub(dots(w, x[0]), dots(w, x[1]));
                    [i32x4_add(a, i32x4_extadd_pairwise_i16x8(pairs)), b]
                }
                _ => [a, i16x8_add(b, dots(x[0], w))],
            };
        }
        match weights {
            Weights::Signed => [
                i32x4_relaxed_dot_i8x16_i7x16_add(w, x[0], a),
                i32x4_relaxed_dot_i8x16_i7x16_add(w, x[1], b),
            ],
            _ => [i32x4_relaxed_dot_i8x16_i7x16_add(x[0], w, a), b],
        }
    }

    #[inline(always)]
    pub(super) fn flush<const PAIRS: bool>(sum: Sum) -> Sum {
        if PAIRS {
            let [a, b] = sum;
            return [i32x4_add(a, i32x4_extadd_pairwise_i16x8(b)), i32x4_splat(0)];
        }
        sum
    }

    #[inline(always)]
    pub(super) fn end<const PAIRS: bool>(weights: Weights, sum: Sum) -> v128 {
        match weights {
            Weights::Signed if !PAIRS => i32x4_sub(sum[0], sum[1]),
            _ => sum[0],
        }
    }
}

/// Whether the engine adds a dot product of bytes in one instruction. If not, it is better to add pairs: the engine
/// then has instructions for pairs.
#[cfg(all(feature = "module", target_feature = "relaxed-simd"))]
pub(crate) fn adds_dots() -> bool {
    // Outside of 0..=127 the result tells the instructions apart: those for pairs saturate twice at -32768.
    let dots =
        i32x4_relaxed_dot_i8x16_i7x16_add(i8x16_splat(-128), i8x16_splat(-1), i32x4_splat(0));
    i32x4_extract_lane::<0>(dots) != -65536
}

/// Without relaxed SIMD there are only pairs, and one way to add them.
#[cfg(all(feature = "module", not(target_feature = "relaxed-simd")))]
pub(crate) fn adds_dots() -> bool {
    true
}
