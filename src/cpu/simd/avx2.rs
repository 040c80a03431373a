//! AVX2 with F16C, and the same with the dot products of AVX-VNNI.

use std::arch::x86_64::*;

use super::{Kernel, Simd, Weights};
use crate::inputs::Inputs;

/// AVX2 and F16C.
#[derive(Clone, Copy)]
pub(crate) struct Avx2;

/// AVX2, F16C and AVX-VNNI.
#[derive(Clone, Copy)]
pub(crate) struct AvxVnni;

/// Sums of AVX2: products of pairs in i16 until `flush`, then i32.
#[derive(Clone, Copy)]
pub(crate) struct PairSum {
    pairs: __m256i,
    sum: __m256i,
}

/// The shift is an immediate of the instruction.
macro_rules! shift {
    ($shift:ident, $a:expr, $bits:expr) => {
        match $bits {
            0 => $a,
            1 => $shift::<1>($a),
            2 => $shift::<2>($a),
            3 => $shift::<3>($a),
            4 => $shift::<4>($a),
            5 => $shift::<5>($a),
            6 => $shift::<6>($a),
            _ => $shift::<7>($a),
        }
    };
}

/// The operations that both instruction sets have in common.
macro_rules! avx2_operations {
    ($tile:ident) => {
        type Bytes = __m256i;
        type Ints = __m256i;
        type Floats = __m256;
        type Input = __m256i;

        #[inline(always)]
        unsafe fn load(at: *const u8) -> __m256i {
            unsafe { _mm256_loadu_si256(at.cast()) }
        }

        #[inline(always)]
        unsafe fn splat(byte: u8) -> __m256i {
            unsafe { _mm256_set1_epi8(byte as i8) }
        }

        #[inline(always)]
        unsafe fn and(a: __m256i, b: __m256i) -> __m256i {
            unsafe { _mm256_and_si256(a, b) }
        }

        #[inline(always)]
        unsafe fn or(a: __m256i, b: __m256i) -> __m256i {
            unsafe { _mm256_or_si256(a, b) }
        }

        #[inline(always)]
        unsafe fn shl(a: __m256i, bits: u32) -> __m256i {
            unsafe { shift!(_mm256_slli_epi16, a, bits) }
        }

        #[inline(always)]
        unsafe fn shr(a: __m256i, bits: u32) -> __m256i {
            unsafe { shift!(_mm256_srli_epi16, a, bits) }
        }

        #[inline(always)]
        unsafe fn table(table: &[i8; 16], indices: __m256i) -> __m256i {
            unsafe {
                let table = _mm_loadu_si128(table.as_ptr().cast());
                _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(table), indices)
            }
        }

        #[inline(always)]
        unsafe fn inputs(x: &Inputs, _weights: Weights, at: usize) -> *const u8 {
            unsafe { x.quants.add(at).cast() }
        }

        #[inline(always)]
        unsafe fn input(x: *const u8, _weights: Weights, at: usize) -> __m256i {
            unsafe { _mm256_set1_epi32(x.add(at).cast::<i32>().read_unaligned()) }
        }

        #[inline(always)]
        unsafe fn f32s(at: *const u8) -> __m256 {
            unsafe { _mm256_loadu_ps(at.cast()) }
        }

        #[inline(always)]
        unsafe fn f16s(at: *const u8) -> __m256 {
            unsafe { _mm256_cvtph_ps(_mm_loadu_si128(at.cast())) }
        }

        #[inline(always)]
        unsafe fn bf16s(at: *const u8) -> __m256 {
            unsafe {
                let upper = _mm256_cvtepu16_epi32(_mm_loadu_si128(at.cast()));
                _mm256_castsi256_ps(_mm256_slli_epi32::<16>(upper))
            }
        }

        #[inline(always)]
        unsafe fn exponents(at: *const u8) -> __m256 {
            unsafe {
                let e = _mm256_cvtepu8_epi32(_mm_loadl_epi64(at.cast()));
                let one = _mm256_set1_epi32(1);
                let normal = _mm256_slli_epi32::<23>(_mm256_sub_epi32(e, one));
                // 2^-128 and 2^-127 are subnormal: bits 21 and 22.
                let subnormal = _mm256_slli_epi32::<21>(_mm256_add_epi32(e, one));
                let is_normal = _mm256_cmpgt_epi32(e, one);
                _mm256_castsi256_ps(_mm256_blendv_epi8(subnormal, normal, is_normal))
            }
        }

        #[inline(always)]
        unsafe fn u8s(at: *const u8) -> __m256 {
            unsafe { _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_loadl_epi64(at.cast()))) }
        }

        #[inline(always)]
        unsafe fn i8s(at: *const u8) -> __m256 {
            unsafe { _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64(at.cast()))) }
        }

        #[inline(always)]
        unsafe fn u4s(at: *const u8) -> [__m256; 2] {
            unsafe {
                let bytes = _mm256_cvtepu8_epi32(_mm_loadl_epi64(at.cast()));
                let lower = _mm256_and_si256(bytes, _mm256_set1_epi32(15));
                let upper = _mm256_srli_epi32::<4>(bytes);
                [_mm256_cvtepi32_ps(lower), _mm256_cvtepi32_ps(upper)]
            }
        }

        #[inline(always)]
        unsafe fn floats(ints: __m256i) -> __m256 {
            unsafe { _mm256_cvtepi32_ps(ints) }
        }

        #[inline(always)]
        unsafe fn splat_f32(at: *const f32) -> __m256 {
            unsafe { _mm256_set1_ps(*at) }
        }

        #[inline(always)]
        unsafe fn zero() -> __m256 {
            unsafe { _mm256_setzero_ps() }
        }

        #[inline(always)]
        unsafe fn add(a: __m256, b: __m256) -> __m256 {
            unsafe { _mm256_add_ps(a, b) }
        }

        #[inline(always)]
        unsafe fn sub(a: __m256, b: __m256) -> __m256 {
            unsafe { _mm256_sub_ps(a, b) }
        }

        #[inline(always)]
        unsafe fn mul(a: __m256, b: __m256) -> __m256 {
            unsafe { _mm256_mul_ps(a, b) }
        }

        #[inline(always)]
        unsafe fn store(a: __m256, at: *mut f32) {
            unsafe { _mm256_storeu_ps(at, a) }
        }

        #[inline(always)]
        unsafe fn tile<K: Kernel, const T: usize>(
            panel: *const u8,
            cols: usize,
            x: &Inputs,
            token: usize,
            out: *mut f32,
        ) {
            unsafe { $tile::<K, T>(panel, cols, x, token, out) }
        }
    };
}

