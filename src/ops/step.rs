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
pub struct Step {
    /// `[PAGES + pages]` words.
    pub words: Tensor<1, Int>,
}

impl Step {
    /// A step state with room for a block table of `pages` entries.
    pub fn new(pages: usize, device: &Device) -> Self {
        let words = Tensor::from_data(
            TensorData::new(vec![0u32; PAGES + pages], [PAGES + pages]),
            (device, DType::U32),
        );
        Self { words }
    }

    /// Sets everything for the next step; `pages` covers `position + tokens`.
    pub fn set(&mut self, position: usize, tokens: usize, pages: &[u32]) {
        let mut words = vec![position as u32, tokens as u32, 0, 0];
        words.extend_from_slice(pages);
        backend::write_words(&mut self.words, 0, words);
    }
}

/// Index of the first element of a token's key (`value == 0`) or value (`1`) vector in the KV
/// memory `[page, k|v, page token, kv_dim]`: the twin of `kv_row`.
pub(super) fn kv_row(step: &[u32], token: usize, value: usize, kv_dim: usize) -> usize {
    let page = step[PAGES + token / PAGE_TOKENS] as usize;
    ((page * 2 + value) * PAGE_TOKENS + token % PAGE_TOKENS) * kv_dim
}
