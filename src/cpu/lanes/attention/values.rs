//! Sums of the values of a page, weighted.

use super::load::PageHead;
use crate::lanes::{
    f32x8::{F32x8, LANES},
    kv::{Elements, PAGE_TOKENS},
};

/// Vectors of a head that are summed together.
const VECTORS: usize = 4;

/// Adds the weighted values of the tokens `ranges[query]` of each of `queries` queries to `sums` `[queries, vectors]`, in
/// the order of the tokens. `weights` is `[queries, PAGE_TOKENS]`.
/// # Safety
/// The page is in the format of `E`, in memory, with `vectors` vectors per head; so are the weights, ranges and sums.
#[inline(always)]
pub(super) unsafe fn values<E: Elements, L: F32x8>(
    weights: *const f32,
    vectors: usize,
    page: PageHead,
    ranges: *const [u32; 2],
    queries: usize,
    sums: *mut f32,
) {
    let mut query = 0;
    while query < queries {
        // SAFETY: the caller's.
        unsafe {
            let range = *ranges.add(query);
            let weights = weights.add(query * PAGE_TOKENS);
            let sums = sums.add(query * vectors * LANES);
            // Queries that see the same tokens share loads. No query reads values that it does not see, whose weight of
            // 0 would not hide a NaN.
            let same = queries - query >= 3
                && *ranges.add(query + 1) == range
                && *ranges.add(query + 2) == range;
            let range = range.map(|token| token as usize);
            if L::QUERIES == 3 && same {
                all_vectors::<E, L, 3>(weights, vectors, page, range, sums);
                query += 3;
            } else {
                all_vectors::<E, L, 1>(weights, vectors, page, range, sums);
                query += 1;
            }
        }
    }
}

/// # Safety
/// As for [`values`], for `Q` queries.
#[inline(always)]
unsafe fn all_vectors<E: Elements, L: F32x8, const Q: usize>(
    weights: *const f32,
    vectors: usize,
    page: PageHead,
    range: [usize; 2],
    sums: *mut f32,
) {
    let mut vector = 0;
    while vector + VECTORS <= vectors {
        // SAFETY: the caller's.
        unsafe { tile::<E, L, Q, VECTORS>(weights, vectors, vector, page, range, sums) };
        vector += VECTORS;
    }
    while vector < vectors {
        // SAFETY: the caller's.
        unsafe { tile::<E, L, Q, 1>(weights, vectors, vector, page, range, sums) };
        vector += 1;
    }
}

/// `V` vectors from `vector` on of `Q` queries.
/// # Safety
/// As for [`values`].
#[inline(always)]
unsafe fn tile<E: Elements, L: F32x8, const Q: usize, const V: usize>(
    weights: *const f32,
    vectors: usize,
    vector: usize,
    page: PageHead,
    [begin, end]: [usize; 2],
    sums: *mut f32,
) {
    let mut acc = [[L::splat(0.0); V]; Q];
    for i in 0..Q {
        for j in 0..V {
            // SAFETY: the caller's.
            let from = unsafe { sums.add((i * vectors + vector + j) * LANES) };
            // SAFETY: the caller's.
            acc[i][j] = unsafe { L::load(from) };
        }
    }
    for token in begin..end {
        for j in 0..V {
            // SAFETY: the caller's.
            let v: L = unsafe { page.load::<E, L>(token, vector + j) };
            for i in 0..Q {
                // SAFETY: the caller's.
                let weight = unsafe { *weights.add(i * PAGE_TOKENS + token) };
                acc[i][j] = acc[i][j].add(L::splat(weight).mul(v));
            }
        }
    }
    for i in 0..Q {
        for j in 0..V {
            // SAFETY: the caller's.
            unsafe { acc[i][j].store(sums.add((i * vectors + vector + j) * LANES)) };
        }
    }
}
