//! The vector operations that quantize a block of 32 inputs. All implementations give equal bits.

use crate::inputs::BLOCK;

/// 3 * 2^22: a float of this size has no bits after the point, so that adding it rounds to an integer, ties to even,
/// which is then in its lowest bits.
const ROUND: f32 = 12_582_912.0;

/// Operations of one instruction set.
///
/// # Safety
/// The instruction set must be there; all functions inline into ones that have it enabled.
pub(crate) trait Quantize {
    /// The greatest magnitude, as bits. They compare like magnitudes, and NaN is the greatest.
    unsafe fn greatest(x: &[f32; BLOCK]) -> i32;
    /// Writes `x * inverse`, rounded, which must be in -127..=127. Gives the sum of each half.
    unsafe fn quants(x: &[f32; BLOCK], inverse: f32, to: &mut [i8; BLOCK]) -> [i32; 2];
}

/// Plain Rust.
#[cfg(not(target_feature = "simd128"))]
pub(crate) struct Portable;

#[cfg(not(target_feature = "simd128"))]
impl Quantize for Portable {
    #[inline(always)]
    unsafe fn greatest(x: &[f32; BLOCK]) -> i32 {
        let magnitudes = x.iter().map(|x| x.to_bits() as i32 & i32::MAX);
        magnitudes.fold(0, i32::max)
    }

    #[inline(always)]
    unsafe fn quants(x: &[f32; BLOCK], inverse: f32, to: &mut [i8; BLOCK]) -> [i32; 2] {
        let mut sums = [0; 2];
        for (i, (to, x)) in to.iter_mut().zip(x).enumerate() {
            *to = (x * inverse + ROUND).to_bits() as i8;
            sums[i / (BLOCK / 2)] += i32::from(*to);
        }
        sums
    }
}

/// AVX2.
#[cfg(target_arch = "x86_64")]
pub(crate) struct Avx2;

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use std::arch::x86_64::*;

    use super::{Avx2, BLOCK, Quantize, ROUND};

    impl Quantize for Avx2 {
        #[inline(always)]
        unsafe fn greatest(x: &[f32; BLOCK]) -> i32 {
            unsafe {
                let magnitude = |i: usize| {
                    let x = _mm256_loadu_si256(x.as_ptr().add(8 * i).cast());
                    _mm256_and_si256(x, _mm256_set1_epi32(i32::MAX))
                };
                let low = _mm256_max_epi32(magnitude(0), magnitude(1));
                let high = _mm256_max_epi32(magnitude(2), magnitude(3));
                let eight = _mm256_max_epi32(low, high);
                let four = _mm_max_epi32(
                    _mm256_castsi256_si128(eight),
                    _mm256_extracti128_si256::<1>(eight),
                );
                let two = _mm_max_epi32(four, _mm_shuffle_epi32::<0b01_00_11_10>(four));
                let one = _mm_max_epi32(two, _mm_shuffle_epi32::<0b10_11_00_01>(two));
                _mm_cvtsi128_si32(one)
            }
        }

        #[inline(always)]
        unsafe fn quants(x: &[f32; BLOCK], inverse: f32, to: &mut [i8; BLOCK]) -> [i32; 2] {
            unsafe {
                let quants = |i: usize| {
                    let x = _mm256_loadu_ps(x.as_ptr().add(8 * i));
                    let x = _mm256_mul_ps(x, _mm256_set1_ps(inverse));
                    let rounded = _mm256_add_ps(x, _mm256_set1_ps(ROUND));
                    let bits = _mm256_castps_si256(rounded);
                    _mm256_sub_epi32(bits, _mm256_set1_epi32(ROUND.to_bits() as i32))
                };
                let (a, b, c, d) = (quants(0), quants(1), quants(2), quants(3));
                // Packing works on halves of vectors: words are in the order a, b, c, d of each half.
                let words = _mm256_packs_epi16(_mm256_packs_epi32(a, b), _mm256_packs_epi32(c, d));
                let order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
                let bytes = _mm256_permutevar8x32_epi32(words, order);
                _mm256_storeu_si256(to.as_mut_ptr().cast(), bytes);
                let sums = _mm256_hadd_epi32(_mm256_add_epi32(a, b), _mm256_add_epi32(c, d));
                let sums = _mm256_hadd_epi32(sums, sums);
                let sums = _mm_add_epi32(
                    _mm256_castsi256_si128(sums),
                    _mm256_extracti128_si256::<1>(sums),
                );
                [_mm_cvtsi128_si32(sums), _mm_extract_epi32::<1>(sums)]
            }
        }
    }
}

