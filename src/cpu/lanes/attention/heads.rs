//! The query heads of one KV head, of one row or of consecutive rows of a sequence: a walk over the pages they see.

use std::cell::RefCell;

use super::{
    AttentionParts,
    load::{Elements, F16, F32, PageHead, Q8, decode},
    scores::scores,
    softmax::Running,
    values::values,
};
use crate::lanes::{
    f32x8::{F32x8, Kernel, LANES},
    kv::{KvFormat, PAGE_TOKENS},
};

/// Rows `first..first + count`, which are consecutive tokens of one sequence, of KV head `kv_head`.
pub(super) struct Heads<'a> {
    pub(super) parts: &'a AttentionParts<'a>,
    pub(super) kv_head: usize,
    pub(super) first: usize,
    pub(super) count: usize,
}

/// Memory of a thread for the queries of a part, reused from part to part.
#[derive(Default)]
struct Scratch {
    /// `[queries, vectors]`, padded with 0.
    q: Vec<f32>,
    /// `[queries, PAGE_TOKENS]`: scores, then weights.
    scores: Vec<f32>,
    /// `[queries, vectors]`: weighted sums of values.
    sums: Vec<f32>,
    /// `[queries]`
    running: Vec<Running>,
    /// The tokens of a page that each query sees.
    ranges: Vec<[usize; 2]>,
    /// `[PAGE_TOKENS, vectors]`: decoded keys or values of a page.
    decoded: Vec<f32>,
}

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

impl Kernel for Heads<'_> {
    type Output = ();

    #[inline(always)]
    fn run<L: F32x8>(self) {
        let mut scratch = SCRATCH.take();
        match self.parts.format {
            KvFormat::F32 => self.attend::<F32, L>(&mut scratch),
            KvFormat::F16 => self.attend::<F16, L>(&mut scratch),
            KvFormat::Q8_0 => self.attend::<Q8, L>(&mut scratch),
        }
        SCRATCH.set(scratch);
    }
}

