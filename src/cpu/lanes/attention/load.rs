//! Vectors of K and V in each format of the cache.

use crate::lanes::{
    f32x8::{F32x8, LANES, splat_bits},
    kv::{BLOCK, BLOCK_WORDS, KvFormat, PAGE_TOKENS},
};

/// How eight elements of a head are read.
pub(super) trait Elements {
    /// Elements `8 * vector..8 * vector + 8` of the head whose first word is `head`.
    /// # Safety
    /// The head has these elements.
    unsafe fn load<L: F32x8>(head: *const u32, vector: usize) -> L;
}

pub(super) struct F32;
pub(super) struct F16;
pub(super) struct Q8;

impl Elements for F32 {
    #[inline(always)]
    unsafe fn load<L: F32x8>(head: *const u32, vector: usize) -> L {
        // SAFETY: the caller's.
        unsafe { L::load(head.add(vector * LANES).cast()) }
    }
}

impl Elements for F16 {
    #[inline(always)]
    unsafe fn load<L: F32x8>(head: *const u32, vector: usize) -> L {
        // SAFETY: the caller's.
        unsafe { L::load_f16(head.add(vector * LANES / 2)) }
    }
}

impl Elements for Q8 {
    #[inline(always)]
    unsafe fn load<L: F32x8>(head: *const u32, vector: usize) -> L {
        let vectors = BLOCK / LANES;
        // SAFETY: the caller's.
        unsafe {
            let block = head.add(vector / vectors * BLOCK_WORDS);
            let quants = L::load_i8(block.add(1 + vector % vectors * LANES / 4));
            quants.mul(splat_bits(*block))
        }
    }
}

/// One head of the K or of the V of a page.
#[derive(Clone, Copy)]
pub(super) struct PageHead {
    /// The first word of the head of the page's first token.
    pub(super) head: *const u32,
    /// Words from a token's head to the next token's.
    pub(super) stride: usize,
}

impl PageHead {
    /// A vector of a token's head.
    /// # Safety
    /// `E` is the format of the words, and the head has the vector.
    #[inline(always)]
    pub(super) unsafe fn load<E: Elements, L: F32x8>(self, token: usize, vector: usize) -> L {
        // SAFETY: the caller's.
        unsafe { E::load(self.head.add(token * self.stride), vector) }
    }
}

/// Decodes the heads of tokens `begin..end` into `to`, f32 with `vectors` vectors per token, of which elements beyond
/// `head_dim` become 0.
/// # Safety
/// The page is in `format` and in memory.
#[inline(always)]
pub(super) unsafe fn decode<E: Elements, L: F32x8>(
    page: PageHead,
    [begin, end]: [usize; 2],
    head_dim: usize,
    format: KvFormat,
    to: &mut [f32],
) {
    let vectors = head_dim.div_ceil(LANES);
    assert!(end <= PAGE_TOKENS && to.len() >= end * vectors * LANES);
    for token in begin..end {
        for vector in 0..head_dim / LANES {
            // SAFETY: the caller's, and `to` is as long as asserted.
            unsafe {
                let lanes: L = page.load::<E, L>(token, vector);
                lanes.store(to.as_mut_ptr().add((token * vectors + vector) * LANES));
            }
        }
        if !head_dim.is_multiple_of(LANES) {
            // Four elements are left: four or two words.
            let words = format.words(4);
            let mut part = [0; LANES];
            let vector = vectors - 1;
            // SAFETY: the words of the last four elements of the head; `part` has a whole vector.
            let lanes: L = unsafe {
                let head = page.head.add(token * page.stride);
                let from = head.add(format.words(vector * LANES));
                part[..words].copy_from_slice(std::slice::from_raw_parts(from, words));
                E::load(part.as_ptr(), 0)
            };
            let at = (token * vectors + vector) * LANES;
            *to[at..].first_chunk_mut().unwrap() = lanes.to_array();
        }
    }
}
