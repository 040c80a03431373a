//! The checked description of an attention, and its division into parts. `heads` computes a part.

use std::marker::PhantomData;

use super::{
    chunks::{Found, seen_chunks},
    load::PageHead,
    softmax::Running,
};
use crate::{
    kernel_module::{ATTENTION, Header},
    lanes::{
        f32x8::{F32x8, LANES},
        kv::{KvFormat, PAGE_TOKENS, Row},
    },
};

/// Rows of a step that are divided into parts one by one. More rows share loads of K and V, many at a time.
const SINGLE_ROWS: usize = 8;
/// Queries that share loads of K and V at most, if several rows do.
const SHARED_QUERIES: usize = 32;

/// Sizes of the attention.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AttentionShape {
    /// Query heads; a multiple of `kv_heads`.
    pub heads: usize,
    /// Key and value heads.
    pub kv_heads: usize,
    /// Elements of a head; a multiple of 4.
    pub head_dim: usize,
    /// The tokens that a query sees, if it does not see all.
    pub window: Option<Window>,
    /// Scores `s` become `cap * tanh(s / cap)` (Gemma 2, <https://arxiv.org/abs/2408.00118>).
    pub soft_cap: Option<f32>,
}

/// The tokens that a query sees of those up to its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Window {
    /// At most this many tokens, its own included (Beltagy et al. 2020, <https://arxiv.org/abs/2004.05150>). Where attention is not
    /// causal, this holds for each side.
    Sliding(usize),
    /// The tokens of its chunk: sequences are cut into chunks of this many tokens (Llama 4).
    Chunk(usize),
}

impl Window {
    /// The number of tokens that a query sees at most.
    pub fn tokens(self) -> usize {
        match self {
            Window::Sliding(tokens) | Window::Chunk(tokens) => tokens,
        }
    }
}

impl AttentionShape {
    /// Elements of all query heads.
    pub fn q_dim(self) -> usize {
        self.heads * self.head_dim
    }

    /// Elements of all key heads.
    pub fn kv_dim(self) -> usize {
        self.kv_heads * self.head_dim
    }

    /// The first token that a query at `position` sees.
    pub fn window_begin(self, position: usize) -> usize {
        match self.window {
            None => 0,
            Some(Window::Sliding(tokens)) => sliding_begin(tokens, position),
            Some(Window::Chunk(tokens)) => position - position % tokens,
        }
    }
}

/// The first token that a query at `position` sees if it sees at most `window` tokens.
#[inline(always)]
fn sliding_begin(window: usize, position: usize) -> usize {
    let length = position + 1;
    length - window.min(length)
}

/// An attention in parts, which threads may compute at the same time: each part is one KV head of some rows, or of a chunk of
/// the context of one row, and writes its own elements of the output or of `found`. The kernel module reads this from the memory of the module that fills it.
#[derive(Debug)]
#[repr(C)]
pub struct AttentionParts<'a> {
    pub(super) header: Header,
    pub(super) format: KvFormat,
    /// The soft cap of scores; 0 if there is none.
    pub(super) soft_cap: f32,
    /// Query heads per KV head, at least 1.
    pub(super) group: usize,
    /// KV heads, at least 1.
    pub(super) kv_heads: usize,
    pub(super) head_dim: usize,
    pub(super) window: usize,
    /// Tokens of a chunk; 0 if the window is sliding.
    pub(super) chunk: usize,
    pub(super) rows_per_part: usize,
    /// Chunks of the context that are parts of their own, of the row that sees most; 1 if rows are not divided.
    pub(super) chunks: usize,
    pub(super) row_count: usize,
    pub(super) rows: *const Row<'a>,
    pub(super) q: *const f32,
    pub(super) kv: *const u32,
    pub(super) out: *mut f32,
    /// A score per query head that joins each softmax without a value; null for none.
    pub(super) sinks: *const f32,
    /// What the parts of divided rows found: the elements of `memory`.
    found: *mut f32,
    memory: Vec<f32>,
    pub(super) borrowed: PhantomData<&'a mut [f32]>,
}

