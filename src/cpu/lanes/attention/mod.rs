//! Causal grouped-query attention over the paged KV cache (Vaswani et al. 2017; Ainslie et al. 2023,
//! <https://arxiv.org/abs/2305.13245>): sizes, and the division into parts for threads.

mod heads;
mod load;
mod scores;
mod softmax;
#[cfg(test)]
mod tests;
mod values;

use std::marker::PhantomData;

use super::f32x8::run;
pub use super::kv::{KvFormat, PAGE_TOKENS, Row};
use crate::team::Team;
use heads::Heads;

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
    /// Maximum number of tokens that a query sees, including its own: a sliding window (Beltagy et al. 2020,
    /// <https://arxiv.org/abs/2004.05150>). Where attention is not causal, this holds for each side.
    pub window: Option<usize>,
    /// Scores `s` become `cap * tanh(s / cap)` (Gemma 2, <https://arxiv.org/abs/2408.00118>).
    pub soft_cap: Option<f32>,
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

    /// Query heads that share a key head.
    fn group(self) -> usize {
        self.heads / self.kv_heads
    }

    /// The tokens that the query of a row sees, from the first one to the end.
    pub(crate) fn seen(self, row: Row) -> [usize; 2] {
        let window = self.window.unwrap_or(usize::MAX);
        let after = (row.length - row.position).min(window);
        [self.window_begin(row.position), row.position + after]
    }

    /// The first token that a query at `position` sees.
    pub fn window_begin(self, position: usize) -> usize {
        let length = position + 1;
        length - self.window.map_or(length, |window| window.min(length))
    }
}

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
}

/// [`attention`], divided among the threads of a team. The bits are the same.
pub fn attention_with(
    team: &Team,
    q: &[f32],
    kv: &[u32],
    rows: &[Row],
    shape: AttentionShape,
    format: KvFormat,
    out: &mut [f32],
) {
    let parts = AttentionParts::new(q, kv, rows, shape, format, out);
    // SAFETY: a team gives each part to one thread.
    team.run(parts.parts(), &|part| unsafe { parts.run(part) });
}

/// An attention in parts, which threads may compute at the same time: each part is one KV head of some rows and writes
/// its own elements of the output.
#[derive(Debug)]
pub struct AttentionParts<'a> {
    q: &'a [f32],
    kv: &'a [u32],
    rows: &'a [Row<'a>],
    shape: AttentionShape,
    format: KvFormat,
    out: *mut f32,
    rows_per_part: usize,
    borrowed: PhantomData<&'a mut [f32]>,
}

// SAFETY: parts write different elements of `out`, which is borrowed for `'a`.
unsafe impl Sync for AttentionParts<'_> {}
// SAFETY: `out` is a borrow of floats, which may move to another thread.
unsafe impl Send for AttentionParts<'_> {}

impl<'a> AttentionParts<'a> {
    /// The arguments are those of [`attention`].
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
        assert!(shape.heads.is_multiple_of(shape.kv_heads));
        Self {
            q,
            kv,
            rows,
            shape,
            format,
            out: out.as_mut_ptr(),
            rows_per_part: match rows.len() {
                ..=SINGLE_ROWS => 1,
                _ => (SHARED_QUERIES / shape.group()).max(1),
            },
            borrowed: PhantomData,
        }
    }

    /// The number of parts.
    pub fn parts(&self) -> usize {
        self.rows.len().div_ceil(self.rows_per_part) * self.shape.kv_heads
    }

    /// Computes a part.
    ///
    /// # Safety
    /// No other thread computes the same part at the same time.
    pub unsafe fn run(&self, part: usize) {
        assert!(part < self.parts());
        let kv_head = part % self.shape.kv_heads;
        let mut first = part / self.shape.kv_heads * self.rows_per_part;
        let end = self.rows.len().min(first + self.rows_per_part);
        while first < end {
            let count = consecutive(&self.rows[first..end]);
            run(Heads {
                parts: self,
                kv_head,
                first,
                count,
            });
            first += count;
        }
    }
}

/// The number of first rows that are consecutive tokens of one sequence.
fn consecutive(rows: &[Row]) -> usize {
    let follows = |pair: &&[Row]| {
        let same = std::ptr::eq(pair[0].pages, pair[1].pages);
        same && pair[1].position == pair[0].position + 1 && pair[1].length >= pair[0].length
    };
    1 + rows.windows(2).take_while(follows).count()
}
