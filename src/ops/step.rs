//! The state of a step: the words that move between replays of a captured graph. One layout, read
//! by `shaders/shared/step.wgsl` and by the CPU twins.

use burn::tensor::{DType, Device, Int, Tensor, TensorData};

use super::backend;

/// Word of the position: tokens in the sequence before the step.
pub const POSITION: usize = 0;
/// Word of the number of tokens the step feeds.
pub const TOKENS: usize = 1;
/// Word that counts the ids chosen by `argmax` since the last upload.
pub const CHOSEN: usize = 2;
/// First word of the block table.
pub const PAGES: usize = 4;
/// Tokens per KV page.
pub const PAGE_TOKENS: usize = 64;

/// The step state on a device.
#[derive(Debug, Clone)]
pub struct Step(Option<Tensor<1, Int>>);

impl Step {
    /// A step state with room for a block table of `pages` entries.
    pub fn new(pages: usize, device: &Device) -> Self {
        let words = TensorData::new(vec![0u32; PAGES + pages], [PAGES + pages]);
        Self(Some(Tensor::from_data(words, (device, DType::U32))))
    }

    /// Sets everything for the next step; `pages` covers `position + tokens`.
    pub fn set(&mut self, position: usize, tokens: usize, pages: &[u32]) {
        let mut words = vec![position as u32, tokens as u32, 0, 0];
        words.extend_from_slice(pages);
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

/// The keys and values of one layer: `[page, k|v, page token, kv_dim]`. A clone on the GPU is the
/// same memory.
#[derive(Debug, Clone)]
pub struct KvMemory(Option<Tensor<1>>);

impl KvMemory {
    /// Memory for `pages` pages.
    pub fn new(pages: usize, kv_dim: usize, device: &Device) -> Self {
        Self(Some(Tensor::empty(
            [pages * 2 * PAGE_TOKENS * kv_dim],
            device,
        )))
    }

    /// The memory, to be read.
    pub(super) fn memory(&self) -> Tensor<1> {
        self.0.clone().expect("put back by every op that takes it")
    }

    /// The memory, to be changed in place and [`put`](Self::put) back.
    pub(super) fn take(&mut self) -> Tensor<1> {
        self.0.take().expect("put back by every op that takes it")
    }

    pub(super) fn put(&mut self, memory: Tensor<1>) {
        self.0 = Some(memory);
    }
}

/// Index of the first element of a token's key (`value == 0`) or value (`1`) vector in the KV
/// memory `[page, k|v, page token, kv_dim]`: the twin of `kv_row`.
pub(super) fn kv_row(step: &[u32], token: usize, value: usize, kv_dim: usize) -> usize {
    let page = step[PAGES + token / PAGE_TOKENS] as usize;
    ((page * 2 + value) * PAGE_TOKENS + token % PAGE_TOKENS) * kv_dim
}
