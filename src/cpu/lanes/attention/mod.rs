//! Causal grouped-query attention over the paged KV cache (Vaswani et al. 2017; Ainslie et al. 2023,
//! <https://arxiv.org/abs/2305.13245>), on one thread or divided among those of a team.

mod chunks;
mod heads;
mod join;
mod load;
mod parts;
mod scores;
mod softmax;
#[cfg(any(test, feature = "measure"))]
mod speed;
#[cfg(test)]
mod tests;
mod values;

use std::cell::RefCell;

use super::{
    f32x8::{LANES, run},
    kv::{KvFormat, PAGE_TOKENS, Row},
};
#[cfg(target_feature = "simd128")]
use crate::kernel_module::{self, MAX_PARTS};
use crate::team::Team;
use chunks::{CHUNK_PAGES, seen_chunks};
use heads::{Heads, scratch_floats};
use join::Join;
pub use parts::{AttentionParts, AttentionShape, Window};

/// Attentions with fewer multiplications are not divided among threads of a page: waking a thread takes longer.
#[cfg(target_feature = "simd128")]
const MIN_DIVIDED: usize = 1 << 17;

/// Attends with rotated, scaled queries `q` `[rows, heads * head_dim]` to all tokens of each row's sequence up to its
/// own, in `kv`, the words of a layer's cache. `out` has the shape of `q`. Rows beyond `rows` are padding and neither
/// read nor written.
pub fn attention(
    q: &[f32],
    kv: &[u32],
    rows: &[Row],
    shape: AttentionShape,
    format: KvFormat,
    out: &mut [f32],
) {
    let parts = AttentionParts::new(q, kv, rows, shape, format, out);
    for part in 0..parts.parts() {
        // SAFETY: one after the other.
        unsafe { parts.run(part) };
    }
    // SAFETY: these were all.
    unsafe { parts.finish() };
}

/// [`attention`], divided among the threads of a team. `sinks` are those of
/// [`AttentionParts::with_sinks`]. The bits are the same.
#[expect(
    clippy::too_many_arguments,
    reason = "those of attention, and the team"
)]
pub fn attention_with(
    team: &Team,
    q: &[f32],
    kv: &[u32],
    rows: &[Row],
    shape: AttentionShape,
    format: KvFormat,
    sinks: Option<&[f32]>,
    out: &mut [f32],
) {
    let mut parts = AttentionParts::new(q, kv, rows, shape, format, out);
    if let Some(sinks) = sinks {
        parts = parts.with_sinks(sinks);
    }
    #[cfg(target_feature = "simd128")]
    if parts.macs() >= MIN_DIVIDED && kernel_module::threads() > 1 {
        let divided = parts.parts().min(MAX_PARTS);
        if kernel_module::run(&parts, divided) {
            // SAFETY: it has computed all parts.
            unsafe { parts.finish() };
            return;
        }
    }
    // SAFETY: a team gives each part to one thread.
    team.run(parts.parts(), &|part| unsafe { parts.run(part) });
    // SAFETY: it has computed all parts.
    unsafe { parts.finish() };
}

thread_local! {
    /// Memory for a part, reused from part to part.
    static SCRATCH: RefCell<Vec<f32>> = RefCell::default();
}

impl AttentionParts<'_> {
    /// Computes a part.
    ///
    /// # Safety
    /// No other thread computes the same part at the same time.
    pub unsafe fn run(&self, part: usize) {
        assert!(part < self.parts());
        SCRATCH.with_borrow_mut(|scratch| {
            let floats = self.scratch_floats();
            if scratch.len() < floats {
                scratch.resize(floats, 0.0);
            }
            // SAFETY: as of this function.
            unsafe { self.run_in(part, scratch.as_mut_ptr()) };
        });
    }

    /// Floats of memory that a part needs.
    #[inline(always)]
    pub(crate) fn scratch_floats(&self) -> usize {
        scratch_floats(
            self.rows_per_part * self.group,
            self.head_dim.div_ceil(LANES),
        )
    }

    /// Computes a part in memory of [`scratch_floats`](Self::scratch_floats) floats. The kernel module calls it, too.
    ///
    /// # Safety
    /// As for [`run`](Self::run). The part must exist.
    #[inline(always)]
    pub(crate) unsafe fn run_in(&self, part: usize, scratch: *mut f32) {
        let mut done = 0;
        // SAFETY: the caller's.
        while let Some(heads) = unsafe { self.heads(part, done, scratch) } {
            done += heads.count;
            run(heads);
        }
    }

    /// The consecutive rows of a part after its first `done` ones.
    ///
    /// # Safety
    /// The conditions of [`run_in`](Self::run_in) hold.
    #[inline(always)]
    unsafe fn heads(&self, part: usize, done: usize, scratch: *mut f32) -> Option<Heads<'_>> {
        // SAFETY: `new` sets no 0.
        unsafe { std::hint::assert_unchecked(self.kv_heads != 0 && self.chunks != 0) };
        let (kv_head, part) = (part % self.kv_heads, part / self.kv_heads);
        let (chunk, part) = (part % self.chunks, part / self.chunks);
        let first = part * self.rows_per_part + done;
        let end = self.row_count.min((part + 1) * self.rows_per_part);
        if first >= end {
            return None;
        }
        // SAFETY: `end` is a number of rows.
        unsafe {
            let count = self.consecutive(first, end);
            let seen = self.seen(*self.rows.add(first));
            let [_, last] = self.seen(*self.rows.add(first + count - 1));
            let mut pages = [seen[0] / PAGE_TOKENS, (last - 1) / PAGE_TOKENS];
            let [first_chunk, last_chunk] = seen_chunks(seen);
            let mut found = None;
            if self.chunks > 1 {
                if first_chunk + chunk > last_chunk {
                    return None;
                }
                if first_chunk < last_chunk {
                    let begin = (first_chunk + chunk) * CHUNK_PAGES;
                    pages[0] = pages[0].max(begin);
                    pages[1] = pages[1].min(begin + CHUNK_PAGES - 1);
                    found = Some(chunk);
                }
            }
            Some(Heads {
                parts: self,
                kv_head,
                first,
                count,
                pages,
                chunk: found,
                scratch,
            })
        }
    }

    /// Joins what parts found. Ends an attention.
    ///
    /// # Safety
    /// All parts have been computed, and this has not been called before.
    pub(crate) unsafe fn finish(&self) {
        if self.chunks > 1 {
            run(Join(self));
        }
    }
}
