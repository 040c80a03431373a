//! Eight lanes in an array: the definition of every operation, and the fallback where there are no vectors.

use super::{F32x8, LANES, Strip, sum};

/// Eight values, one after the other.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scalar([f32; LANES]);

macro_rules! lanes {
    ($i:ident => $lane:expr) => {{
        let mut out = [0.0; LANES];
        for $i in 0..LANES {
            out[$i] = $lane;
        }
        Scalar(out)
    }};
}

/// The value of an f16, exactly.
#[inline(always)]
pub(crate) fn f16_to_f32(half: u16) -> f32 {
    let half = u32::from(half);
    // The exponent and the mantissa move to their places in an f32; the product corrects the bias of the exponent
    // and normalizes subnormal values.
    let magnitude = f32::from_bits((half & 0x7fff) << 13) * f32::from_bits((127 + 112) << 23);
    let endless = if magnitude >= 65536.0 { 0x7f80_0000 } else { 0 };
    f32::from_bits(magnitude.to_bits() | endless | (half & 0x8000) << 16)
}

impl F32x8 for Scalar {
    const QUERIES: usize = 1;
    const TOKENS: usize = 4;
    type Strip = Self;

    #[inline(always)]
    fn splat(value: f32) -> Self {
        Self([value; LANES])
    }

    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self {
        // SAFETY: the caller's.
        Self(unsafe { from.cast::<[f32; LANES]>().read_unaligned() })
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        // SAFETY: the caller's.
        unsafe { to.cast::<[f32; LANES]>().write_unaligned(self.0) }
    }

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        lanes!(i => self.0[i] + other.0[i])
    }

    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        lanes!(i => self.0[i] - other.0[i])
    }

    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        lanes!(i => self.0[i] * other.0[i])
    }

    #[inline(always)]
    fn div(self, other: Self) -> Self {
        lanes!(i => self.0[i] / other.0[i])
    }

    #[inline(always)]
    fn max(self, other: Self) -> Self {
        lanes!(i => if self.0[i] > other.0[i] { self.0[i] } else { other.0[i] })
    }

    #[inline(always)]
    fn min(self, other: Self) -> Self {
        lanes!(i => if self.0[i] < other.0[i] { self.0[i] } else { other.0[i] })
    }

    #[inline(always)]
    fn less(self, other: Self) -> Self {
        lanes!(i => f32::from_bits(if self.0[i] < other.0[i] { u32::MAX } else { 0 }))
    }

    #[inline(always)]
    fn select(mask: Self, yes: Self, no: Self) -> Self {
        lanes!(i => if mask.0[i].to_bits() != 0 { yes.0[i] } else { no.0[i] })
    }

    #[inline(always)]
    fn any_negative(self) -> bool {
        let mut bits = 0;
        for lane in self.0 {
            bits |= lane.to_bits();
        }
        bits >> 31 != 0
    }

    #[inline(always)]
    fn and(self, other: Self) -> Self {
        lanes!(i => f32::from_bits(self.0[i].to_bits() & other.0[i].to_bits()))
    }

    #[inline(always)]
    fn xor(self, other: Self) -> Self {
        lanes!(i => f32::from_bits(self.0[i].to_bits() ^ other.0[i].to_bits()))
    }

    #[inline(always)]
    fn add_bits(self, other: Self) -> Self {
        lanes!(i => f32::from_bits(self.0[i].to_bits().wrapping_add(other.0[i].to_bits())))
    }

    #[inline(always)]
    fn sub_bits(self, other: Self) -> Self {
        lanes!(i => f32::from_bits(self.0[i].to_bits().wrapping_sub(other.0[i].to_bits())))
    }

    #[inline(always)]
    fn shift_left<const BITS: i32>(self) -> Self {
        lanes!(i => f32::from_bits(self.0[i].to_bits() << BITS))
    }

    #[inline(always)]
    fn shift_right<const BITS: i32>(self) -> Self {
        lanes!(i => f32::from_bits((self.0[i].to_bits() as i32 >> BITS) as u32))
    }

    #[inline(always)]
    fn bits_to_f32(self) -> Self {
        lanes!(i => self.0[i].to_bits() as i32 as f32)
    }

    #[inline(always)]
    fn swap_pairs(self) -> Self {
        lanes!(i => self.0[i ^ 1])
    }
}

impl Strip for Scalar {
    const LANES: usize = LANES;

    #[inline(always)]
    fn splat(value: f32) -> Self {
        F32x8::splat(value)
    }

    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self {
        // SAFETY: the caller's.
        unsafe { F32x8::load(from) }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        // SAFETY: the caller's.
        unsafe { F32x8::store(self, to) }
    }

    #[inline(always)]
    unsafe fn load_f16(from: *const u32) -> Self {
        // SAFETY: the caller's.
        let words = unsafe { from.cast::<[u32; 4]>().read_unaligned() };
        lanes!(i => f16_to_f32((words[i / 2] >> (16 * (i % 2))) as u16))
    }

    #[inline(always)]
    unsafe fn load_i8(from: *const u32) -> Self {
        // SAFETY: the caller's.
        let words = unsafe { from.cast::<[u32; 2]>().read_unaligned() };
        lanes!(i => f32::from((words[i / 4] >> (8 * (i % 4))) as i8))
    }

    #[inline(always)]
    fn sum_each(strips: [Self; 4]) -> [f32; 4] {
        let [a, b, c, d] = strips;
        [sum(a.0), sum(b.0), sum(c.0), sum(d.0)]
    }

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        F32x8::add(self, other)
    }

    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        F32x8::mul(self, other)
    }
}
