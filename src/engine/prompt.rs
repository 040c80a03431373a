//! One prompt of a request: feeding it, once for all its candidates. Knows no candidate.

use std::rc::Rc;

use futures_util::future::join;

use super::choice::Allowed;
use super::contract::expect;
use super::generation::{Generation, TokenScore};
use super::pages::PagePool;
use crate::Result;
use crate::model::causal::{CausalModel, SequenceKv};

/// A prompt and what its candidates begin with.
pub(super) struct Prompt {
    generation: Rc<Generation>,
    /// Its pages, until the last candidate has started (or is given them).
    pub(super) kv: SequenceKv,
    scores: Vec<TokenScore>,
    /// Full pages that the candidates share; 0 until the prompt is fed.
    pub(super) shared_pages: usize,
    /// Once the prompt is fed, until the last candidate has started.
    pub(super) outcome: Option<Outcome>,
}

/// What comes after a prompt, for the first token of every candidate.
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

impl Prompt {
    pub(super) fn new(generation: Rc<Generation>) -> Self {
        Self {
            generation,
            kv: SequenceKv::default(),
            scores: Vec::new(),
            shared_pages: 0,
            outcome: None,
        }
    }

    /// Most pages one of its candidates comes to need: its last token is never fed, and neither is
    /// the prompt's own where no token is generated.
    pub(super) fn most_pages(&self, pool: &PagePool) -> usize {
        let Generation {
            prompt, max_tokens, ..
        } = &*self.generation;
        pool.pages_for(prompt.len() + max_tokens - 1)
    }

    /// The partly filled last page, once the prompt is fed.
    pub(super) fn tail(&self) -> Option<u32> {
        self.kv.pages.get(self.shared_pages).copied()
    }

    /// Whether a candidate feeds tokens of its own.
    pub(super) fn is_continued(&self) -> bool {
        self.generation.max_tokens > 1
    }

    /// What to feed next, at most `chunk_tokens`; `None` once it is fed.
    pub(super) fn next_feed(&self, chunk_tokens: usize) -> Option<Feed> {
        if self.outcome.is_some() {
            return None;
        }
        let left = self.generation.prompt.len() - self.kv.len_tokens;
        Some(match self.generation.prompt_scores {
            // The last token predicts nothing of the prompt.
            Some(top) if left > 1 => Feed {
                tokens: chunk_tokens.min(left - 1),
                wanted: Wanted::Scores { top },
            },
            _ => Feed {
                tokens: chunk_tokens.min(left),
                wanted: if left > chunk_tokens {
                    Wanted::Nothing
                } else {
                    Wanted::Logits
                },
            },
        })
    }

    /// Feeds tokens that the pages cover; returns the prompt's scores once they are complete.
    pub(super) async fn run<M: CausalModel>(
        &mut self,
        model: &mut M,
        feed: Feed,
    ) -> Result<Option<Rc<[TokenScore]>>> {
        let Self { generation, kv, .. } = self;
        let begin = kv.len_tokens;
        let end = begin + feed.tokens;
        let tokens = &generation.prompt[begin..end];
        match feed.wanted {
            Wanted::Nothing => model.prefill(kv, tokens).await?,
            Wanted::Scores { top } => {
                let next = &generation.prompt[begin + 1..=end];
                let scores = model.score(kv, tokens, next, top).await?;
                expect("scores", scores.len(), tokens.len())?;
                self.scores.extend(scores);
            }
            Wanted::Logits => {
                let first = async { Allowed::first(generation.constraint.as_ref()) };
                let (logits, allowed) = join(model.feed(kv, tokens), first).await;
                let logits = logits?;
                expect("logits", logits.len(), model.vocab_size())?;
                self.shared_pages = end / model.page_tokens();
                self.outcome = Some(Outcome { logits, allowed });
            }
        }
        expect("KV tokens", self.kv.len_tokens, end)?;
        let complete =
            matches!(feed.wanted, Wanted::Scores { .. }) && end + 1 == self.generation.prompt.len();
        Ok(complete.then(|| std::mem::take(&mut self.scores).into()))
    }
}
