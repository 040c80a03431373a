//! Scores: the products of queries with the keys of a page.

use super::load::PageHead;
use crate::lanes::{
    f32x8::{F32x8, LANES, Strip},
    kv::{Elements, PAGE_TOKENS},
};

/// Tokens whose scores are summed together.
const TOKENS: usize = 4;

/// Queries that share loads of keys.
#[derive(Clone, Copy)]
pub(super) struct Queries {
    /// `[count, vectors]`, in places of their own: see [`place`](Self::place).
    pub(super) first: *mut f32,
    pub(super) count: usize,
    /// Vectors of a query; the last one is padded with 0.
    pub(super) vectors: usize,
}

impl Queries {
    /// The place of a vector of a query: queries that are multiplied together lie side by side, so that they have one address.
    #[inline(always)]
    pub(super) fn place<L: F32x8>(self, query: usize, vector: usize) -> *mut f32 {
        let group = query / L::QUERIES * L::QUERIES;
        let together = L::QUERIES.min(self.count - group);
        let vectors = group * self.vectors + vector * together + query - group;
        self.first.wrapping_add(vectors * LANES)
    }
}

/// Writes the scores of tokens `begin..end` with queries `seers[0]..seers[1]` to `scores` `[queries, PAGE_TOKENS]`. Other tokens of
/// the page and other queries may get scores, too.
/// # Safety
/// The page is in the format of `E`, in memory, with heads of as many vectors as queries have; so are the queries and the scores.
#[cfg_attr(target_arch = "wasm32", inline(never))]
#[cfg_attr(not(target_arch = "wasm32"), inline(always))]
pub(super) unsafe fn scores<E: Elements, L: F32x8>(
    queries: Queries,
    page: PageHead,
    [begin, end]: [usize; 2],
    seers: [usize; 2],
    scores: *mut f32,
) {
    let vectors = queries.vectors;
    let mut query = seers[0] / L::QUERIES * L::QUERIES;
    while query < seers[1] {
        // The number of queries whose sums fit into registers together.
        let together = L::QUERIES.min(queries.count - query);
        let mut token = begin / TOKENS * TOKENS;
        // SAFETY: the caller's.
        unsafe {
            let q = queries.place::<L>(query, 0);
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
/// The conditions of [`scores`] hold.
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
        // SAFETY: the caller's.
        let sums = unsafe {
            if Q > 1 && L::TOKENS == 2 {
                let [a, b] = [token, token + 2];
                let a = products::<E, L, Q, 2>(q, vectors, page, a, first);
                let b = products::<E, L, Q, 2>(q, vectors, page, b, first);
                let mut sums = [[L::Strip::splat(0.0); TOKENS]; Q];
                for i in 0..Q {
                    sums[i] = [a[i][0], a[i][1], b[i][0], b[i][1]];
                }
                sums
            } else {
                products::<E, L, Q, TOKENS>(q, vectors, page, token, first)
            }
        };
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

/// Sums the products of the strips from element `first` on of all vectors, for `Q` queries and `T` tokens from `token` on.
/// # Safety
/// The conditions of [`scores`] hold.
#[inline(always)]
unsafe fn products<E: Elements, L: F32x8, const Q: usize, const T: usize>(
    q: *const f32,
    vectors: usize,
    page: PageHead,
    token: usize,
    first: usize,
) -> [[L::Strip; T]; Q] {
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
            let k: L::Strip = unsafe { page.load::<E, _>(token + t, at) };
            for i in 0..Q {
                sums[i][t] = sums[i][t].add(queries[i].mul(k));
            }
        }
        q = q.wrapping_add(Q * LANES);
    }
    sums
}