impl Heads<'_> {
    #[inline(always)]
    fn attend<E: Elements, L: F32x8>(&self, scratch: &mut Scratch) {
        let shape = self.parts.shape;
        let (dim, group) = (shape.head_dim, shape.group());
        let vectors = dim.div_ceil(LANES);
        let queries = self.count * group;
        self.read_queries(vectors * LANES, scratch);
        scratch.scores.resize(queries * PAGE_TOKENS, 0.0);
        scratch.sums.clear();
        scratch.sums.resize(queries * vectors * LANES, 0.0);
        scratch.running.clear();
        scratch.running.resize(queries, Running::NONE);
        scratch.decoded.resize(PAGE_TOKENS * vectors * LANES, 0.0);
        // Decoding first pays where several passes over the page follow; the last vector of a head may be half.
        let decodes = queries > L::QUERIES || !dim.is_multiple_of(LANES);
        let row = self.parts.rows[self.first];
        let [begin, _] = shape.seen(row);
        let [_, end] = shape.seen(self.parts.rows[self.first + self.count - 1]);
        for page in begin / PAGE_TOKENS..=(end - 1) / PAGE_TOKENS {
            let active = self.set_ranges(page, &mut scratch.ranges);
            let (first, ranges) = (active * group, &scratch.ranges[..]);
            let union = [ranges[0][0], ranges[ranges.len() - 1][1]];
            let number = row.pages[page];
            let keys = self.page_head(number, 0);
            let weights = &mut scratch.scores[..ranges.len() * PAGE_TOKENS];
            let q = &scratch.q[first * vectors * LANES..];
            // SAFETY: `page_head` asserted that the page is in memory; `E` is its format.
            unsafe {
                if decodes {
                    let to = &mut scratch.decoded;
                    decode::<E, L>(keys, union, dim, self.parts.format, to);
                    scores::<F32, L>(q, vectors, decoded(to, vectors), union, weights);
                } else {
                    scores::<E, L>(q, vectors, keys, union, weights);
                }
            }
            let (weights_each, _) = weights.as_chunks_mut::<PAGE_TOKENS>();
            for (i, weights) in weights_each.iter_mut().enumerate() {
                let running = &mut scratch.running[first + i];
                let factor = running.weigh::<L>(weights, ranges[i], shape.soft_cap);
                if factor != 1.0 {
                    let from = (first + i) * vectors * LANES;
                    for sum in &mut scratch.sums[from..from + vectors * LANES] {
                        *sum *= factor;
                    }
                }
            }
            let page_values = self.page_head(number, 1);
            let sums = &mut scratch.sums[first * vectors * LANES..];
            // SAFETY: as above.
            unsafe {
                if decodes {
                    let to = &mut scratch.decoded;
                    decode::<E, L>(page_values, union, dim, self.parts.format, to);
                    values::<F32, L>(weights, vectors, decoded(to, vectors), ranges, sums);
                } else {
                    values::<E, L>(weights, vectors, page_values, ranges, sums);
                }
            }
        }
        self.write::<L>(vectors, scratch);
    }

    /// Copies the queries, padded to `stride` elements each.
    fn read_queries(&self, stride: usize, scratch: &mut Scratch) {
        let shape = self.parts.shape;
        scratch.q.clear();
        for row in self.first..self.first + self.count {
            let at = row * shape.q_dim() + self.kv_head * shape.group() * shape.head_dim;
            let heads = &self.parts.q[at..at + shape.group() * shape.head_dim];
            for head in heads.chunks_exact(shape.head_dim) {
                scratch.q.extend_from_slice(head);
                let len = scratch.q.len().next_multiple_of(stride);
                scratch.q.resize(len, 0.0);
            }
        }
    }

    /// Sets which tokens of page `page` of the sequence each query sees, for the queries that see any: those of
    /// consecutive rows, of which the first is returned.
    fn set_ranges(&self, page: usize, ranges: &mut Vec<[usize; 2]>) -> usize {
        let shape = self.parts.shape;
        let (page_begin, page_end) = (page * PAGE_TOKENS, (page + 1) * PAGE_TOKENS);
        ranges.clear();
        let mut first = self.count;
        for row in 0..self.count {
            let [begin, end] = shape.seen(self.parts.rows[self.first + row]);
            let (begin, end) = (begin.max(page_begin), end.min(page_end));
            if begin < end {
                first = first.min(row);
                let range = [begin - page_begin, end - page_begin];
                ranges.resize(ranges.len() + shape.group(), range);
            }
        }
        first
    }

    /// The head of the K (`value == 0`) or the V (`1`) of a page, which is in memory.
    fn page_head(&self, page: u32, value: usize) -> PageHead {
        let AttentionParts { shape, format, .. } = *self.parts;
        let at = format.row_at(page, value, 0, shape.kv_dim());
        let stride = format.words(shape.kv_dim());
        let words = &self.parts.kv[at..at + PAGE_TOKENS * stride];
        let head = &words[format.words(self.kv_head * shape.head_dim)..];
        PageHead {
            head: head.as_ptr(),
            stride,
        }
    }

    /// Writes the weighted means of the values.
    #[inline(always)]
    fn write<L: F32x8>(&self, vectors: usize, scratch: &Scratch) {
        let shape = self.parts.shape;
        let sums = scratch.sums.chunks_exact(vectors * LANES);
        for (i, (sums, running)) in sums.zip(&scratch.running).enumerate() {
            let row = self.first + i / shape.group();
            let head = self.kv_head * shape.group() + i % shape.group();
            let at = row * shape.q_dim() + head * shape.head_dim;
            // SAFETY: `AttentionParts::new` asserted the length; the head is only this part's.
            let out =
                unsafe { std::slice::from_raw_parts_mut(self.parts.out.add(at), shape.head_dim) };
            let total = L::splat(running.total::<L>());
            for (sums, out) in sums.chunks_exact(LANES).zip(out.chunks_mut(LANES)) {
                L::load_part(sums).div(total).store_part(out);
            }
        }
    }
}

/// The decoded page.
fn decoded(values: &[f32], vectors: usize) -> PageHead {
    PageHead {
        head: values.as_ptr().cast(),
        stride: vectors * LANES,
    }
}