impl Simd for Avx2 {
    avx2_operations!(tile_avx2);

    type Sum = PairSum;

    #[inline(always)]
    unsafe fn begin(_weights: Weights, _offset: *const i32) -> PairSum {
        let zero = unsafe { _mm256_setzero_si256() };
        PairSum {
            pairs: zero,
            sum: zero,
        }
    }

    #[inline(always)]
    unsafe fn dot(weights: Weights, sum: PairSum, w: __m256i, x: __m256i) -> PairSum {
        unsafe {
            if weights == Weights::Signed {
                // |w| is at most 128 as an unsigned byte: pairs reach 2 * 128 * 127 and do not saturate.
                let pairs = _mm256_maddubs_epi16(_mm256_abs_epi8(w), _mm256_sign_epi8(x, w));
                let products = _mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
                PairSum {
                    sum: _mm256_add_epi32(sum.sum, products),
                    ..sum
                }
            } else {
                let pairs = _mm256_maddubs_epi16(w, x);
                PairSum {
                    pairs: _mm256_add_epi16(sum.pairs, pairs),
                    ..sum
                }
            }
        }
    }

    #[inline(always)]
    unsafe fn flush(sum: PairSum) -> PairSum {
        unsafe {
            let products = _mm256_madd_epi16(sum.pairs, _mm256_set1_epi16(1));
            PairSum {
                pairs: _mm256_setzero_si256(),
                sum: _mm256_add_epi32(sum.sum, products),
            }
        }
    }

    #[inline(always)]
    unsafe fn end(weights: Weights, sum: PairSum, offset: *const i32) -> __m256i {
        unsafe {
            match weights {
                Weights::Shifted(_) => _mm256_add_epi32(sum.sum, _mm256_set1_epi32(*offset)),
                _ => sum.sum,
            }
        }
    }
}

impl Simd for AvxVnni {
    avx2_operations!(tile_avx_vnni);

    type Sum = __m256i;

    #[inline(always)]
    unsafe fn begin(weights: Weights, offset: *const i32) -> __m256i {
        unsafe {
            match weights {
                Weights::Unsigned => _mm256_setzero_si256(),
                _ => _mm256_set1_epi32(*offset),
            }
        }
    }

    #[inline(always)]
    unsafe fn dot(weights: Weights, sum: __m256i, w: __m256i, x: __m256i) -> __m256i {
        unsafe {
            let w = match weights {
                // w + 128; the offset has -128 of each input.
                Weights::Signed => _mm256_xor_si256(w, _mm256_set1_epi8(-128)),
                _ => w,
            };
            _mm256_dpbusd_avx_epi32(sum, w, x)
        }
    }

    #[inline(always)]
    unsafe fn flush(sum: __m256i) -> __m256i {
        sum
    }

    #[inline(always)]
    unsafe fn end(_weights: Weights, sum: __m256i, _offset: *const i32) -> __m256i {
        sum
    }
}

#[target_feature(enable = "avx2,f16c")]
unsafe fn tile_avx2<K: Kernel, const T: usize>(
    panel: *const u8,
    cols: usize,
    x: &Inputs,
    token: usize,
    out: *mut f32,
) {
    unsafe { K::tile::<Avx2, T>(panel, cols, x, token, out) }
}

#[target_feature(enable = "avx2,f16c,avxvnni")]
unsafe fn tile_avx_vnni<K: Kernel, const T: usize>(
    panel: *const u8,
    cols: usize,
    x: &Inputs,
    token: usize,
    out: *mut f32,
) {
    unsafe { K::tile::<AvxVnni, T>(panel, cols, x, token, out) }
}
