//! Sums of the values of a page, weighted.

use super::load::PageHead;
use crate::lanes::{
    f32x8::{F32x8, LANES, Strip},
    kv::{Elements, PAGE_TOKENS},
};

/// Adds the weighted values of the tokens `ranges[query]` of each of `queries` queries to `sums` `[queries, vectors]`, in
/// the order of the tokens. `weights` is `[queries, PAGE_TOKENS]`.
/// # Safety
/// The page is in the format of `E`, in memory, with `vectors` vectors per head; so are the weights, ranges and sums.
#[cfg_attr(target_arch = "wasm32", inline(never))]
#[cfg_attr(not(target_arch = "wasm32"), inline(always))]
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
            let mut together = 1;
            while together < L::QUERIES
                && query + together < queries
                && *ranges.add(query + together) == range
            {
                together += 1;
            }
            let range = range.map(|token| token as usize);
            match (together, L::TOKENS) {
                (3, 2) => all_strips::<E, L, 3, 2>(weights, vectors, page, range, sums),
                (3, _) => all_strips::<E, L, 3, 4>(weights, vectors, page, range, sums),
                (2, _) => all_strips::<E, L, 2, 4>(weights, vectors, page, range, sums),
                _ => all_strips::<E, L, 1, 4>(weights, vectors, page, range, sums),
            }
            query += together;
        }
    }
}

/// # Safety
/// The conditions of [`values`] hold for `Q` queries. `S` strips are summed at a time.
#[inline(always)]
unsafe fn all_strips<E: Elements, L: F32x8, const Q: usize, const S: usize>(
    weights: *const f32,
    vectors: usize,
    page: PageHead,
    range: [usize; 2],
    sums: *mut f32,
) {
    let len = vectors * LANES;
    let mut at = 0;
    while at + S * L::Strip::LANES <= len {
        // SAFETY: the caller's.
        unsafe { tile::<E, L, Q, S>(weights, len, at, page, range, sums) };
        at += S * L::Strip::LANES;
    }
    while at < len {
        // SAFETY: the caller's.
        unsafe { tile::<E, L, Q, 1>(weights, len, at, page, range, sums) };
        at += L::Strip::LANES;
    }
}

/// `S` strips from element `at` on of `Q` queries with heads of `len` elements.
/// # Safety
/// The conditions of [`values`] hold.
#[inline(always)]
unsafe fn tile<E: Elements, L: F32x8, const Q: usize, const S: usize>(
    weights: *const f32,
    len: usize,
    at: usize,
    page: PageHead,
    [begin, end]: [usize; 2],
    sums: *mut f32,
) {
    let mut acc = [[L::Strip::splat(0.0); S]; Q];
    for i in 0..Q {
        for j in 0..S {
            // SAFETY: the caller's.
            acc[i][j] = unsafe { L::Strip::load(sums.add(i * len + at + j * L::Strip::LANES)) };
        }
    }
    for token in begin..end {
        let mut w = [L::Strip::splat(0.0); Q];
        for i in 0..Q {
            // SAFETY: the caller's.
            w[i] = L::Strip::splat(unsafe { *weights.add(i * PAGE_TOKENS + token) });
        }
        for j in 0..S {
            // SAFETY: the caller's.
            let v: L::Strip = unsafe { page.load::<E, _>(token, at + j * L::Strip::LANES) };
            for i in 0..Q {
                acc[i][j] = acc[i][j].add(w[i].mul(v));
            }
        }
    }
    for i in 0..Q {
        for j in 0..S {
            // SAFETY: the caller's.
            unsafe { acc[i][j].store(sums.add(i * len + at + j * L::Strip::LANES)) };
        }
    }
}
