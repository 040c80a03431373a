//! The state of a step: the words that change between replays of a captured graph. This file defines the
//! layout that `shaders/shared/step.wgsl` and the CPU twins read.

use burn::tensor::{Device, Int, Tensor};

use super::in_place::InPlace;
use crate::kernel::Kernel;

/// Word with the number of tokens of the step, which are its first rows; further rows are padding.
pub const TOKENS: usize = 0;
/// Word with the number of ids selected by `argmax` since the last upload.
pub const CHOSEN: usize = 1;
/// Word with the index of the first row's rotary position, [`PARTS`] words per row; 0 if all follow from the indices of
/// tokens.
const ROTARY: usize = 2;
/// First word of the rows. A row has its position and the index of the first word of its block table.
pub const ROWS: usize = 3;
const ROW_WORDS: usize = 2;
/// Words before a block table: the slot of the sequence's state, the first token of the segment, what is added to the index of a token to get its rotary
/// position, how many tokens of the sequence all of its rows see at least, and the number of tokens that the sequence has
/// after the step.
const TABLE_HEAD: usize = 5;
/// Parts of a rotary position: time, row, column.
pub const PARTS: usize = 3;
pub use inpage_cpu::lanes::kv::PAGE_TOKENS;

/// Consecutive tokens of one sequence, each a row of a step.
#[derive(Debug, Clone, Copy)]
pub struct Segment<'a> {
    /// Tokens that precede them in the sequence. Where attention is not causal they are not seen: the segment may begin
    /// within a page that it shares.
    pub position: usize,
    /// The number of tokens.
    pub tokens: usize,
    /// The sequence's block table, which covers `position + tokens` tokens.
    pub pages: &'a [u32],
    /// The slot of the sequence's state in recurrent layers.
    pub state: u32,
    /// Whether causal attention lets each of the tokens see all of them, such as those of an image.
    pub is_seen_whole: bool,
    /// Rotary positions, where they are not the tokens' indices.
    pub rotary: Rotary<'a>,
}

/// Rotary positions of a segment. The kernels read them in models whose rotary positions have parts.
#[derive(Debug, Clone, Copy, Default)]
pub struct Rotary<'a> {
    /// The number that is added, modulo 2^32, to the indices of tokens after the segment, and of its own if `rows` is empty.
    pub offset: u32,
    /// Time, row and column of each token of the segment; or none.
    pub rows: &'a [[u32; PARTS]],
}

/// The step state on a device.
#[derive(Debug, Clone)]
pub struct Step(InPlace);

impl Step {
    /// A step state for up to `tokens` tokens and block tables of up to `pages` entries in total.
    pub fn new(tokens: usize, pages: usize, device: &Device) -> Self {
        let len = ROWS + (ROW_WORDS + TABLE_HEAD + PARTS) * tokens + pages;
        Self(InPlace::upload(vec![0; len], device))
    }

    /// Sets the state for the next step: the rows of the segments, one segment after the other.
    pub fn set(&mut self, segments: &[Segment]) {
        let tokens: usize = segments.iter().map(|segment| segment.tokens).sum();
        let mut words = vec![tokens as u32, 0, 0];
        let mut table = ROWS + ROW_WORDS * tokens;
        for segment in segments {
            table += TABLE_HEAD;
            for position in segment.position..segment.position + segment.tokens {
                words.extend([position as u32, table as u32]);
            }
            table += segment.pages.len();
        }
        for segment in segments {
            let end = segment.position + segment.tokens;
            let sight = if segment.is_seen_whole { end } else { 0 };
            let first = segment.position as u32;
            words.extend([segment.state, first]);
            words.extend([segment.rotary.offset, sight as u32, end as u32]);
            words.extend_from_slice(segment.pages);
        }
        if segments.iter().any(|it| !it.rotary.rows.is_empty()) {
            words[ROTARY] = words.len() as u32;
            for segment in segments {
                words.extend(rotary_rows(segment).flatten());
            }
        }
        self.0.write(0, words);
    }

    /// The words, to read.
    pub fn words(&self) -> Tensor<1, Int> {
        self.0.get()
    }

    /// The words, to change in place and [`put`](Self::put) back.
    pub(super) fn take(&mut self) -> Tensor<1, Int> {
        self.0.take()
    }

    pub(super) fn put(&mut self, words: Tensor<1, Int>) {
        self.0.put(words);
    }
}