// SAFETY: parts write different elements of `out`, which is borrowed for `'a`, and of `found`.
unsafe impl Sync for AttentionParts<'_> {}
// SAFETY: `out` is a borrow of floats, which may move to another thread.
unsafe impl Send for AttentionParts<'_> {}

impl<'a> AttentionParts<'a> {
    /// The arguments are those of [`super::attention`].
    ///
    /// # Panics
    /// If tensors are too small, or a row's page is not in `kv`.
    pub fn new(
        q: &'a [f32],
        kv: &'a [u32],
        rows: &'a [Row],
        shape: AttentionShape,
        format: KvFormat,
        out: &'a mut [f32],
    ) -> Self {
        let len = rows.len() * shape.q_dim();
        assert!(q.len() >= len && out.len() >= len, "q or out has few rows");
        assert!(shape.head_dim.is_multiple_of(format.head_multiple()));
        assert!(shape.kv_heads > 0 && shape.heads > 0);
        assert!(shape.heads.is_multiple_of(shape.kv_heads));
        let group = shape.heads / shape.kv_heads;
        let mut parts = Self {
            header: Header::new(ATTENTION),
            format,
            soft_cap: shape.soft_cap.unwrap_or(0.0),
            group,
            kv_heads: shape.kv_heads,
            head_dim: shape.head_dim,
            window: shape.window.map_or(usize::MAX, Window::tokens),
            chunk: match shape.window {
                Some(Window::Chunk(tokens)) => tokens,
                _ => 0,
            },
            rows_per_part: match rows.len() {
                ..=SINGLE_ROWS => 1,
                _ => (SHARED_QUERIES / group).max(1),
            },
            chunks: 1,
            row_count: rows.len(),
            rows: rows.as_ptr(),
            q: q.as_ptr(),
            kv: kv.as_ptr(),
            out: out.as_mut_ptr(),
            sinks: std::ptr::null(),
            found: std::ptr::null_mut(),
            memory: Vec::new(),
            borrowed: PhantomData,
        };
        let pages = kv.len() / format.page_words(shape.kv_dim());
        let mut first = 0;
        while first < rows.len() {
            // SAFETY: they are in memory.
            let count = unsafe { parts.consecutive(first, rows.len()) };
            let [begin, _] = parts.seen(rows[first]);
            let [_, end] = parts.seen(rows[first + count - 1]);
            let seen = &rows[first].pages()[begin / PAGE_TOKENS..=(end - 1) / PAGE_TOKENS];
            assert!(
                seen.iter().all(|page| (*page as usize) < pages),
                "a page is not there"
            );
            first += count;
        }
        if parts.rows_per_part == 1 {
            parts.divide(rows);
        }
        parts
    }

    /// Makes chunks of the context parts of their own.
    fn divide(&mut self, rows: &[Row]) {
        let chunks = rows.iter().map(|row| {
            let [first, last] = seen_chunks(self.seen(*row));
            last - first + 1
        });
        self.chunks = chunks.max().unwrap_or(1);
        if self.chunks > 1 {
            let count = rows.len() * self.chunks * self.kv_heads * self.group;
            self.memory = vec![0.0; count * self.found_floats()];
            self.found = self.memory.as_mut_ptr();
        }
    }

    /// Floats of what a query found.
    #[inline(always)]
    fn found_floats(&self) -> usize {
        self.head_dim.div_ceil(LANES) * LANES + size_of::<Running>() / size_of::<f32>()
    }

    /// What query head `head` of a divided row found in a chunk, counted from the first one that the row sees.
    ///
    /// # Safety
    /// Rows are divided, and there are so many.
    #[inline(always)]
    pub(super) unsafe fn found(&self, row: usize, chunk: usize, head: usize) -> Found {
        let heads = self.kv_heads * self.group;
        let at = (row * self.chunks + chunk) * heads + head;
        let floats = self.found_floats();
        // SAFETY: the caller's.
        unsafe {
            let sums = self.found.add(at * floats);
            let end = sums.add(floats - size_of::<Running>() / size_of::<f32>());
            Found {
                sums,
                running: end.cast(),
            }
        }
    }

