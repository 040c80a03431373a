//! Feeding one prompt of a request, once for all its candidates.
//!
//! The logits of a token depend, to the last bit, on its history and on whether its step feeds few tokens (at most 8,
//! matrix-vector kernels) or more (tiles). They must not depend on what was cached. So prompts are divided at page ends, and a
//! short tail is a step of its own, whether the pages before it were computed or cached.

use std::borrow::Cow;
use std::rc::Rc;

use futures_util::future::join;

use super::banker::Amount;
use super::candidate::Allowed;
use super::generation::{Generation, TokenScore};
use super::limits::StepLimits;
use super::model::{CausalModel, Chooser, Row, SequenceMemory, expect, only};
use super::pool::MemoryPool;
use super::preparation::STEP_TOKENS;
use crate::Result;

/// A prompt while it is fed, and what its candidates begin with.
pub(super) struct Prefill {
    generation: Rc<Generation>,
    /// Its memory, until the last candidate has started (or is given it).
    pub(super) memory: SequenceMemory,
    scores: Vec<TokenScore>,
    /// The number of first pages that other sequences may hold too: pages from or in the prefix cache,
    /// and all full pages once the prompt is fed for several candidates.
    pub(super) shared_pages: usize,
    /// Whether its pages are in the prefix cache.
    pub(super) is_kept: bool,
    /// The result of the prompt, from the time when it is fed until the last candidate has started.
    pub(super) outcome: Option<Outcome>,
}

/// The result of a prompt, for the first token of every candidate.
pub(super) struct Outcome {
    pub(super) logits: Vec<f32>,
    pub(super) allowed: Result<Allowed>,
}

/// The next tokens of a prompt to feed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Feed {
    pub(super) tokens: usize,
    pub(super) wanted: Wanted,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    /// More of the prompt follows.
    Nothing,
    Scores {
        top: usize,
    },
    /// The prompt ends here.
    Logits,
}

impl Prefill {
    pub(super) fn new(generation: Rc<Generation>) -> Self {
        Self {
            generation,
            memory: SequenceMemory::default(),
            scores: Vec::new(),
            shared_pages: 0,
            is_kept: false,
            outcome: None,
        }
    }

    /// The most memory that one of its candidates needs. A candidate's last token is never fed. If no
    /// token is generated, the last token of the prompt is not fed either.
    pub(super) fn most(&self, pool: &MemoryPool) -> Amount {
        let Generation {
            prompt, max_tokens, ..
        } = &*self.generation;
        Amount {
            pages: pool.pages_for(prompt.len() + max_tokens - 1),
            states: pool.total().states.min(1),
        }
    }

    /// The partly filled last page, once the prompt is fed.
    pub(super) fn tail(&self) -> Option<u32> {
        self.memory.pages.get(self.shared_pages).copied()
    }

    /// Whether a candidate feeds tokens of its own.
    pub(super) fn is_continued(&self) -> bool {
        self.generation.max_tokens > 1
    }

    /// Shares the cached pages of a prompt with the same beginning, so that only the rest is fed.
    /// Returns whether there are any. A prompt that is scored is fed completely.
    pub(super) fn adopt(&mut self, pool: &mut MemoryPool, limits: &StepLimits) -> bool {
        let Generation {
            prompt,
            prompt_scores: None,
            ..
        } = &*self.generation
        else {
            return false;
        };
        // At least one token is fed, to have logits.
        let mut most = prompt.len() - 1;
        if limits.whole_images {
            loop {
                let cached = pool.cached(prompt.page_keys(most, limits.page_tokens));
                let pages = limits.pages_before_images(prompt, cached);
                most = pages * limits.page_tokens;
                if pages == cached {
                    break;
                }
            }
        }
        let keys = prompt.page_keys(most, limits.page_tokens);
        pool.adopt(&mut self.memory.pages, keys);
        self.shared_pages = self.memory.pages.len();
        self.memory.len_tokens = self.shared_pages * limits.page_tokens;
        self.shared_pages > 0
    }

    /// Returns the pages that were adopted.
    pub(super) fn abandon(&mut self, pool: &mut MemoryPool) {
        pool.release(&mut self.memory);
        self.shared_pages = 0;
    }

    /// The number of its first pages that other prompts may use: whole pages, fed in steps that round alike
    /// regardless of how the prompt was cut (see [`Prefill::next_feed`]).
    pub(super) fn whole_pages(&self, limits: &StepLimits) -> usize {
        let len = self.generation.prompt.len();
        let fed = match self.generation.prompt_scores {
            Some(_) => len - 1,
            None if limits.ends_shortly(len) => limits.last_page(len),
            None => len,
        };
        fed / limits.page_tokens
    }

