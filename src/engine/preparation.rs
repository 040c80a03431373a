//! Prompts that are fed while the engine is idle, so that their pages are cached when a request needs them: the next
//! turn of a conversation.
//!
//! A preparation is fed in parts, each a request of its own for one token without a reader, and a part in steps of a few tokens.
//! A request that arrives waits for one step at most: the part is dropped then and fed again later. The pages are those that the
//! request itself would compute, bit for bit, because a step has more tokens than those that models compute in another way.
//!
//! The next turn is fed ahead (`api/run/next_turn.rs`). After a chat message the idle engine feeds what the
//! next prompt begins with. It costs a prefill of each answer, a fraction of what
//! generating it took, and it also covers what templates change in earlier messages: reasoning that they leave out,
//! tokens at the ends of turns.

use std::collections::VecDeque;

use super::generation::{DraftRules, Generation};
use super::limits::StepLimits;
use super::pool::MemoryPool;
use super::prompt::Prompt;
use crate::sample::SamplingParams;

/// Preparations that wait; more replace the oldest.
const MAX_WAITING: usize = 4;

/// Tokens of a part, in whole pages, at least one. A CPU feeds a hundred tokens of a small model per second and more.
const PART_TOKENS: usize = 64;

/// Tokens of a step of a part, more where a model computes so few in another way. On a slow device a step of a whole part takes a
/// second and more.
pub(super) const STEP_TOKENS: usize = 16;

/// Makes a prompt when the engine is idle.
pub(super) type MakePrompt = Box<dyn FnOnce() -> Option<Prompt>>;

/// A prompt that is wanted in the cache.
pub(super) struct Preparation {
    prompt: LazyPrompt,
    /// Pages that earlier parts have fed.
    fed_pages: usize,
}

enum LazyPrompt {
    Unmade(MakePrompt),
    Made(Prompt),
}

impl Preparation {
    /// The next part to feed; `None` if everything is cached, or if an earlier part is not.
    fn next_part(self, pool: &mut MemoryPool, limits: &StepLimits) -> Option<(Self, Prompt)> {
        let prompt = match self.prompt {
            LazyPrompt::Unmade(make) => make()?,
            LazyPrompt::Made(prompt) => prompt,
        };
        let page_tokens = limits.page_tokens;
        // A snapshot is taken, and few tokens are fed, only before the end of a prompt.
        let beyond = usize::from(limits.has_states || page_tokens <= limits.few_tokens);
        let whole_pages = prompt.len().saturating_sub(beyond) / page_tokens;
        let cached_pages = pool.cached(prompt.page_keys(whole_pages * page_tokens, page_tokens));
        // Otherwise the part has failed, or its pages were needed.
        let is_held = cached_pages >= self.fed_pages;
        if !is_held || cached_pages == whole_pages {
            return None;
        }
        let part_pages = (PART_TOKENS / page_tokens).max(1);
        let fed_pages = whole_pages.min(cached_pages + part_pages);
        let end = fed_pages * page_tokens + beyond;
        let end = match limits.whole_images {
            true => prompt.image_around(end).map_or(end, |it| it.end),
            false => end,
        };
        let part = prompt.first(end);
        let prompt = LazyPrompt::Made(prompt);
        Some((Self { prompt, fed_pages }, part))
    }
}

/// The preparations that wait, oldest first.
#[derive(Default)]
pub(super) struct Preparations(VecDeque<Preparation>);

impl Preparations {
    /// Adds one.
    pub(super) fn push(&mut self, make: MakePrompt) {
        if self.0.len() == MAX_WAITING {
            self.0.pop_front();
        }
        self.0.push_back(Preparation {
            prompt: LazyPrompt::Unmade(make),
            fed_pages: 0,
        });
    }

    /// A part of the newest one that has any left.
    pub(super) fn next_part(
        &mut self,
        pool: &mut MemoryPool,
        limits: &StepLimits,
    ) -> Option<Prompt> {
        while let Some(newest) = self.0.pop_back() {
            if let Some((newest, part)) = newest.next_part(pool, limits) {
                self.0.push_back(newest);
                return Some(part);
            }
        }
        None
    }

    /// A part was dropped before its end: the next one begins after the cached pages.
    pub(super) fn restart(&mut self) {
        for preparation in &mut self.0 {
            preparation.fed_pages = 0;
        }
    }

    /// Drops all of them.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

/// The request for the pages of a part.
pub(super) fn generation(part: Prompt) -> Generation {
    Generation {
        prompt: part,
        max_tokens: 1,
        candidates: 1,
        sampling: SamplingParams {
            temperature: 0.0,
            ..SamplingParams::default()
        },
        constraint: None,
        rules: None,
        scores: None,
        prompt_scores: None,
        stop_ids: Vec::new(),
        drafts: DraftRules::default(),
    }
}
