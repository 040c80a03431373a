//! Eight f32 lanes over the vectors of the target, and the choice of the fastest ones that the machine has. Every
//! implementation computes the same bits; functions of values are in `functions`.

#[cfg(target_arch = "x86_64")]
mod avx2;
mod dispatch;
#[cfg(any(test, not(all(target_arch = "wasm32", target_feature = "simd128"))))]
mod scalar;
#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
mod simd128;
#[cfg(test)]
mod tests;

#[cfg(test)]
pub(crate) use dispatch::{Backend, backends, run_on};
pub(crate) use dispatch::{Kernel, run};
#[cfg(test)]
pub(crate) use scalar::{Scalar, f16_to_f32};

/// Lanes of a vector.
pub(crate) const LANES: usize = 8;

/// Eight f32 values. Arithmetic is IEEE 754 with one rounding per operation, and nothing is fused. The payload of a
/// NaN that arithmetic makes is not defined. Code that is generic over this trait must inline into the function that
/// enables the vectors, so it has no closures in its loops.
pub(crate) trait F32x8: Copy {
    /// Queries whose sums fit into registers together.
    const QUERIES: usize;
    /// Tokens, of four, whose scores with these queries fit into registers together.
    const TOKENS: usize;
    /// What a register holds of a vector.
    type Strip: Strip;

    /// All lanes are `value`.
    fn splat(value: f32) -> Self;
    /// # Safety
    /// Eight values are readable.
    unsafe fn load(from: *const f32) -> Self;
    /// # Safety
    /// Eight values are writable.
    unsafe fn store(self, to: *mut f32);
    /// Whether [`Strip::load_f16`] decodes all f16 of a head whose first one is `first`. A head with NaN begins with NaN.
    #[inline(always)]
    fn loads_f16(_first: u16) -> bool {
        true
    }
    /// Decodes this number of vectors of eight f16.
    /// # Safety
    /// The words are readable, and the values writable.
    #[inline(always)]
    unsafe fn decode_f16(from: *const u32, vectors: usize, to: *mut f32) {
        for at in (0..vectors * LANES).step_by(Self::Strip::LANES) {
            // SAFETY: the caller's.
            unsafe { Self::Strip::load_f16(from.add(at / 2)).store(to.add(at)) };
        }
    }

    fn add(self, other: Self) -> Self;
    fn sub(self, other: Self) -> Self;
    fn mul(self, other: Self) -> Self;
    fn div(self, other: Self) -> Self;
    /// `self > other ? self : other`: a NaN in either gives `other`.
    fn max(self, other: Self) -> Self;
    /// `self < other ? self : other`: a NaN in either gives `other`.
    fn min(self, other: Self) -> Self;
    /// All bits of a lane are set where `self < other`.
    fn less(self, other: Self) -> Self;
    /// `yes` in lanes of `mask` with all bits set, `no` in lanes with none.
    fn select(mask: Self, yes: Self, no: Self) -> Self;
    /// Whether the sign bit of a lane is set.
    fn any_negative(self) -> bool;

    fn and(self, other: Self) -> Self;
    fn xor(self, other: Self) -> Self;
    /// The bits as wrapping i32.
    fn add_bits(self, other: Self) -> Self;
    /// The bits as wrapping i32.
    fn sub_bits(self, other: Self) -> Self;
    /// Shifts the bits to the left.
    fn shift_left<const BITS: i32>(self) -> Self;
    /// Shifts the bits to the right as i32, which keeps the sign.
    fn shift_right<const BITS: i32>(self) -> Self;
    /// The nearest f32 of the bits as i32.
    fn bits_to_f32(self) -> Self;

    /// Swaps lanes 0 and 1, 2 and 3, and so on.
    fn swap_pairs(self) -> Self;
    /// The lanes.
    #[inline(always)]
    fn to_array(self) -> [f32; LANES] {
        let mut lanes = [0.0; LANES];
        // SAFETY: the array has eight values.
        unsafe { self.store(lanes.as_mut_ptr()) };
        lanes
    }

    /// The lanes are `lanes`.
    #[inline(always)]
    fn from_array(lanes: [f32; LANES]) -> Self {
        // SAFETY: the array has eight values.
        unsafe { Self::load(lanes.as_ptr()) }
    }

    /// Up to eight values; further lanes are 0.
    #[inline(always)]
    fn load_part(values: &[f32]) -> Self {
        let mut lanes = [0.0; LANES];
        lanes[..values.len()].copy_from_slice(values);
        Self::from_array(lanes)
    }

    /// Writes the first lanes, up to eight.
    #[inline(always)]
    fn store_part(self, to: &mut [f32]) {
        let lanes = self.to_array();
        to.copy_from_slice(&lanes[..to.len()]);
    }

    /// The sum of the lanes, in the order of [`sum`].
    #[inline(always)]
    fn sum(self) -> f32 {
        sum(self.to_array())
    }

    /// The largest lane. NaN lanes count or not depending on their place, which is the same everywhere.
    #[inline(always)]
    fn peak(self) -> f32 {
        let mut lanes = self.to_array();
        let mut half = LANES / 2;
        while half > 0 {
            for i in 0..half {
                let (a, b) = (lanes[i], lanes[i + half]);
                lanes[i] = if a > b { a } else { b };
            }
            half /= 2;
        }
        lanes[0]
    }
}

/// The lanes of a vector that one register holds: all of them, or a half. Operations have the bits of those of [`F32x8`].
pub(crate) trait Strip: Copy {
    /// Lanes of a strip; divides [`LANES`].
    const LANES: usize;

    /// All lanes are `value`.
    fn splat(value: f32) -> Self;
    /// # Safety
    /// The values are readable.
    unsafe fn load(from: *const f32) -> Self;
    /// # Safety
    /// The values are writable.
    unsafe fn store(self, to: *mut f32);
    /// Decodes f16, the first in the low bits of the first word. All are finite, unless [`F32x8::loads_f16`] says that
    /// they need not be.
    /// # Safety
    /// The words are readable.
    unsafe fn load_f16(from: *const u32) -> Self;
    /// Decodes i8, the first in the low bits of the first word.
    /// # Safety
    /// The words are readable.
    unsafe fn load_i8(from: *const u32) -> Self;
    fn add(self, other: Self) -> Self;
    fn mul(self, other: Self) -> Self;
    /// The sum of the lanes of each strip, in the order of [`sum`]. Those of a vector are the sums of its strips.
    fn sum_each(strips: [Self; 4]) -> [f32; 4];
}

/// All lanes have the bits of `value`.
#[inline(always)]
pub(crate) fn splat_bits<L: F32x8>(value: u32) -> L {
    L::splat(f32::from_bits(value))
}

/// The order of every sum of eight lanes: neighbours, then neighbouring pairs, then the halves.
#[inline(always)]
pub(crate) fn sum(v: [f32; LANES]) -> f32 {
    ((v[0] + v[1]) + (v[2] + v[3])) + ((v[4] + v[5]) + (v[6] + v[7]))
}
