//! The numbers of rows of steps, and the steps that are recorded at start-up.

use crate::{
    model::layers::layer_input,
    ops::{Variant, matvec},
};

/// The maximum number of tokens of a step.
pub(in crate::model) const MAX_TOKENS: usize = 256;
const _: () = assert!(MAX_TOKENS <= layer_input::MAX_ROWS);
/// The maximum number of sequences of a batch.
pub(in crate::model) const MAX_BATCH: usize = matvec::MAX_TOKENS;
/// Ids that greedy steps collect on the device before the host reads them.
pub(in crate::model) const CHOSEN_IDS: usize = 64;
/// Rows of captured steps. A chunk runs in the first size that holds it; more sizes would only cost
/// more pipelines.
pub(in crate::model) const CHUNK_ROWS: [usize; 7] = [1, 8, 16, 32, 64, 128, MAX_TOKENS];
/// The sizes whose kernels are for many tokens.
pub(in crate::model) const MANY_ROWS: [usize; 5] = [16, 32, 64, 128, MAX_TOKENS];
pub(in crate::model) const BATCH_ROWS: [usize; 4] = [1, 2, 4, MAX_BATCH];
/// The sizes of steps that verify drafts: those of chunks for which there are logits after every token.
pub(in crate::model) const DRAFT_ROWS: [usize; 2] = [1, MAX_BATCH];
/// Tokens whose logits exist at once while a prompt is scored.
pub(in crate::model) const SCORE_TOKENS: usize = 32;

/// Rows of an encoder's step of this many tokens: few sizes, so that buffers are used again, and never so few
/// that the kernels for few tokens run, which round differently.
pub(in crate::model) fn encoder_rows(tokens: usize) -> usize {
    tokens.next_power_of_two().max(2 * matvec::MAX_TOKENS)
}

/// The steps that are recorded before the first request; all others are recorded when they are needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::model) enum WarmUp {
    /// The steps of prompts as well: the first request waits for nothing.
    Prompts,
    /// The steps of a single token only.
    Decode,
}

/// Rows of the steps that are recorded at start-up: other chunks run the pipelines of the last ones.
/// Tiles of many tokens differ from those of few, unless each lies in a single lane.
pub(in crate::model) fn warm_rows(variant: Variant, warm_up: WarmUp) -> &'static [usize] {
    const ROWS: [usize; 4] = [1, 8, 16, MAX_TOKENS];
    match (warm_up, variant.barrier_free) {
        (WarmUp::Decode, _) => &ROWS[..1],
        (WarmUp::Prompts, true) => &ROWS[..3],
        (WarmUp::Prompts, false) => &ROWS,
    }
}

/// Whether the device chooses sampled tokens: where barriers are expensive the host is faster.
pub(in crate::model) fn chooses_on_device(variant: Variant) -> bool {
    !variant.barrier_free
}