    /// Writes the weighted means of the values that query head `head` of a row found.
    ///
    /// # Safety
    /// The row is in memory, and no other thread writes its head.
    #[inline(always)]
    pub(super) unsafe fn write<L: F32x8>(&self, row: usize, head: usize, found: Found) {
        let dim = self.head_dim;
        let first = (row * self.kv_heads * self.group + head) * dim;
        // SAFETY: the caller's.
        unsafe {
            let out = self.out.add(first);
            let total = L::splat((*found.running).total::<L>());
            let mut at = 0;
            while at + LANES <= dim {
                L::load(found.sums.add(at)).div(total).store(out.add(at));
                at += LANES;
            }
            if at < dim {
                // Padding of the sums is 0.
                let means = found.sums.add(at);
                L::load(means).div(total).store(means);
                for i in 0..dim - at {
                    *out.add(at + i) = *means.add(i);
                }
            }
        }
    }

    /// Adds a score per query head that joins each softmax without a value (Xiao et al. 2023,
    /// <https://arxiv.org/abs/2309.17453>).
    ///
    /// # Panics
    /// If there is not one per head.
    pub fn with_sinks(self, sinks: &'a [f32]) -> Self {
        assert_eq!(sinks.len(), self.group * self.kv_heads, "a sink per head");
        Self {
            sinks: sinks.as_ptr(),
            ..self
        }
    }

    /// The number of parts.
    #[inline(always)]
    pub fn parts(&self) -> usize {
        // SAFETY: `new` sets no 0.
        unsafe { std::hint::assert_unchecked(self.rows_per_part != 0) };
        self.row_count.div_ceil(self.rows_per_part) * self.chunks * self.kv_heads
    }

    /// Multiplications of queries and keys, and of weights and values.
    #[cfg(target_feature = "simd128")]
    pub(super) fn macs(&self) -> usize {
        // SAFETY: the rows are borrowed.
        let rows = unsafe { std::slice::from_raw_parts(self.rows, self.row_count) };
        let seen = rows.iter().map(|row| self.seen(*row));
        let tokens: usize = seen.map(|[begin, end]| end - begin).sum();
        2 * tokens * self.group * self.kv_heads * self.head_dim
    }

    /// The number of rows from `first` on, before `end`, that are consecutive tokens of one sequence; at least one.
    ///
    /// # Safety
    /// There are such rows.
    #[inline(always)]
    pub(super) unsafe fn consecutive(&self, first: usize, end: usize) -> usize {
        let mut next = first + 1;
        // SAFETY: the caller's.
        while next < end && unsafe { (*self.rows.add(next - 1)).precedes(*self.rows.add(next)) } {
            next += 1;
        }
        next - first
    }

    /// The tokens that the queries of a row see, from the first one to the end.
    #[inline(always)]
    pub(super) fn seen(&self, row: Row) -> [usize; 2] {
        let position = row.position();
        if self.chunk != 0 {
            let begin = position - position % self.chunk;
            let end = begin + self.chunk.min(row.length() - begin);
            return [begin.max(row.first()), end];
        }
        let end = position + self.window.min(row.length() - position);
        [sliding_begin(self.window, position).max(row.first()), end]
    }

    /// A head of the K (`value == 0`) or the V (`1`) of a page, which is in memory.
    #[inline(always)]
    pub(super) fn page_head(&self, page: u32, value: usize, kv_head: usize) -> PageHead {
        let heads = [self.kv_heads, self.head_dim];
        let at = self.format.head_at((page, 0), value, kv_head, heads);
        PageHead {
            // In memory: see `new`.
            head: self.kv.wrapping_add(at),
            stride: self.format.words(self.head_dim),
        }
    }
}
