//! Eight lanes in one vector of AVX2, with the conversions of F16C. Only for functions that enable both.

use std::arch::x86_64::*;

use super::{F32x8, LANES, Strip};

/// One vector. A value exists only where the machine has AVX2 and F16C: `dispatch` starts kernels with this type
/// after it detected them. That is what makes the intrinsics below sound.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Avx2(__m256);

macro_rules! each_float {
    ($($name:ident => $intrinsic:ident)*) => {$(
        #[inline(always)]
        fn $name(self, other: Self) -> Self {
            // SAFETY: there is AVX2, as said at the type.
            Self(unsafe { $intrinsic(self.0, other.0) })
        }
    )*};
}

macro_rules! each_int {
    ($($name:ident => $intrinsic:ident)*) => {$(
        #[inline(always)]
        fn $name(self, other: Self) -> Self {
            // SAFETY: there is AVX2, as said at the type.
            Self(unsafe {
                let (a, b) = (_mm256_castps_si256(self.0), _mm256_castps_si256(other.0));
                _mm256_castsi256_ps($intrinsic(a, b))
            })
        }
    )*};
}

// SAFETY of the blocks without a comment: there is AVX2 and F16C, as said at the type, and memory is the caller's.
impl F32x8 for Avx2 {
    const QUERIES: usize = 3;
    const TOKENS: usize = 4;
    type Strip = Self;

    #[inline(always)]
    fn splat(value: f32) -> Self {
        Self(unsafe { _mm256_set1_ps(value) })
    }

    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self {
        Self(unsafe { _mm256_loadu_ps(from) })
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        unsafe { _mm256_storeu_ps(to, self.0) }
    }

    each_float! {
        add => _mm256_add_ps
        sub => _mm256_sub_ps
        mul => _mm256_mul_ps
        div => _mm256_div_ps
        max => _mm256_max_ps
        min => _mm256_min_ps
        and => _mm256_and_ps
        xor => _mm256_xor_ps
    }

    each_int! {
        add_bits => _mm256_add_epi32
        sub_bits => _mm256_sub_epi32
    }

    #[inline(always)]
    fn less(self, other: Self) -> Self {
        Self(unsafe { _mm256_cmp_ps::<_CMP_LT_OQ>(self.0, other.0) })
    }

    #[inline(always)]
    fn select(mask: Self, yes: Self, no: Self) -> Self {
        Self(unsafe { _mm256_blendv_ps(no.0, yes.0, mask.0) })
    }

    #[inline(always)]
    fn any_negative(self) -> bool {
        unsafe { _mm256_movemask_ps(self.0) != 0 }
    }

    #[inline(always)]
    fn shift_left<const BITS: i32>(self) -> Self {
        let bits = unsafe { _mm256_slli_epi32::<BITS>(_mm256_castps_si256(self.0)) };
        Self(unsafe { _mm256_castsi256_ps(bits) })
    }

    #[inline(always)]
    fn shift_right<const BITS: i32>(self) -> Self {
        let bits = unsafe { _mm256_srai_epi32::<BITS>(_mm256_castps_si256(self.0)) };
        Self(unsafe { _mm256_castsi256_ps(bits) })
    }

    #[inline(always)]
    fn bits_to_f32(self) -> Self {
        Self(unsafe { _mm256_cvtepi32_ps(_mm256_castps_si256(self.0)) })
    }

    #[inline(always)]
    fn swap_pairs(self) -> Self {
        Self(unsafe { _mm256_permute_ps::<0b10_11_00_01>(self.0) })
    }
}

impl Strip for Avx2 {
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
        Self(unsafe { _mm256_cvtph_ps(_mm_loadu_si128(from.cast())) })
    }

    #[inline(always)]
    unsafe fn load_i8(from: *const u32) -> Self {
        Self(unsafe { _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64(from.cast()))) })
    }

    #[inline(always)]
    fn sum_each(strips: [Self; 4]) -> [f32; 4] {
        let [a, b, c, d] = strips;
        let mut sums = [0.0; 4];
        unsafe {
            let ab = _mm256_hadd_ps(a.0, b.0);
            let cd = _mm256_hadd_ps(c.0, d.0);
            let halves = _mm256_hadd_ps(ab, cd);
            let low = _mm256_castps256_ps128(halves);
            let high = _mm256_extractf128_ps::<1>(halves);
            _mm_storeu_ps(sums.as_mut_ptr(), _mm_add_ps(low, high));
        }
        sums
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
