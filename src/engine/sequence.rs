//! One running choice: its tokens, its KV pages, and what it does next. Knows no other sequence.

use super::EngineLimits;
use super::event::{Event, FinishReason};
use super::events::EventSender;
use super::run_ahead::RunAhead;
use super::shared::Waiting;
use crate::model::causal::{CausalModel, SequenceKv};
use crate::sample::Sampler;
use crate::{Error, Result};

/// A running choice.
///
/// Between steps the pages hold the keys and values of `history[..kv.len_tokens]`, and at least
/// one token is still to be fed: the rest of the prompt, or the token chosen last.
pub(super) struct Sequence {
    /// The prompt, then what was generated.
    history: Vec<u32>,
    prompt_tokens: usize,
    /// At least 1; prompt and generated tokens together fit the context.
    max_tokens: usize,
    stop_ids: Vec<u32>,
    sampler: Sampler,
    greedy: bool,
    run_ahead: RunAhead,
    prefill_chunk_tokens: usize,
    pub(super) kv: SequenceKv,
    pub(super) events: EventSender,
}

/// What a sequence asks of the model next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Step {
    /// How many tokens of the history to feed.
    feed_tokens: usize,
    choice: Choice,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Choice {
    /// None yet: more of the prompt follows.
    Nothing,
    /// One token, by the sampler chain.
    Sampled,
    /// This many tokens, by the device.
    Greedy { steps: usize },
}

impl Step {
    /// By how much the step lengthens what the pages hold.
    pub(super) fn kv_tokens(self) -> usize {
        match self.choice {
            Choice::Nothing | Choice::Sampled => self.feed_tokens,
            Choice::Greedy { steps } => self.feed_tokens + steps - 1,
        }
    }

    /// The same step running less far ahead, if it can.
    pub(super) fn shorter(self) -> Option<Self> {
        match self.choice {
            Choice::Greedy { steps } if steps > 1 => Some(Self {
                choice: Choice::Greedy { steps: steps / 2 },
                ..self
            }),
            _ => None,
        }
    }
}

/// Tokens `prompt` and its continuation can come to hold in pages: the last one is never fed.
pub(super) fn most_kv_tokens(prompt: usize, max_tokens: usize, context_tokens: usize) -> usize {
    prompt
        .saturating_add(max_tokens)
        .min(context_tokens)
        .saturating_sub(1)
}

/// Tokens of the first step for a prompt.
pub(super) fn first_step_tokens(prompt: usize, limits: &EngineLimits) -> usize {
    prompt.min(limits.prefill_chunk_tokens)
}

impl Sequence {
    /// Starts a choice; the prompt and one more token fit the context.
    pub(super) fn new(waiting: Waiting, limits: &EngineLimits, context_tokens: usize) -> Self {
        let Waiting { generation, events } = waiting;
        let prompt_tokens = generation.prompt.len();
        Self {
            prompt_tokens,
            max_tokens: generation.max_tokens.min(context_tokens - prompt_tokens),
            sampler: Sampler::new(&generation.sampling, 0, &generation.prompt),
            history: generation.prompt,
            stop_ids: generation.stop_ids,
            greedy: generation.sampling.is_greedy(),
            run_ahead: RunAhead::new(limits.max_run_ahead_tokens),
            prefill_chunk_tokens: limits.prefill_chunk_tokens,
            kv: SequenceKv::default(),
            events,
        }
    }

    /// Most tokens the pages will have to hold.
    pub(super) fn most_kv_tokens(&self) -> usize {
        most_kv_tokens(self.prompt_tokens, self.max_tokens, usize::MAX)
    }

    /// What comes next; `None` while the reader lags.
    pub(super) fn next_step(&self) -> Option<Step> {
        let room = self.events.room();
        if room == 0 {
            return None;
        }
        let unfed = self.history.len() - self.kv.len_tokens;
        let choice = if unfed > self.prefill_chunk_tokens {
            Choice::Nothing
        } else if self.greedy {
            let left = self.max_tokens - self.generated();
            Choice::Greedy {
                steps: self.run_ahead.steps().min(left).min(room),
            }
        } else {
            Choice::Sampled
        };
        Some(Step {
            feed_tokens: unfed.min(self.prefill_chunk_tokens),
            choice,
        })
    }

    /// Runs a step whose tokens the pages cover; says why the choice ended, if it did.
    pub(super) async fn run<M: CausalModel>(
        &mut self,
        model: &mut M,
        step: Step,
    ) -> Result<Option<FinishReason>> {
        let fed_tokens = self.kv.len_tokens;
        let tokens = &self.history[fed_tokens..fed_tokens + step.feed_tokens];
        let mut outcome = None;
        match step.choice {
            Choice::Nothing => {
                model.prefill(&mut self.kv, tokens).await?;
                self.expect_kv(fed_tokens + step.kv_tokens())?;
            }
            Choice::Sampled => {
                let mut logits = model.feed(&mut self.kv, tokens).await?;
                self.expect_kv(fed_tokens + step.kv_tokens())?;
                expect("logits", logits.len(), model.vocab_size())?;
                let chosen = self.sampler.sample(&mut logits, None, None)?;
                outcome = self.accept(chosen.id);
            }
            Choice::Greedy { steps } => {
                let ids = model.feed_greedy(&mut self.kv, tokens, steps).await?;
                self.expect_kv(fed_tokens + step.kv_tokens())?;
                expect("greedy ids", ids.len(), steps)?;
                for id in ids {
                    if id as usize >= model.vocab_size() {
                        return Err(Error::Internal(format!("the model chose token id {id}")));
                    }
                    outcome = self.accept(id);
                    if outcome.is_some() {
                        break;
                    }
                }
                // Roll back what was run ahead past the end.
                self.kv.len_tokens = self.history.len() - 1;
                self.run_ahead.grow();
            }
        }
        Ok(outcome)
    }

    /// Takes a chosen token in and tells the reader; the checks of API.md section 6.1 that need no
    /// text, in their order.
    fn accept(&mut self, id: u32) -> Option<FinishReason> {
        self.history.push(id);
        self.events.send(Event::Token { id, score: None });
        if self.stop_ids.contains(&id) {
            Some(FinishReason::Stop)
        } else if self.generated() == self.max_tokens {
            Some(FinishReason::Length)
        } else {
            None
        }
    }

    fn generated(&self) -> usize {
        self.history.len() - self.prompt_tokens
    }

    fn expect_kv(&self, len_tokens: usize) -> Result<()> {
        expect("KV tokens", self.kv.len_tokens, len_tokens)
    }
}

/// Holds the model to its contract.
fn expect(what: &str, found: usize, wanted: usize) -> Result<()> {
    if found == wanted {
        return Ok(());
    }
    Err(Error::Internal(format!(
        "the model returned {found} {what} instead of {wanted}"
    )))
}