    /// The keys of its first `pages` pages.
    pub(super) fn page_keys(
        &self,
        pages: usize,
        limits: &StepLimits,
    ) -> impl Iterator<Item = Cow<'_, [u32]>> {
        let page_tokens = limits.page_tokens;
        let prompt = &self.generation.prompt;
        prompt.page_keys(pages * page_tokens, page_tokens)
    }

    /// The page that ends exactly where `feed` ends, if more of the prompt follows.
    pub(super) fn page_ended_by(&self, feed: Feed, limits: &StepLimits) -> Option<u32> {
        let end = self.memory.len_tokens + feed.tokens;
        let is_inside =
            end < self.generation.prompt.len() && end.is_multiple_of(limits.page_tokens);
        is_inside.then(|| self.memory.pages[end / limits.page_tokens - 1])
    }

    /// The next part to feed of a prompt that is not fed yet.
    ///
    /// A model may compute few tokens with other kernels than many, and these round differently. A
    /// prompt with cached pages must give the same bits as one fed from its beginning. So each token is
    /// computed by the same kind of step in both cases: prompts are cut between pages, and few tokens
    /// after the last whole page are a step of their own. A model with states is always cut there, so
    /// that a snapshot can be taken.
    pub(super) fn next_feed(&self, limits: &StepLimits) -> Feed {
        let begin = self.memory.len_tokens;
        let end = self.generation.prompt.len();
        let last_page = limits.last_page(end);
        let is_cut = (limits.has_states || limits.ends_shortly(end))
            && begin < last_page
            && !limits.divides_image(&self.generation.prompt, last_page);
        match self.generation.prompt_scores {
            // No token of the prompt follows the last one, so it is not scored.
            Some(top) if end - begin > 1 => {
                let stop = match limits.has_states && begin < last_page {
                    true => last_page,
                    false => end - 1,
                };
                Feed {
                    tokens: limits.chunk_tokens.min(stop - begin),
                    wanted: Wanted::Scores { top },
                }
            }
            _ => {
                let stop = if is_cut { last_page } else { end };
                let tokens = limits.tokens_before(&self.generation.prompt, begin, stop);
                let wanted = match begin + tokens < end {
                    true => Wanted::Nothing,
                    false => Wanted::Logits,
                };
                Feed { tokens, wanted }
            }
        }
    }

    /// The first tokens of a feed, if it has more than a step of a preparation should have. Neither these nor the others are so few that a
    /// model rounds them differently. An image that must not be divided is fed whole.
    pub(super) fn first_step(&self, feed: Feed, limits: &StepLimits) -> Feed {
        let begin = self.memory.len_tokens;
        let least = limits.few_tokens + 1;
        let mut end = begin + STEP_TOKENS.max(least);
        if limits.whole_images
            && let Some(image) = self.generation.prompt.image_around(end)
        {
            end = match image.start >= begin + least {
                true => image.start,
                false => image.end,
            };
        }
        match begin + feed.tokens >= end + least {
            true => Feed {
                tokens: end - begin,
                wanted: Wanted::Nothing,
            },
            false => feed,
        }
    }

    /// Feeds tokens that the pages cover; returns the prompt's scores once they are complete.
    pub(super) async fn run<M: CausalModel>(
        &mut self,
        model: &mut M,
        feed: Feed,
    ) -> Result<Option<Rc<[TokenScore]>>> {
        let Self {
            generation, memory, ..
        } = self;
        let begin = memory.len_tokens;
        let end = begin + feed.tokens;
        let input = generation.prompt.input(begin..end);
        match feed.wanted {
            Wanted::Nothing => model.prefill(memory, input).await?,
            Wanted::Scores { top } => {
                let ids = generation.prompt.ids();
                let (tokens, next) = (&ids[begin..end], &ids[begin + 1..=end]);
                let scores = model.score(memory, tokens, next, top).await?;
                expect("scores", scores.len(), tokens.len())?;
                self.scores.extend(scores);
            }
            Wanted::Logits => {
                let first = async { Allowed::first(generation) };
                let mut rows = [Row { memory, input }];
                let step = model.step(&mut rows, Chooser::Host);
                let (output, allowed) = join(step, first).await;
                let logits = only("rows of logits", output?.into_logits()?)?;
                let limits = model.limits();
                expect("logits", logits.len(), limits.vocab_size)?;
                self.shared_pages = end / limits.page_tokens;
                self.outcome = Some(Outcome { logits, allowed });
            }
        }
        expect("KV tokens", self.memory.len_tokens, end)?;
        let complete =
            matches!(feed.wanted, Wanted::Scores { .. }) && end + 1 == self.generation.prompt.len();
        Ok(complete.then(|| std::mem::take(&mut self.scores).into()))
    }
}
