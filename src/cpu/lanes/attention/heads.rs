//! The query heads of one KV head, of one row or of consecutive rows of a sequence: a walk over the pages they see.
//!
//! The kernel module compiles this file, too: it neither allocates nor panics (see `module.rs`). So it has pointers
//! instead of slices, and `AttentionParts::new` has checked all sizes.

use super::{
    chunks::{CHUNK_PAGES, CHUNK_TOKENS, Found, seen_chunks},
    load::{PageHead, decode, loads},
    parts::AttentionParts,
    scores::{Queries, scores},
    softmax::{self, Running},
    values::values,
};
use crate::lanes::{
    f32x8::{F32x8, Kernel, LANES},
    kv::{Elements, PAGE_TOKENS, by_format, f32::Format as F32},
};

/// Rows `first..first + count`, which are consecutive tokens of one sequence, of KV head `kv_head`.
pub(super) struct Heads<'a> {
    pub(super) parts: &'a AttentionParts<'a>,
    pub(super) kv_head: usize,
    pub(super) first: usize,
    pub(super) count: usize,
    /// The first and the last page of the walk.
    pub(super) pages: [usize; 2],
    /// The chunk of the walk if it is a part of its own, counted from the first one that the row sees.
    pub(super) chunk: Option<usize>,
    /// Points to [`scratch_floats`] floats that only this thread uses.
    pub(super) scratch: *mut f32,
}

/// The size of the memory for so many queries with heads of so many vectors.
pub(super) const fn scratch_floats(queries: usize, vectors: usize) -> usize {
    let running = size_of::<Running>() / size_of::<f32>();
    let query = 3 * vectors * LANES + PAGE_TOKENS + 2 * running + 2;
    queries * query + PAGE_TOKENS * vectors * LANES
}

/// The memory, divided.
struct Scratch {
    q: Queries,
    /// `[queries]`: what each found in the current chunk.
    found: Found,
    /// `[queries]`: what each found in the chunks before.
    before: Found,
    /// `[PAGE_TOKENS, vectors]`: decoded keys or values of a page.
    decoded: *mut f32,
    /// `[queries, PAGE_TOKENS]`: scores, then weights.
    scores: *mut f32,
    /// The tokens of a page that each query sees.
    ranges: *mut [u32; 2],
}

impl Scratch {
    /// # Safety
    /// `memory` has [`scratch_floats`] floats.
    unsafe fn new(memory: *mut f32, queries: usize, vectors: usize) -> Scratch {
        let head = queries * vectors * LANES;
        // SAFETY: the sum of the sizes is that of the memory.
        unsafe {
            let decoded = memory.add(3 * head);
            let scores = decoded.add(PAGE_TOKENS * vectors * LANES);
            let running = scores.add(queries * PAGE_TOKENS).cast::<Running>();
            Scratch {
                q: Queries {
                    first: memory,
                    count: queries,
                    vectors,
                },
                found: Found {
                    sums: memory.add(head),
                    running,
                },
                before: Found {
                    sums: memory.add(2 * head),
                    running: running.add(queries),
                },
                decoded,
                scores,
                ranges: running.add(2 * queries).cast(),
            }
        }
    }
}

impl Kernel for Heads<'_> {
    type Output = ();

    #[inline(always)]
    fn run<L: F32x8>(self) {
        // SAFETY: `AttentionParts::run` is unsafe for the same reasons.
        unsafe { by_format!(self.parts.format, E => self.attend::<E, L>()) }
    }
}