/// simd128.
#[cfg(target_feature = "simd128")]
pub(crate) struct Wasm;

#[cfg(target_feature = "simd128")]
pub(crate) use wasm::{pairs, signs};

#[cfg(target_feature = "simd128")]
mod wasm {
    use std::arch::wasm32::*;

    use super::{BLOCK, Quantize, ROUND, Wasm};

    impl Quantize for Wasm {
        #[inline(always)]
        unsafe fn greatest(x: &[f32; BLOCK]) -> i32 {
            let mut greatest = i32x4_splat(0);
            for x in x.as_chunks::<4>().0 {
                let x = unsafe { v128_load(x.as_ptr().cast()) };
                greatest = i32x4_max(greatest, v128_and(x, i32x4_splat(i32::MAX)));
            }
            let two = i32x4_max(greatest, i32x4_shuffle::<2, 3, 0, 1>(greatest, greatest));
            i32x4_extract_lane::<0>(i32x4_max(two, i32x4_shuffle::<1, 0, 3, 2>(two, two)))
        }

        #[inline(always)]
        unsafe fn quants(x: &[f32; BLOCK], inverse: f32, to: &mut [i8; BLOCK]) -> [i32; 2] {
            let mut sums = [0; 2];
            for (half, sum) in sums.iter_mut().enumerate() {
                let quants = |i: usize| {
                    let x = unsafe { v128_load(x.as_ptr().add(16 * half + 4 * i).cast()) };
                    let x = f32x4_mul(x, f32x4_splat(inverse));
                    let rounded = f32x4_add(x, f32x4_splat(ROUND));
                    i32x4_sub(rounded, u32x4_splat(ROUND.to_bits()))
                };
                let low = i16x8_narrow_i32x4(quants(0), quants(1));
                let high = i16x8_narrow_i32x4(quants(2), quants(3));
                let bytes = i8x16_narrow_i16x8(low, high);
                unsafe { v128_store(to.as_mut_ptr().add(16 * half).cast(), bytes) };
                let four = i32x4_extadd_pairwise_i16x8(i16x8_add(low, high));
                let two = i32x4_add(four, i32x4_shuffle::<2, 3, 0, 1>(four, four));
                *sum = i32x4_extract_lane::<0>(two) + i32x4_extract_lane::<1>(two);
            }
            sums
        }
    }

    /// Widens quants; of 4, the third changes places with the second.
    #[inline(always)]
    pub(crate) fn pairs(quants: &[i8; BLOCK], to: &mut [i16; BLOCK]) {
        for (q, to) in quants
            .as_chunks::<8>()
            .0
            .iter()
            .zip(to.as_chunks_mut::<8>().0)
        {
            unsafe {
                let q = i16x8_load_extend_i8x8(q.as_ptr());
                let pairs = i16x8_shuffle::<0, 2, 1, 3, 4, 6, 5, 7>(q, q);
                v128_store(to.as_mut_ptr().cast(), pairs);
            }
        }
    }

    /// Splits each 4 quants: the positive ones or zero, then the magnitudes of the negative ones or zero.
    #[inline(always)]
    pub(crate) fn signs(quants: &[i8; BLOCK], to: &mut [u8; 2 * BLOCK]) {
        for (q, to) in quants
            .as_chunks::<16>()
            .0
            .iter()
            .zip(to.as_chunks_mut::<32>().0)
        {
            unsafe {
                let q = v128_load(q.as_ptr().cast());
                let positive = i8x16_max(q, i8x16_splat(0));
                let negative = i8x16_max(i8x16_neg(q), i8x16_splat(0));
                let first = i32x4_shuffle::<0, 4, 1, 5>(positive, negative);
                let second = i32x4_shuffle::<2, 6, 3, 7>(positive, negative);
                v128_store(to.as_mut_ptr().cast(), first);
                v128_store(to.as_mut_ptr().add(16).cast(), second);
            }
        }
    }
}
