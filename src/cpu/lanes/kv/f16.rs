//! f16 elements, two in a word; values beyond ±65504 are clamped.

use super::{Declaration, Elements};
use crate::half::{f16_from_f32, f16_to_f32};
use crate::lanes::f32x8::{F32x8, Strip};

pub(crate) struct Format;

impl Elements for Format {
    const BLOCK_LEN: usize = 4;
    const BLOCK_WORDS: usize = 2;

    #[inline(always)]
    unsafe fn load<S: Strip>(head: *const u32, at: usize) -> S {
        // SAFETY: the caller's.
        unsafe { S::load_f16(head.add(at / 2)) }
    }

    #[inline(always)]
    unsafe fn loads<L: F32x8>(head: *const u32) -> bool {
        // SAFETY: the caller's.
        L::loads_f16(unsafe { *head } as u16)
    }

    #[inline(always)]
    unsafe fn decode<L: F32x8>(head: *const u32, vectors: usize, to: *mut f32) {
        // SAFETY: the caller's.
        unsafe { L::decode_f16(head, vectors, to) }
    }
}

pub(super) static DECLARATION: Declaration = Declaration {
    error: 1.0 / 2000.0,
    tolerance: 4e-3,
    load_wgsl: wgsl!("shared/kv/f16"),
    store_wgsl: wgsl!("shared/kv/f16_store"),
    decode: |words, at| f16_to_f32((words[at / 2] >> (16 * (at % 2))) as u16),
    encode: |values, words| {
        for (word, pair) in words.iter_mut().zip(values.chunks_exact(2)) {
            *word = u32::from(f16_bits(pair[0])) | u32::from(f16_bits(pair[1])) << 16;
        }
    },
};

/// The nearest f16, even on ties; values beyond the range become the largest one.
fn f16_bits(value: f32) -> u16 {
    f16_from_f32(value.clamp(-MAX, MAX))
}

/// The largest f16.
const MAX: f32 = 65504.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_f16_is_stored_as_itself() {
        for half in 0..=u16::MAX {
            let value = f16_to_f32(half);
            if half & 0x7c00 != 0x7c00 {
                assert_eq!(f16_bits(value), half, "{value}");
            } else if half & 0x3ff == 0 {
                assert!(value.is_infinite());
                assert_eq!(f16_bits(value), (half & 0x8000) | 0x7bff);
            } else {
                assert!(value.is_nan() && f16_to_f32(f16_bits(value)).is_nan());
            }
        }
    }

    #[test]
    fn values_between_two_f16_become_the_nearest_even_one() {
        for half in 0..0x7bffu16 {
            let (a, b) = (f16_to_f32(half), f16_to_f32(half + 1));
            let middle = (a + b) / 2.0;
            assert_eq!(f16_bits(middle), half + half % 2, "{middle}");
            assert_eq!(f16_bits(middle.next_down()), half);
            assert_eq!(f16_bits(-middle.next_up()), (half + 1) | 0x8000);
        }
        assert_eq!(f16_bits(65519.0), 0x7bff);
        assert_eq!(f16_bits(f32::NEG_INFINITY), 0xfbff);
    }
}
