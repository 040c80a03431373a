//! simd128, and relaxed SIMD where the module is compiled with it. A vector of a panel is two of 128 bits: rows 0 to
//! 3, and 4 to 7.

use std::arch::wasm32::*;

use super::{Simd, Weights};
use crate::{activations::Inputs, kernel::Kernel};

/// The instruction set that the module is compiled with.
#[derive(Clone, Copy)]
pub(crate) struct Wasm;

/// The two vectors of 8 rows; for inputs, two kinds of the same 4 columns.
#[derive(Clone, Copy)]
pub(crate) struct Two(v128, v128);

impl Two {
    #[inline(always)]
    fn map(self, f: impl Fn(v128) -> v128) -> Two {
        Two(f(self.0), f(self.1))
    }

    #[inline(always)]
    fn zip(self, other: Two, f: impl Fn(v128, v128) -> v128) -> Two {
        Two(f(self.0, other.0), f(self.1, other.1))
    }

    #[inline(always)]
    fn same(v: v128) -> Two {
        Two(v, v)
    }
}

/// Widens 8 u16.
#[inline(always)]
fn widen_u16(v: v128) -> Two {
    Two(u32x4_extend_low_u16x8(v), u32x4_extend_high_u16x8(v))
}

/// Reads and widens 8 u8.
#[inline(always)]
unsafe fn widen_u8(at: *const u8) -> Two {
    widen_u16(unsafe { u16x8_load_extend_u8x8(at) })
}

/// 8 f16, any.
#[cold]
#[inline(never)]
fn any_f16s(halves: v128) -> Two {
    let signs = widen_u16(halves).map(|v| v128_and(i32x4_shl(v, 16), i32x4_splat(i32::MIN)));
    let bits = widen_u16(halves).map(|v| i32x4_shl(v128_and(v, i32x4_splat(0x7fff)), 13));
    let magnitude = bits.map(|bits| {
        let one = i32x4_splat(113 << 23);
        // Subnormal: the implicit one of 2^-14 is added, then subtracted.
        let subnormal = f32x4_sub(v128_or(bits, one), one);
        let normal = i32x4_add(bits, i32x4_splat(112 << 23));
        let infinite = v128_or(bits, i32x4_splat(0x7f80_0000));
        let is_subnormal = i32x4_lt(bits, i32x4_splat(1 << 23));
        let is_infinite = i32x4_ge(bits, i32x4_splat(31 << 23));
        let finite = v128_bitselect(subnormal, normal, is_subnormal);
        v128_bitselect(infinite, finite, is_infinite)
    });
    signs.zip(magnitude, |sign, magnitude| v128_or(sign, magnitude))
}

#[cfg(target_feature = "relaxed-simd")]
type Sum = (Two, Two);
#[cfg(not(target_feature = "relaxed-simd"))]
type Sum = Two;

impl Simd for Wasm {
    type Bytes = Two;
    type Ints = Two;
    type Floats = Two;
    type Input = Two;
    /// With relaxed SIMD, the second is to be subtracted.
    type Sum = Sum;

    #[inline(always)]
    unsafe fn load(at: *const u8) -> Two {
        unsafe { Two(v128_load(at.cast()), v128_load(at.add(16).cast())) }
    }

    #[inline(always)]
    unsafe fn splat(byte: u8) -> Two {
        Two::same(u8x16_splat(byte))
    }

    #[inline(always)]
    unsafe fn and(a: Two, b: Two) -> Two {
        a.zip(b, |a, b| v128_and(a, b))
    }

    #[inline(always)]
    unsafe fn or(a: Two, b: Two) -> Two {
        a.zip(b, |a, b| v128_or(a, b))
    }

    #[inline(always)]
    unsafe fn shl(a: Two, bits: u32) -> Two {
        if bits == 0 {
            return a;
        }
        a.map(|a| i16x8_shl(a, bits))
    }

    #[inline(always)]
    unsafe fn shr(a: Two, bits: u32) -> Two {
        if bits == 0 {
            return a;
        }
        a.map(|a| u16x8_shr(a, bits))
    }