impl Heads<'_> {
    /// # Safety
    /// The part's rows and pages are in memory, in the format of `E`.
    #[inline(always)]
    unsafe fn attend<E: Elements, L: F32x8>(&self) {
        let parts = self.parts;
        let (dim, group) = (parts.head_dim, parts.group);
        let vectors = dim.div_ceil(LANES);
        let stride = vectors * LANES;
        let queries = self.count * group;
        // SAFETY: all of them are in memory.
        unsafe {
            let scratch = Scratch::new(self.scratch, queries, vectors);
            self.read_queries::<L>(scratch.q);
            self.begin(stride, &scratch);
            // Decoding first pays where several passes over the page follow; the last vector of a head may be half.
            let decodes = queries > L::QUERIES || !dim.is_multiple_of(LANES);
            let row = *parts.rows.add(self.first);
            for page in self.pages[0]..=self.pages[1] {
                if page > self.pages[0] && page.is_multiple_of(CHUNK_PAGES) {
                    self.end_chunk::<L>(page * PAGE_TOKENS, stride, &scratch);
                }
                let (active, seen) = self.set_ranges(page, scratch.ranges);
                let first = active * group;
                let ranges = scratch.ranges;
                let union = [(*ranges)[0] as usize, (*ranges.add(seen - 1))[1] as usize];
                let number = row.page(page);
                let mut keys = parts.page_head(number, 0, self.kv_head);
                let seers = [first, first + seen];
                if decodes || !loads::<E, L>(keys, union) {
                    decode::<E, L>(keys, union, dim, scratch.decoded);
                    keys = decoded(scratch.decoded, stride);
                    scores::<F32, L>(scratch.q, keys, union, seers, scratch.scores);
                } else {
                    scores::<E, L>(scratch.q, keys, union, seers, scratch.scores);
                }
                self.weigh::<L>(&scratch, first, seen, stride);
                let weights = scratch.scores.add(first * PAGE_TOKENS);
                let mut page_values = parts.page_head(number, 1, self.kv_head);
                let sums = scratch.found.sums.add(first * stride);
                if decodes || !loads::<E, L>(page_values, union) {
                    decode::<E, L>(page_values, union, dim, scratch.decoded);
                    page_values = decoded(scratch.decoded, stride);
                    values::<F32, L>(weights, vectors, page_values, ranges, seen, sums);
                } else {
                    values::<E, L>(weights, vectors, page_values, ranges, seen, sums);
                }
            }
            self.end::<L>(stride, &scratch);
        }
    }

    /// Prepares what the queries find.
    ///
    /// # Safety
    /// The memory is that of the queries.
    #[inline(always)]
    unsafe fn begin(&self, stride: usize, scratch: &Scratch) {
        let parts = self.parts;
        for query in 0..self.count * parts.group {
            // SAFETY: the caller's.
            unsafe {
                let found = scratch.found.of(query, stride);
                found.reset(stride);
                // A sink joins the softmax of the first chunk.
                if !parts.sinks.is_null() && self.chunk.is_none_or(|chunk| chunk == 0) {
                    let (_, head) = self.row_and_head(query);
                    (*found.running).begin_with(*parts.sinks.add(head));
                }
            }
        }
    }

    /// Ends the chunk before token `at` for the queries that see tokens before it and after it.
    ///
    /// # Safety
    /// What the queries found is in memory.
    #[inline(always)]
    unsafe fn end_chunk<L: F32x8>(&self, at: usize, stride: usize, scratch: &Scratch) {
        for query in 0..self.count * self.parts.group {
            // SAFETY: the caller's.
            unsafe {
                let (row, _) = self.row_and_head(query);
                let [begin, end] = self.parts.seen(*self.parts.rows.add(row));
                if begin >= at || end <= at {
                    continue;
                }
                let found = scratch.found.of(query, stride);
                let before = scratch.before.of(query, stride);
                if begin + CHUNK_TOKENS >= at {
                    found.copy_to(before, stride);
                } else {
                    before.join::<L>(found, stride);
                }
                found.reset(stride);
            }
        }
    }

    /// Turns the scores of queries `first..first + seen` into weights, and scales their sums to the new peaks.
    ///
    /// # Safety
    /// There are such queries, and their scores and ranges are written.
    #[inline(always)]
    unsafe fn weigh<L: F32x8>(&self, scratch: &Scratch, first: usize, seen: usize, stride: usize) {
        for i in 0..seen {
            // SAFETY: the caller's.
            unsafe {
                let found = scratch.found.of(first + i, stride);
                let running = &mut *found.running;
                let weights = &mut *scratch.scores.add((first + i) * PAGE_TOKENS).cast();
                let range = softmax::Range::from(*scratch.ranges.add(i));
                let factor = running.weigh::<L>(weights, range, self.parts.soft_cap);
                if factor != 1.0 {
                    for j in 0..stride {
                        *found.sums.add(j) *= factor;
                    }
                }
            }
        }
    }

    /// Copies the queries to their places, padded with 0.
    ///
    /// # Safety
    /// The rows are in memory.
    #[inline(always)]
    unsafe fn read_queries<L: F32x8>(&self, to: Queries) {
        let parts = self.parts;
        let dim = parts.head_dim;
        for query in 0..to.count {
            let (row, head) = self.row_and_head(query);
            let first = (row * parts.kv_heads * parts.group + head) * dim;
            for vector in 0..to.vectors {
                let place = to.place::<L>(query, vector);
                for i in 0..LANES {
                    let at = vector * LANES + i;
                    // SAFETY: the caller's.
                    unsafe {
                        *place.add(i) = if at < dim {
                            *parts.q.add(first + at)
                        } else {
                            0.0
                        };
                    }
                }
            }
        }
    }

    /// The row and the query head of a query.
    #[inline(always)]
    fn row_and_head(&self, query: usize) -> (usize, usize) {
        let group = self.parts.group;
        // SAFETY: `AttentionParts::new` asserted it.
        unsafe { std::hint::assert_unchecked(group != 0) };
        let head = self.kv_head * group + query % group;
        (self.first + query / group, head)
    }

    /// Sets which tokens of page `page` of the sequence each query sees, for the queries that see any: those of
    /// consecutive rows. Returns the first of these rows, and the number of these queries.
    ///
    /// # Safety
    /// `ranges` has a place for each query.
    #[inline(always)]
    unsafe fn set_ranges(&self, page: usize, ranges: *mut [u32; 2]) -> (usize, usize) {
        let parts = self.parts;
        let (page_begin, page_end) = (page * PAGE_TOKENS, (page + 1) * PAGE_TOKENS);
        let (mut first, mut seen) = (self.count, 0);
        for row in 0..self.count {
            // SAFETY: the caller's.
            unsafe {
                let [begin, end] = parts.seen(*parts.rows.add(self.first + row));
                let (begin, end) = (begin.max(page_begin), end.min(page_end));
                if begin < end {
                    first = first.min(row);
                    for _ in 0..parts.group {
                        *ranges.add(seen) =
                            [(begin - page_begin) as u32, (end - page_begin) as u32];
                        seen += 1;
                    }
                }
            }
        }
        (first, seen)
    }

    /// Writes the results, or what the queries found if the chunk is a part of its own.
    ///
    /// # Safety
    /// The rows are in memory, and their heads are only this part's.
    #[inline(always)]
    unsafe fn end<L: F32x8>(&self, stride: usize, scratch: &Scratch) {
        let parts = self.parts;
        for query in 0..self.count * parts.group {
            let (row, head) = self.row_and_head(query);
            // SAFETY: the caller's.
            unsafe {
                let found = scratch.found.of(query, stride);
                if let Some(chunk) = self.chunk {
                    found.copy_to(parts.found(row, chunk, head), stride);
                    continue;
                }
                let [first, last] = seen_chunks(parts.seen(*parts.rows.add(row)));
                if first == last {
                    parts.write::<L>(row, head, found);
                } else {
                    let all = scratch.before.of(query, stride);
                    all.join::<L>(found, stride);
                    parts.write::<L>(row, head, all);
                }
            }
        }
    }
}

/// The decoded page.
#[inline(always)]
fn decoded(values: *const f32, stride: usize) -> PageHead {
    PageHead {
        head: values.cast(),
        stride,
    }
}
