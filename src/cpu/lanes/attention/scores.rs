//! Scores: the products of queries with the keys of a page.

use super::load::PageHead;
use crate::lanes::{
    f32x8::{F32x8, LANES},
    kv::{Elements, PAGE_TOKENS},
};

/// Tokens whose scores are summed together.
const TOKENS: usize = 4;

/// Writes the scores of tokens `begin..end` with each of `queries` queries to `scores` `[queries, PAGE_TOKENS]`. `q` has
/// `vectors` vectors per query. Other tokens of the page may get scores too.
/// # Safety
/// The page is in the format of `E`, in memory, with `vectors` vectors per head; so are the queries and the scores.
#[inline(always)]
pub(super) unsafe fn scores<E: Elements, L: F32x8>(
    q: *const f32,
    vectors: usize,
    page: PageHead,
    [begin, end]: [usize; 2],
    queries: usize,
    scores: *mut f32,
) {
    let mut query = 0;
    while query < queries {
        // As many queries at once as registers hold, and the rest one by one.
        let together = L::QUERIES == 3 && queries - query >= 3;
        let mut token = begin / TOKENS * TOKENS;
        // SAFETY: the caller's.
        unsafe {
            let q = q.add(query * vectors * LANES);
            let scores = scores.add(query * PAGE_TOKENS);
            while token < end {
                if together {
                    tile::<E, L, 3>(q, vectors, page, token, scores);
                } else {
                    tile::<E, L, 1>(q, vectors, page, token, scores);
                }
                token += TOKENS;
            }
        }
        query += if together { 3 } else { 1 };
    }
}

/// The scores of `Q` queries with four tokens.
/// # Safety
/// As for [`scores`].
#[inline(always)]
unsafe fn tile<E: Elements, L: F32x8, const Q: usize>(
    q: *const f32,
    vectors: usize,
    page: PageHead,
    token: usize,
    scores: *mut f32,
) {
    let mut sums = [[L::splat(0.0); TOKENS]; Q];
    for vector in 0..vectors {
        for t in 0..TOKENS {
            // SAFETY: the caller's.
            let k: L = unsafe { page.load::<E, L>(token + t, vector) };
            for i in 0..Q {
                // SAFETY: the caller's.
                let q = unsafe { L::load(q.add((i * vectors + vector) * LANES)) };
                sums[i][t] = sums[i][t].add(q.mul(k));
            }
        }
    }
    for i in 0..Q {
        let four = L::sum_each(sums[i]);
        // SAFETY: the caller's; a page has a multiple of four tokens.
        unsafe { *scores.add(i * PAGE_TOKENS + token).cast() = four };
    }
}
