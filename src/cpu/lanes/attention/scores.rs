//! Scores: the products of queries with the keys of a page.

use super::load::{Elements, PageHead};
use crate::lanes::{
    f32x8::{F32x8, LANES},
    kv::PAGE_TOKENS,
};

/// Tokens whose scores are summed together.
const TOKENS: usize = 4;

/// Writes the scores of tokens `begin..end` with each query to `scores` `[queries, PAGE_TOKENS]`. `q` has `vectors`
/// vectors per query. Other tokens of the page may get scores too.
/// # Safety
/// The page is in the format of `E`, in memory, with `vectors` vectors per head.
#[inline(always)]
pub(super) unsafe fn scores<E: Elements, L: F32x8>(
    q: &[f32],
    vectors: usize,
    page: PageHead,
    [begin, end]: [usize; 2],
    scores: &mut [f32],
) {
    let queries = scores.len() / PAGE_TOKENS;
    assert!(q.len() >= queries * vectors * LANES && end <= PAGE_TOKENS);
    let mut query = 0;
    while query < queries {
        let q = &q[query * vectors * LANES..];
        let scores = &mut scores[query * PAGE_TOKENS..];
        // As many queries at once as registers hold, and the rest one by one.
        let mut token = begin / TOKENS * TOKENS;
        if L::QUERIES == 3 && queries - query >= 3 {
            while token < end {
                // SAFETY: the caller's.
                unsafe { tile::<E, L, 3>(q, vectors, page, token, scores) };
                token += TOKENS;
            }
            query += 3;
        } else {
            while token < end {
                // SAFETY: the caller's.
                unsafe { tile::<E, L, 1>(q, vectors, page, token, scores) };
                token += TOKENS;
            }
            query += 1;
        }
    }
}

/// The scores of `Q` queries with four tokens.
/// # Safety
/// As for [`scores`].
#[inline(always)]
unsafe fn tile<E: Elements, L: F32x8, const Q: usize>(
    q: &[f32],
    vectors: usize,
    page: PageHead,
    token: usize,
    scores: &mut [f32],
) {
    debug_assert!(q.len() >= Q * vectors * LANES);
    let mut sums = [[L::splat(0.0); TOKENS]; Q];
    for vector in 0..vectors {
        for t in 0..TOKENS {
            // SAFETY: the caller's.
            let k: L = unsafe { page.load::<E, L>(token + t, vector) };
            for i in 0..Q {
                // SAFETY: `scores` asserted the length of `q`.
                let q = unsafe { L::load(q.as_ptr().add((i * vectors + vector) * LANES)) };
                sums[i][t] = sums[i][t].add(q.mul(k));
            }
        }
    }
    for i in 0..Q {
        let four = L::sum_each(sums[i]);
        scores[i * PAGE_TOKENS + token..][..TOKENS].copy_from_slice(&four);
    }
}
