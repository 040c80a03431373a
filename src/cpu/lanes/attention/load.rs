//! Vectors of K and V in each format of the cache.

use crate::lanes::{
    f32x8::{F32x8, LANES, splat_bits},
    kv::{BLOCK, BLOCK_WORDS, KvFormat},
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

/// Decodes the heads of tokens `begin..end` into `to`, f32 with whole vectors per token, of which elements beyond
/// `head_dim` become 0.
/// # Safety
/// The page is in `format`, which is that of `E`, and in memory; `to` has a place for each token of a page.
#[inline(always)]
pub(super) unsafe fn decode<E: Elements, L: F32x8>(
    page: PageHead,
    [begin, end]: [usize; 2],
    head_dim: usize,
    format: KvFormat,
    to: *mut f32,
) {
    let vectors = head_dim.div_ceil(LANES);
    for token in begin..end {
        // SAFETY: the caller's.
        unsafe {
            let to = to.add(token * vectors * LANES);
            for vector in 0..head_dim / LANES {
                let lanes: L = page.load::<E, L>(token, vector);
                lanes.store(to.add(vector * LANES));
            }
            if !head_dim.is_multiple_of(LANES) {
                // Four elements are left: four words, or two.
                let vector = vectors - 1;
                let from = page
                    .head
                    .add(token * page.stride + format.words(vector * LANES));
                let mut part = [0; LANES];
                part[0] = *from;
                part[1] = *from.add(1);
                if format == KvFormat::F32 {
                    part[2] = *from.add(2);
                    part[3] = *from.add(3);
                }
                let lanes: L = E::load(part.as_ptr(), 0);
                lanes.store(to.add(vector * LANES));
            }
        }
    }
}
