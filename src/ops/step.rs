//! The state of a step: the words that move between replays of a captured graph. One layout, read
//! by `shaders/shared/step.wgsl` and by the CPU twins.

use burn::tensor::{DType, Device, Int, Tensor, TensorData};

use super::{backend, kernel::Kernel};

/// Word of the number of tokens the step feeds: its first rows; further rows are padding.
pub const TOKENS: usize = 0;
/// Word that counts the ids chosen by `argmax` since the last upload.
pub const CHOSEN: usize = 1;
/// First word of the rows: of each, its position and the word at which its block table starts.
pub const ROWS: usize = 2;
const ROW_WORDS: usize = 2;
/// Tokens per KV page.
pub const PAGE_TOKENS: usize = 64;

/// Consecutive tokens of one sequence, one row of a step each.
#[derive(Debug, Clone, Copy)]
pub struct Segment<'a> {
    /// Tokens in the sequence before them.
    pub position: usize,
    /// How many.
    pub tokens: usize,
    /// The sequence's block table; covers `position + tokens`.
    pub pages: &'a [u32],
}

/// The step state on a device.
#[derive(Debug, Clone)]
pub struct Step(Option<Tensor<1, Int>>);

impl Step {
    /// A step state with room for `tokens` tokens and block tables of `pages` entries in all.
    pub fn new(tokens: usize, pages: usize, device: &Device) -> Self {
        let len = ROWS + ROW_WORDS * tokens + pages;
        let words = TensorData::new(vec![0u32; len], [len]);
        Self(Some(Tensor::from_data(words, (device, DType::U32))))
    }

    /// Sets everything for the next step: the rows of the segments, one segment after the other.
    pub fn set(&mut self, segments: &[Segment]) {
        let tokens: usize = segments.iter().map(|segment| segment.tokens).sum();
        let mut words = vec![tokens as u32, 0];
        let mut table = ROWS + ROW_WORDS * tokens;
        for segment in segments {
            for position in segment.position..segment.position + segment.tokens {
                words.extend([position as u32, table as u32]);
            }
            table += segment.pages.len();
        }
        for segment in segments {
            words.extend_from_slice(segment.pages);
        }
        let written = backend::write_words(self.take(), 0, words);
        self.put(written);
    }

    /// The words, for whoever wants to look at them.
    pub fn read(&self) -> Tensor<1, Int> {
        self.words()
    }

    /// The words, to be read.
    pub(super) fn words(&self) -> Tensor<1, Int> {
        self.0.clone().expect("put back by every op that takes it")
    }

    /// The words, to be changed in place and [`put`](Self::put) back.
    pub(super) fn take(&mut self) -> Tensor<1, Int> {
        self.0.take().expect("put back by every op that takes it")
    }

    pub(super) fn put(&mut self, words: Tensor<1, Int>) {
        self.0 = Some(words);
    }
}

/// Adds the constants of the layout, for kernels that read or change the state.
pub(super) fn layout(kernel: Kernel) -> Kernel {
    kernel
        .constant("STEP_TOKENS", TOKENS)
        .constant("STEP_CHOSEN", CHOSEN)
        .constant("STEP_ROWS", ROWS)
        .constant("ROW_WORDS", ROW_WORDS)
        .constant("PAGE_TOKENS", PAGE_TOKENS)
}

/// Tokens in a row's sequence before the row's own: the twin of `row_position`.
pub(super) fn row_position(step: &[u32], row: usize) -> usize {
    step[ROWS + ROW_WORDS * row] as usize
}

/// Word at which a row's block table starts: the twin of `row_table`.
pub(super) fn row_table(step: &[u32], row: usize) -> usize {
    step[ROWS + ROW_WORDS * row + 1] as usize
}

/// Makes the single row of the next step follow the last of this one.
pub(super) fn advance(step: &mut [u32]) {
    let last = step[TOKENS] as usize - 1;
    let next = [row_position(step, last) + 1, row_table(step, last)].map(|word| word as u32);
    step[ROWS..ROWS + ROW_WORDS].copy_from_slice(&next);
    step[TOKENS] = 1;
}

/// Makes a row's next token follow this one.
pub(super) fn advance_row(step: &mut [u32], row: usize) {
    step[ROWS + ROW_WORDS * row] += 1;
}

/// Index of the first element of the key (`value == 0`) or value (`1`) vector of the token at
/// `position` in the KV memory `[page, k|v, page token, kv_dim]`: the twin of `kv_row`.
pub(super) fn kv_row(
    step: &[u32],
    table: usize,
    position: usize,
    value: usize,
    kv_dim: usize,
) -> usize {
    let page = step[table + position / PAGE_TOKENS] as usize;
    ((page * 2 + value) * PAGE_TOKENS + position % PAGE_TOKENS) * kv_dim
}
