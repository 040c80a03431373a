//! The engine's own limits, and how they and the model's bound a step.

use super::costs::MAX_ROWS;
use super::model::ModelLimits;
use super::prompt::Prompt;

/// The tokens that are guessed, and verified several at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Speculation {
    /// No tokens are guessed.
    Off,
    /// The tokens that come next in a request's prediction, and those that a constraint forces.
    Predictions,
    /// The tokens of [`Self::Predictions`] and those that the model drafts, if it does.
    Model,
    /// The tokens of [`Self::Model`] and those that followed where the end of the text occurred before.
    All,
}

/// Limits of an engine; the defaults are those of specification 14 where it names one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineLimits {
    /// Requests that may wait; those that run, or will as soon as the engine is polled, do not count.
    pub max_queue: usize,
    /// Unread events of all candidates of a request at which its generation pauses; at least 2 per candidate.
    pub max_unread_events: usize,
    /// Prompt tokens fed in one step, in whole pages, at least one. Bounds how long a cancel may
    /// take and how long a prompt delays running sequences.
    pub prefill_chunk_tokens: usize,
    /// Tokens that may be chosen ahead in one step, before a reader sees the first of them; at
    /// least 1.
    pub max_run_ahead_tokens: usize,
    /// KV pages that stay cached for prompts with the same beginning while no sequence holds them.
    pub max_cached_pages: usize,
    /// The tokens that are guessed and verified, as far as this is measured to be faster.
    pub speculation: Speculation,
}

impl Default for EngineLimits {
    fn default() -> Self {
        Self {
            max_queue: 16,
            max_unread_events: 256,
            prefill_chunk_tokens: 512,
            max_run_ahead_tokens: 16,
            max_cached_pages: usize::MAX,
            speculation: Speculation::Off,
        }
    }
}

impl EngineLimits {
    /// The same with every limit raised to its minimum.
    pub(super) fn at_least_minimal(self) -> Self {
        Self {
            max_unread_events: self.max_unread_events.max(2),
            prefill_chunk_tokens: self.prefill_chunk_tokens.max(1),
            max_run_ahead_tokens: self.max_run_ahead_tokens.max(1),
            ..self
        }
    }
}

/// The sizes that steps may have, and the places where prompts are cut.
#[derive(Debug, Clone, Copy)]
pub(super) struct StepLimits {
    pub(super) page_tokens: usize,
    /// Whole pages.
    pub(super) chunk_tokens: usize,
    /// Tokens of a step that may round differently than a larger one.
    pub(super) few_tokens: usize,
    /// Sequences in a batch.
    pub(super) max_batch: usize,
    /// Whether the model has states: prompts are also cut where snapshots of them are taken.
    pub(super) has_states: bool,
    /// Whether prompts are not cut inside of images.
    pub(super) whole_images: bool,
    pub(super) vocab_size: usize,
    pub(super) speculation: Speculation,
    /// The maximum number of rows of a step that verifies a draft.
    pub(super) verified_rows: usize,
    /// Whether the model drafts tokens.
    pub(super) drafts: bool,
}

impl StepLimits {
    /// `verified_rows` is what the model takes; `drafts` says whether it drafts.
    pub(super) fn new(
        limits: &EngineLimits,
        model: &ModelLimits,
        verified_rows: usize,
        drafts: bool,
    ) -> Self {
        let page_tokens = model.page_tokens.max(1);
        Self {
            page_tokens,
            chunk_tokens: (limits.prefill_chunk_tokens / page_tokens).max(1) * page_tokens,
            few_tokens: model.few_tokens,
            max_batch: model.max_batch.max(1),
            has_states: model.state_slots > 0,
            whole_images: model.whole_images,
            vocab_size: model.vocab_size,
            speculation: limits.speculation,
            verified_rows: verified_rows.min(MAX_ROWS),
            drafts: drafts && matches!(limits.speculation, Speculation::Model | Speculation::All),
        }
    }

    /// Whether a cut at `position` would divide an image that must not be divided.
    pub(super) fn divides_image(&self, prompt: &Prompt, position: usize) -> bool {
        self.whole_images && prompt.image_around(position).is_some()
    }

    /// The most of the first `pages` pages whose end divides no image.
    pub(super) fn pages_before_images(&self, prompt: &Prompt, mut pages: usize) -> usize {
        while let Some(image) = prompt.image_around(pages * self.page_tokens) {
            pages = image.start / self.page_tokens;
        }
        pages
    }

    /// The number of tokens to feed next from `begin` on, up to `stop`, which divides no image. Where images must not be
    /// divided, a chunk goes on to the end of its last one, and does not leave so few tokens that a step of them would
    /// round differently.
    pub(super) fn tokens_before(&self, prompt: &Prompt, begin: usize, stop: usize) -> usize {
        let tokens = self.chunk_tokens.min(stop - begin);
        if !self.whole_images || begin + tokens == stop {
            return tokens;
        }
        let cut = begin + tokens;
        let cut = prompt.image_around(cut).map_or(cut, |it| it.end);
        match stop - cut <= self.few_tokens {
            true => stop - begin,
            false => cut - begin,
        }
    }

    /// The first position of the page that holds the last of `tokens` (at least one).
    pub(super) fn last_page(&self, tokens: usize) -> usize {
        (tokens - 1) / self.page_tokens * self.page_tokens
    }

    /// Whether a step of only the tokens on that page would be one of few tokens.
    pub(super) fn ends_shortly(&self, tokens: usize) -> bool {
        tokens - self.last_page(tokens) <= self.few_tokens
    }
}
