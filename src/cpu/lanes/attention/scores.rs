//! Scores: the products of queries with the keys of a page.

use super::load::PageHead;
use crate::lanes::{
    f32x8::{F32x8, LANES, Strip},
    kv::{Elements, PAGE_TOKENS},
};

/// Tokens whose scores are summed together.
const TOKENS: usize = 4;

/// The place of the first element of vector `vector` of query `query` of `queries` queries with `vectors` vectors: the queries
/// that are multiplied together lie side by side.
#[inline(always)]
pub(super) fn place<L: F32x8>(
    query: usize,
    vector: usize,
    queries: usize,
    vectors: usize,
) -> usize {
    let first = query / L::QUERIES * L::QUERIES;
    let together = L::QUERIES.min(queries - first);
    (first * vectors + vector * together + query - first) * LANES
}

/// Writes the scores of tokens `begin..end` with queries `seen` of `queries` to `scores` `[queries, PAGE_TOKENS]`. `q` has
/// `vectors` vectors per query, at [`place`]. Other tokens of the page and other queries may get scores too.
/// # Safety
/// The page is in the format of `E`, in memory, with `vectors` vectors per head; so are the queries and the scores.
#[cfg_attr(target_arch = "wasm32", inline(never))]
#[cfg_attr(not(target_arch = "wasm32"), inline(always))]
pub(super) unsafe fn scores<E: Elements, L: F32x8>(
    q: *const f32,
    vectors: usize,
    page: PageHead,
    [begin, end]: [usize; 2],
    queries: usize,
    seen: [usize; 2],
    scores: *mut f32,
) {
    let mut query = seen[0] / L::QUERIES * L::QUERIES;
    while query < seen[1] {
        // As many queries at once as registers hold.
        let together = L::QUERIES.min(queries - query);
        let mut token = begin / TOKENS * TOKENS;
        // SAFETY: the caller's.
        unsafe {
            let q = q.add(query * vectors * LANES);
            let scores = scores.add(query * PAGE_TOKENS);
            while token < end {
                match together {
                    3 => tile::<E, L, 3>(q, vectors, page, token, scores),
                    2 => tile::<E, L, 2>(q, vectors, page, token, scores),
                    _ => tile::<E, L, 1>(q, vectors, page, token, scores),
                }
                token += TOKENS;
            }
        }
        query += together;
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
    let mut first = 0;
    while first < LANES {
        let mut sums = [[L::Strip::splat(0.0); TOKENS]; Q];
        // SAFETY: the caller's.
        unsafe {
            if Q > 1 && L::TOKENS == 2 {
                products::<E, L, Q, 2>(q, vectors, page, token, first, 0, &mut sums);
                products::<E, L, Q, 2>(q, vectors, page, token, first, 2, &mut sums);
            } else {
                products::<E, L, Q, TOKENS>(q, vectors, page, token, first, 0, &mut sums);
            }
        }
        for i in 0..Q {
            let four = L::Strip::sum_each(sums[i]);
            // SAFETY: the caller's; a page has a multiple of four tokens.
            unsafe {
                let to = scores.add(i * PAGE_TOKENS + token).cast::<[f32; TOKENS]>();
                if first == 0 {
                    *to = four;
                } else {
                    for t in 0..TOKENS {
                        (*to)[t] += four[t];
                    }
                }
            }
        }
        first += L::Strip::LANES;
    }
}

/// Sums the products of the strips from element `first` on of all vectors, for `T` tokens from `token + skip` on.
/// # Safety
/// As for [`scores`].
#[inline(always)]
unsafe fn products<E: Elements, L: F32x8, const Q: usize, const T: usize>(
    q: *const f32,
    vectors: usize,
    page: PageHead,
    token: usize,
    first: usize,
    skip: usize,
    to: &mut [[L::Strip; TOKENS]; Q],
) {
    let mut sums = [[L::Strip::splat(0.0); T]; Q];
    let mut q = q.wrapping_add(first);
    for vector in 0..vectors {
        let mut queries = [L::Strip::splat(0.0); Q];
        for i in 0..Q {
            // SAFETY: the caller's.
            queries[i] = unsafe { L::Strip::load(q.add(i * LANES)) };
        }
        for t in 0..T {
            let at = vector * LANES + first;
            // SAFETY: the caller's.
            let k: L::Strip = unsafe { page.load::<E, _>(token + skip + t, at) };
            for i in 0..Q {
                sums[i][t] = sums[i][t].add(queries[i].mul(k));
            }
        }
        q = q.wrapping_add(Q * LANES);
    }
    for i in 0..Q {
        for t in 0..T {
            to[i][skip + t] = sums[i][t];
        }
    }
}