/// The rotary positions of all tokens of a segment.
fn rotary_rows(segment: &Segment) -> impl Iterator<Item = [u32; PARTS]> {
    let Rotary { offset, rows } = segment.rotary;
    let first = segment.position as u32;
    (0..segment.tokens).map(move |at| {
        let plain = [first.wrapping_add(at as u32).wrapping_add(offset); PARTS];
        rows.get(at).copied().unwrap_or(plain)
    })
}

/// Adds the constants of the layout, for kernels that read or change the state.
pub(super) fn layout(kernel: Kernel) -> Kernel {
    kernel
        .constant("STEP_TOKENS", TOKENS)
        .constant("STEP_CHOSEN", CHOSEN)
        .constant("STEP_ROTARY", ROTARY)
        .constant("STEP_ROWS", ROWS)
        .constant("ROW_WORDS", ROW_WORDS)
        .constant("PAGE_TOKENS", PAGE_TOKENS)
}

/// Tokens that precede a row's token in its sequence: the CPU twin of `row_position`.
pub(super) fn row_position(step: &[u32], row: usize) -> usize {
    step[ROWS + ROW_WORDS * row] as usize
}

/// First word of a row's block table: the CPU twin of `row_table`.
pub(super) fn row_table(step: &[u32], row: usize) -> usize {
    step[ROWS + ROW_WORDS * row + 1] as usize
}

/// Tokens that a row's sequence had when the step was set, those of the step included: the CPU twin of
/// `row_length`.
pub(super) fn row_length(step: &[u32], row: usize) -> usize {
    step[row_table(step, row) - 1] as usize
}

/// The slot of the state of a row's sequence: the CPU twin of `row_state`.
pub(super) fn row_state(step: &[u32], row: usize) -> usize {
    step[row_table(step, row) - 5] as usize
}

/// The first token of a row's segment: the CPU twin of `row_first`.
pub(super) fn row_first(step: &[u32], row: usize) -> usize {
    step[row_table(step, row) - 4] as usize
}

/// Tokens of its sequence that a row sees in causal attention: the CPU twin of `row_end`.
pub(super) fn row_end(step: &[u32], row: usize) -> usize {
    let sight = step[row_table(step, row) - 2] as usize;
    sight.max(row_position(step, row) + 1)
}

/// The rotary position of a row: the CPU twin of `row_rotary`.
pub(super) fn row_rotary(step: &[u32], row: usize) -> [u32; PARTS] {
    let position = row_position(step, row);
    let rotary = step[ROTARY] as usize;
    // Rows that were advanced since the step was set have none of their own.
    if rotary > 0 && position < row_length(step, row) {
        return std::array::from_fn(|part| step[rotary + PARTS * row + part]);
    }
    let offset = step[row_table(step, row) - 3];
    [(position as u32).wrapping_add(offset); PARTS]
}

/// The rows of each sequence in a step of at most `tokens` rows, without padding.
pub(super) fn sequences(step: &[u32], tokens: usize) -> Vec<std::ops::Range<usize>> {
    let mut sequences: Vec<std::ops::Range<usize>> = Vec::new();
    for row in 0..(step[TOKENS] as usize).min(tokens) {
        match sequences.last_mut() {
            Some(last) if row_table(step, last.start) == row_table(step, row) => last.end += 1,
            _ => sequences.push(row..row + 1),
        }
    }
    sequences
}

/// The rows of a step for the kernels of the CPU device, without padding.
pub(super) fn cpu_rows(step: &[u32], tokens: usize) -> Vec<inpage_cpu::lanes::kv::Row<'_>> {
    let rows = 0..(step[TOKENS] as usize).min(tokens);
    rows.map(|row| {
        let pages = &step[row_table(step, row)..];
        let plain = inpage_cpu::lanes::kv::Row::new(row_position(step, row), pages);
        plain.turned(row_rotary(step, row))
    })
    .collect()
}

/// Advances to a step whose single row follows the last row of this one.
pub(super) fn advance(step: &mut [u32]) {
    let last = step[TOKENS] as usize - 1;
    let next = [row_position(step, last) + 1, row_table(step, last)].map(|word| word as u32);
    step[ROWS..ROWS + ROW_WORDS].copy_from_slice(&next);
    step[TOKENS] = 1;
}

/// Advances a row to its next token.
pub(super) fn advance_row(step: &mut [u32], row: usize) {
    step[ROWS + ROW_WORDS * row] += 1;
}

/// The page and the page token of the token at `position` of the sequence with block table `table`.
pub(super) fn kv_place(step: &[u32], table: usize, position: usize) -> (u32, usize) {
    let page = step[table + position / PAGE_TOKENS];
    (page, position % PAGE_TOKENS)
}
