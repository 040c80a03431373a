//! Heads of K and V on a page, in the format of the cache.

use crate::lanes::{
    f32x8::{F32x8, LANES, Strip},
    kv::Elements,
};

/// One head of the K or of the V of a page.
#[derive(Clone, Copy)]
pub(super) struct PageHead {
    /// The first word of the head of the page's first token.
    pub(super) head: *const u32,
    /// Words from a token's head to the next token's.
    pub(super) stride: usize,
}

impl PageHead {
    /// A strip of a token's head, from element `at` on.
    /// # Safety
    /// `E` is the format of the words, and the head has the elements.
    #[inline(always)]
    pub(super) unsafe fn load<E: Elements, S: Strip>(self, token: usize, at: usize) -> S {
        // SAFETY: the caller's.
        unsafe { E::load(self.head.add(token * self.stride), at) }
    }
}

/// Whether strips of the heads of tokens `begin..end` may be loaded without decoding them first.
/// # Safety
/// The page is in the format of `E`, and in memory.
#[cfg_attr(target_arch = "wasm32", inline(never))]
#[cfg_attr(not(target_arch = "wasm32"), inline(always))]
pub(super) unsafe fn loads<E: Elements, L: F32x8>(
    page: PageHead,
    [begin, end]: [usize; 2],
) -> bool {
    let mut loads = true;
    for token in begin..end {
        // SAFETY: the caller's.
        loads &= unsafe { E::loads::<L>(page.head.add(token * page.stride)) };
    }
    loads
}

/// Decodes the heads of tokens `begin..end` into `to`, f32 with whole vectors per token, of which elements beyond
/// `head_dim` become 0.
/// # Safety
/// The page is in the format of `E`, and in memory; `to` has a place for each token of a page.
#[cfg_attr(target_arch = "wasm32", inline(never))]
#[cfg_attr(not(target_arch = "wasm32"), inline(always))]
pub(super) unsafe fn decode<E: Elements, L: F32x8>(
    page: PageHead,
    [begin, end]: [usize; 2],
    head_dim: usize,
    to: *mut f32,
) {
    let vectors = head_dim.div_ceil(LANES);
    for token in begin..end {
        // SAFETY: the caller's.
        unsafe {
            let to = to.add(token * vectors * LANES);
            E::decode::<L>(page.head.add(token * page.stride), head_dim / LANES, to);
            if !head_dim.is_multiple_of(LANES) {
                // Four elements are left: a block of them.
                let vector = vectors - 1;
                let at = vector * LANES / E::BLOCK_LEN * E::BLOCK_WORDS;
                let from = page.head.add(token * page.stride + at);
                let mut part = [0; LANES];
                for word in 0..E::BLOCK_WORDS.min(LANES) {
                    *part.as_mut_ptr().add(word) = *from.add(word);
                }
                E::decode::<L>(part.as_ptr(), 1, to.add(vector * LANES));
            }
        }
    }
}
