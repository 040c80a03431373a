//! f32 elements: exact.

use super::{Declaration, Elements};
use crate::lanes::f32x8::Strip;

pub(crate) struct Format;

impl Elements for Format {
    const BLOCK_LEN: usize = 4;
    const BLOCK_WORDS: usize = 4;

    #[inline(always)]
    unsafe fn load<S: Strip>(head: *const u32, at: usize) -> S {
        // SAFETY: the caller's.
        unsafe { S::load(head.add(at).cast()) }
    }
}

pub(super) static DECLARATION: Declaration = Declaration {
    error: 2e-6,
    tolerance: 1e-3,
    load_wgsl: wgsl!("shared/kv/f32"),
    store_wgsl: wgsl!("shared/kv/f32_store"),
    decode: |words, at| f32::from_bits(words[at]),
    encode: |values, words| {
        for (word, value) in words.iter_mut().zip(values) {
            *word = value.to_bits();
        }
    },
};
