//! The buffers of the steps of the head that drafts.

use burn::tensor::Device;

use super::sizes::{MAX_BATCH, MAX_TOKENS};
use crate::ops::{InPlace, step::Step};

/// The tensors that the head's steps read and write besides its memory.
pub(super) struct MtpInputs {
    pub(super) step: Step,
    /// The token drafted last.
    pub(super) id: InPlace,
    /// Ring of the drafted tokens.
    pub(super) drafted: InPlace,
}

impl MtpInputs {
    /// Inputs for sequences of at most `pages` pages.
    pub(super) fn new(pages: usize, device: &Device) -> Self {
        Self {
            step: Step::new(MAX_TOKENS, pages, device),
            id: InPlace::upload(vec![0], device),
            drafted: InPlace::upload(vec![0; MAX_BATCH], device),
        }
    }
}
