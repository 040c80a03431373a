//! Eight lanes in two vectors of WebAssembly.

use std::arch::wasm32::*;

use super::{F32x8, LANES, Strip};

/// Lanes 0 to 3 and 4 to 7.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Simd128(v128, v128);

macro_rules! each {
    ($($name:ident => $intrinsic:ident)*) => {$(
        #[inline(always)]
        fn $name(self, other: Self) -> Self {
            Self($intrinsic(self.0, other.0), $intrinsic(self.1, other.1))
        }
    )*};
}

/// Lanes 0 to 3 or 4 to 7.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Half(v128);

/// The values of four finite f16, each extended with its sign to 32 bits.
#[inline(always)]
fn finite_f16_to_f32(extended: v128) -> v128 {
    // The shift leaves copies of the sign between it and the exponent.
    let bits = v128_and(i32x4_shl(extended, 13), i32x4_splat(0x8fff_e000_u32 as i32));
    f32x4_mul(bits, f32x4_splat(f32::from_bits((127 + 112) << 23)))
}

/// The values of four f16, each extended with its sign to 32 bits, as `scalar::f16_to_f32` computes them.
#[inline(always)]
fn f16_to_f32(extended: v128) -> v128 {
    let value = finite_f16_to_f32(extended);
    let endless = f32x4_ge(f32x4_abs(value), f32x4_splat(65536.0));
    v128_or(value, v128_and(endless, i32x4_splat(0x7f80_0000)))
}

/// Sums of neighbours: two of `a`, then two of `b`.
#[inline(always)]
fn add_neighbours(a: v128, b: v128) -> v128 {
    f32x4_add(
        i32x4_shuffle::<0, 2, 4, 6>(a, b),
        i32x4_shuffle::<1, 3, 5, 7>(a, b),
    )
}

impl F32x8 for Simd128 {
    const QUERIES: usize = 3;
    const TOKENS: usize = 2;
    type Strip = Half;

    #[inline(always)]
    fn splat(value: f32) -> Self {
        Self(f32x4_splat(value), f32x4_splat(value))
    }

    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self {
        // SAFETY: the caller's.
        unsafe { Self(v128_load(from.cast()), v128_load(from.add(4).cast())) }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        // SAFETY: the caller's.
        unsafe {
            v128_store(to.cast(), self.0);
            v128_store(to.add(4).cast(), self.1);
        }
    }

    #[inline(always)]
    fn loads_f16(first: u16) -> bool {
        first & 0x7fff < 0x7c00
    }

    #[inline(always)]
    unsafe fn decode_f16(from: *const u32, vectors: usize, to: *mut f32) {
        // Nearly all elements are finite, so the largest size is compared once, not each element.
        let mut largest = i16x8_splat(0);
        for vector in 0..vectors {
            // SAFETY: the caller's.
            unsafe {
                let halves = v128_load(from.add(vector * LANES / 2).cast());
                largest = i16x8_max(largest, v128_and(halves, i16x8_splat(0x7fff)));
                let low = finite_f16_to_f32(i32x4_extend_low_i16x8(halves));
                let high = finite_f16_to_f32(i32x4_extend_high_i16x8(halves));
                Self(low, high).store(to.add(vector * LANES));
            }
        }
        if v128_any_true(i16x8_gt(largest, i16x8_splat(0x7bff))) {
            for at in (0..vectors * LANES).step_by(Half::LANES) {
                // SAFETY: the caller's.
                unsafe {
                    let halves = i32x4_load_extend_i16x4(from.add(at / 2).cast());
                    Half(f16_to_f32(halves)).store(to.add(at));
                }
            }
        }
    }

    each! {
        add => f32x4_add
        sub => f32x4_sub
        mul => f32x4_mul
        div => f32x4_div
        less => f32x4_lt
        and => v128_and
        xor => v128_xor
        add_bits => i32x4_add
        sub_bits => i32x4_sub
    }

    #[inline(always)]
    fn max(self, other: Self) -> Self {
        // `pmax(a, b)` is `a < b ? b : a`.
        Self(f32x4_pmax(other.0, self.0), f32x4_pmax(other.1, self.1))
    }

    #[inline(always)]
    fn min(self, other: Self) -> Self {
        // `pmin(a, b)` is `b < a ? b : a`.
        Self(f32x4_pmin(other.0, self.0), f32x4_pmin(other.1, self.1))
    }

    #[inline(always)]
    fn select(mask: Self, yes: Self, no: Self) -> Self {
        Self(
            v128_bitselect(yes.0, no.0, mask.0),
            v128_bitselect(yes.1, no.1, mask.1),
        )
    }

    #[inline(always)]
    fn any_negative(self) -> bool {
        i32x4_bitmask(v128_or(self.0, self.1)) != 0
    }

    #[inline(always)]
    fn shift_left<const BITS: i32>(self) -> Self {
        Self(
            i32x4_shl(self.0, BITS as u32),
            i32x4_shl(self.1, BITS as u32),
        )
    }

    #[inline(always)]
    fn shift_right<const BITS: i32>(self) -> Self {
        Self(
            i32x4_shr(self.0, BITS as u32),
            i32x4_shr(self.1, BITS as u32),
        )
    }

    #[inline(always)]
    fn bits_to_f32(self) -> Self {
        Self(f32x4_convert_i32x4(self.0), f32x4_convert_i32x4(self.1))
    }

    #[inline(always)]
    fn swap_pairs(self) -> Self {
        Self(
            i32x4_shuffle::<1, 0, 3, 2>(self.0, self.0),
            i32x4_shuffle::<1, 0, 3, 2>(self.1, self.1),
        )
    }
}

impl Strip for Half {
    const LANES: usize = 4;

    #[inline(always)]
    fn splat(value: f32) -> Self {
        Self(f32x4_splat(value))
    }

    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self {
        // SAFETY: the caller's.
        Self(unsafe { v128_load(from.cast()) })
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        // SAFETY: the caller's.
        unsafe { v128_store(to.cast(), self.0) }
    }

    #[inline(always)]
    unsafe fn load_f16(from: *const u32) -> Self {
        // SAFETY: the caller's.
        Self(finite_f16_to_f32(unsafe {
            i32x4_load_extend_i16x4(from.cast())
        }))
    }

    #[inline(always)]
    unsafe fn load_i8(from: *const u32) -> Self {
        // SAFETY: the caller's.
        let bytes = unsafe { v128_load32_zero(from) };
        let words = i32x4_extend_low_i16x8(i16x8_extend_low_i8x16(bytes));
        Self(f32x4_convert_i32x4(words))
    }

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        Self(f32x4_add(self.0, other.0))
    }

    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        Self(f32x4_mul(self.0, other.0))
    }

    #[inline(always)]
    fn sum_each(strips: [Self; 4]) -> [f32; 4] {
        let [a, b, c, d] = strips;
        let pairs = [add_neighbours(a.0, b.0), add_neighbours(c.0, d.0)];
        let mut sums = [0.0; 4];
        // SAFETY: the array has four values.
        unsafe { v128_store(sums.as_mut_ptr().cast(), add_neighbours(pairs[0], pairs[1])) };
        sums
    }
}