    #[inline(always)]
    unsafe fn table(table: &[i8; 16], indices: Two) -> Two {
        let t = table;
        let table = i8x16(
            t[0], t[1], t[2], t[3], t[4], t[5], t[6], t[7], t[8], t[9], t[10], t[11], t[12], t[13],
            t[14], t[15],
        );
        #[cfg(target_feature = "relaxed-simd")]
        return indices.map(|indices| i8x16_relaxed_swizzle(table, indices));
        #[cfg(not(target_feature = "relaxed-simd"))]
        indices.map(|indices| i8x16_swizzle(table, indices))
    }

    #[inline(always)]
    unsafe fn floats(ints: Two) -> Two {
        ints.map(|v| f32x4_convert_i32x4(v))
    }

    /// The quants; for signed weights, the positive ones and the magnitudes of the negative ones.
    #[cfg(target_feature = "relaxed-simd")]
    #[inline(always)]
    unsafe fn input(x: &Inputs, weights: Weights, at: usize) -> Two {
        unsafe {
            match weights {
                Weights::Signed => {
                    let signs = x.signs.add(2 * at);
                    Two(
                        v128_load32_splat(signs.cast()),
                        v128_load32_splat(signs.add(4).cast()),
                    )
                }
                _ => Two::same(v128_load32_splat(x.quants.add(at).cast())),
            }
        }
    }

    #[cfg(target_feature = "relaxed-simd")]
    #[inline(always)]
    unsafe fn begin(weights: Weights, offset: *const i32) -> Sum {
        unsafe {
            let zero = Two::same(i32x4_splat(0));
            match weights {
                Weights::Shifted(_) => (Two::same(v128_load32_splat(offset.cast())), zero),
                _ => (zero, zero),
            }
        }
    }

    /// The second operand of the instruction is always in 0..=127, where its result is defined.
    #[cfg(target_feature = "relaxed-simd")]
    #[inline(always)]
    unsafe fn dot(weights: Weights, sum: Sum, w: Two, x: Two) -> Sum {
        let dot = |w, x, sum| i32x4_relaxed_dot_i8x16_i7x16_add(w, x, sum);
        let (a, b) = sum;
        match weights {
            Weights::Signed => (
                Two(dot(w.0, x.0, a.0), dot(w.1, x.0, a.1)),
                Two(dot(w.0, x.1, b.0), dot(w.1, x.1, b.1)),
            ),
            _ => (Two(dot(x.0, w.0, a.0), dot(x.0, w.1, a.1)), b),
        }
    }

    #[cfg(target_feature = "relaxed-simd")]
    #[inline(always)]
    unsafe fn end(weights: Weights, sum: Sum, _offset: *const i32) -> Two {
        match weights {
            Weights::Signed => sum.0.zip(sum.1, |a, b| i32x4_sub(a, b)),
            _ => sum.0,
        }
    }

    /// Columns 0 and 2, then 1 and 3, as pairs of i16.
    #[cfg(not(target_feature = "relaxed-simd"))]
    #[inline(always)]
    unsafe fn input(x: &Inputs, _weights: Weights, at: usize) -> Two {
        unsafe {
            let pairs = x.pairs.add(at);
            Two(
                v128_load32_splat(pairs.cast()),
                v128_load32_splat(pairs.add(2).cast()),
            )
        }
    }

    #[cfg(not(target_feature = "relaxed-simd"))]
    #[inline(always)]
    unsafe fn begin(weights: Weights, offset: *const i32) -> Sum {
        Two::same(match weights {
            Weights::Shifted(_) => unsafe { v128_load32_splat(offset.cast()) },
            _ => i32x4_splat(0),
        })
    }

    #[cfg(not(target_feature = "relaxed-simd"))]
    #[inline(always)]
    unsafe fn dot(weights: Weights, sum: Sum, w: Two, x: Two) -> Sum {
        let add = |w, sum| {
            let (even, odd) = match weights {
                Weights::Signed => (i16x8_shr(i16x8_shl(w, 8), 8), i16x8_shr(w, 8)),
                _ => (v128_and(w, i16x8_splat(0xff)), u16x8_shr(w, 8)),
            };
            let sum = i32x4_add(sum, i32x4_dot_i16x8(even, x.0));
            i32x4_add(sum, i32x4_dot_i16x8(odd, x.1))
        };
        Two(add(w.0, sum.0), add(w.1, sum.1))
    }

    #[cfg(not(target_feature = "relaxed-simd"))]
    #[inline(always)]
    unsafe fn end(_weights: Weights, sum: Sum, _offset: *const i32) -> Two {
        sum
    }

