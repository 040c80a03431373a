//! A context in chunks, each with a softmax of its own, and how the results of two chunks are joined. Chunks begin at fixed tokens of
//! a sequence, so that the bits of a result depend neither on threads nor on other rows.
//!
//! The kernel module compiles this file, too: see `heads.rs`.

use super::softmax::Running;
use crate::lanes::{
    f32x8::{F32x8, LANES},
    functions::exp_one,
    kv::PAGE_TOKENS,
};

/// Pages of a chunk.
pub(super) const CHUNK_PAGES: usize = 4;
/// Tokens of a chunk.
pub(super) const CHUNK_TOKENS: usize = CHUNK_PAGES * PAGE_TOKENS;

/// The numbers of the first and of the last chunk that a row sees.
#[inline(always)]
pub(super) fn seen_chunks([begin, end]: [usize; 2]) -> [usize; 2] {
    [begin / CHUNK_TOKENS, (end - 1) / CHUNK_TOKENS]
}

/// What a query found in some tokens.
#[derive(Clone, Copy)]
pub(super) struct Found {
    /// Weighted sums of the values.
    pub(super) sums: *mut f32,
    pub(super) running: *mut Running,
}

impl Found {
    /// What query `query` of several found, with `stride` sums each.
    /// # Safety
    /// There is such a query.
    #[inline(always)]
    pub(super) unsafe fn of(self, query: usize, stride: usize) -> Found {
        // SAFETY: the caller's.
        unsafe {
            Found {
                sums: self.sums.add(query * stride),
                running: self.running.add(query),
            }
        }
    }

    /// # Safety
    /// Both have `stride` sums, in different places.
    #[inline(always)]
    pub(super) unsafe fn copy_to(self, to: Found, stride: usize) {
        // SAFETY: the caller's.
        unsafe {
            for i in 0..stride {
                *to.sums.add(i) = *self.sums.add(i);
            }
            *to.running = *self.running;
        }
    }

    /// Forgets all tokens.
    /// # Safety
    /// There are `stride` sums.
    #[inline(always)]
    pub(super) unsafe fn reset(self, stride: usize) {
        // SAFETY: the caller's.
        unsafe {
            for i in 0..stride {
                *self.sums.add(i) = 0.0;
            }
            (*self.running).reset();
        }
    }

    /// Joins what the same query found in the tokens after these.
    /// # Safety
    /// Both have `stride` sums, a multiple of the lanes, in different places.
    #[inline(always)]
    pub(super) unsafe fn join<L: F32x8>(self, after: Found, stride: usize) {
        // SAFETY: the caller's.
        unsafe {
            let (running, other) = (&mut *self.running, &*after.running);
            let peak = if running.peak > other.peak {
                running.peak
            } else {
                other.peak
            };
            let factor = L::splat(exp_one::<L>(running.peak - peak));
            let other_factor = L::splat(exp_one::<L>(other.peak - peak));
            let joined = |a: L, b: L| a.mul(factor).add(b.mul(other_factor));
            running.peak = peak;
            let sums = joined(L::from_array(running.sums), L::from_array(other.sums));
            running.sums = sums.to_array();
            let mut at = 0;
            while at < stride {
                let sums = joined(L::load(self.sums.add(at)), L::load(after.sums.add(at)));
                sums.store(self.sums.add(at));
                at += LANES;
            }
        }
    }
}