    #[inline(always)]
    unsafe fn flush(sum: Sum) -> Sum {
        sum
    }

    #[inline(always)]
    unsafe fn f32s(at: *const u8) -> Two {
        unsafe { Self::load(at) }
    }

    #[inline(always)]
    unsafe fn f16s(at: *const u8) -> Two {
        let halves = unsafe { v128_load(at.cast()) };
        // Without the sign, exponents 1 to 30 are 0x0800..0xf800.
        let exponents = i16x8_sub(i16x8_shl(halves, 1), i16x8_splat(0x0800));
        if v128_any_true(u16x8_sub_sat(exponents, u16x8_splat(0xefff))) {
            return any_f16s(halves);
        }
        let signed = Two(
            i32x4_extend_low_i16x8(halves),
            i32x4_extend_high_i16x8(halves),
        );
        signed.map(|v| {
            let bits = v128_and(i32x4_shl(v, 13), i32x4_splat(0x8fff_e000_u32 as i32));
            i32x4_add(bits, i32x4_splat(112 << 23))
        })
    }

    #[inline(always)]
    unsafe fn bf16s(at: *const u8) -> Two {
        let upper = unsafe { v128_load(at.cast()) };
        let zero = i16x8_splat(0);
        Two(
            i16x8_shuffle::<8, 0, 9, 1, 10, 2, 11, 3>(upper, zero),
            i16x8_shuffle::<8, 4, 9, 5, 10, 6, 11, 7>(upper, zero),
        )
    }

    #[inline(always)]
    unsafe fn exponents(at: *const u8) -> Two {
        unsafe { widen_u8(at) }.map(|e| {
            let one = i32x4_splat(1);
            let normal = i32x4_shl(i32x4_sub(e, one), 23);
            // 2^-128 and 2^-127 are subnormal: bits 21 and 22.
            let subnormal = i32x4_shl(i32x4_add(e, one), 21);
            v128_bitselect(normal, subnormal, i32x4_gt(e, one))
        })
    }

    #[inline(always)]
    unsafe fn u8s(at: *const u8) -> Two {
        unsafe { widen_u8(at) }.map(|v| f32x4_convert_i32x4(v))
    }

    #[inline(always)]
    unsafe fn i8s(at: *const u8) -> Two {
        let v = unsafe { i16x8_load_extend_i8x8(at.cast()) };
        Two(i32x4_extend_low_i16x8(v), i32x4_extend_high_i16x8(v)).map(|v| f32x4_convert_i32x4(v))
    }

    #[inline(always)]
    unsafe fn u4s(at: *const u8) -> [Two; 2] {
        let bytes = unsafe { widen_u8(at) };
        [
            bytes.map(|v| f32x4_convert_i32x4(v128_and(v, i32x4_splat(15)))),
            bytes.map(|v| f32x4_convert_i32x4(u32x4_shr(v, 4))),
        ]
    }

    #[inline(always)]
    unsafe fn splat_f32(at: *const f32) -> Two {
        Two::same(unsafe { v128_load32_splat(at.cast()) })
    }

    #[inline(always)]
    unsafe fn zero() -> Two {
        Two::same(f32x4_splat(0.0))
    }

    #[inline(always)]
    unsafe fn add(a: Two, b: Two) -> Two {
        a.zip(b, |a, b| f32x4_add(a, b))
    }

    #[inline(always)]
    unsafe fn sub(a: Two, b: Two) -> Two {
        a.zip(b, |a, b| f32x4_sub(a, b))
    }

    #[inline(always)]
    unsafe fn mul(a: Two, b: Two) -> Two {
        a.zip(b, |a, b| f32x4_mul(a, b))
    }

    #[inline(always)]
    unsafe fn store(a: Two, at: *mut f32) {
        unsafe {
            v128_store(at.cast(), a.0);
            v128_store(at.add(4).cast(), a.1);
        }
    }

    #[inline(never)]
    unsafe fn tile<K: Kernel, const T: usize>(
        panel: *const u8,
        cols: usize,
        x: &Inputs,
        token: usize,
        out: *mut f32,
    ) {
        unsafe { K::tile::<Wasm, T>(panel, cols, x, token, out) }
    }
}
