//! The only sequence of a request: sampled token by token, or run ahead where the device chooses.
//! Knows no batch.

use futures_util::future::join;

use super::choice::at_position;
use super::contract::expect;
use super::run_ahead::RunAhead;
use super::sequence::Sequence;
use crate::model::causal::CausalModel;
use crate::{Error, Result};

/// What it asks of the model next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LoneStep {
    /// How many of its unfed tokens to feed: all of them.
    feed_tokens: usize,
    chooser: Chooser,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Chooser {
    /// The sampler chain, one token.
    Sampler,
    /// The device, this many tokens.
    Device { steps: usize },
}

impl LoneStep {
    /// By how much the step lengthens what the pages hold.
    pub(super) fn kv_tokens(self) -> usize {
        match self.chooser {
            Chooser::Sampler => self.feed_tokens,
            Chooser::Device { steps } => self.feed_tokens + steps - 1,
        }
    }

    /// The same step running less far ahead, if it can.
    pub(super) fn shorter(self) -> Option<Self> {
        match self.chooser {
            Chooser::Device { steps } if steps > 1 => Some(Self {
                chooser: Chooser::Device { steps: steps / 2 },
                ..self
            }),
            _ => None,
        }
    }
}

impl Sequence {
    /// What comes next; `None` while the reader lags.
    pub(super) fn lone_step(&self, run_ahead: &RunAhead) -> Option<LoneStep> {
        let room = self.choice.room();
        if room == 0 {
            return None;
        }
        let generation = self.choice.generation();
        let is_plain = generation.sampling.is_plain_greedy()
            && generation.constraint.is_none()
            && generation.scores.is_none();
        let left = generation.max_tokens - self.choice.generated();
        Some(LoneStep {
            feed_tokens: self.unfed_tokens(),
            chooser: if is_plain {
                Chooser::Device {
                    steps: run_ahead.steps().min(left).min(room),
                }
            } else {
                Chooser::Sampler
            },
        })
    }

    /// Runs a step whose tokens the pages cover.
    pub(super) async fn run_lone<M: CausalModel>(
        &mut self,
        model: &mut M,
        step: LoneStep,
        run_ahead: &mut RunAhead,
    ) -> Result<()> {
        let tokens = self.unfed(step.feed_tokens);
        let kv_tokens = self.kv.len_tokens + step.kv_tokens();
        match step.chooser {
            Chooser::Sampler => {
                let Self { kv, choice, .. } = self;
                let (logits, allowed) =
                    join(model.feed(kv, &tokens), async { choice.allowed() }).await;
                let mut logits = logits?;
                expect("KV tokens", kv.len_tokens, kv_tokens)?;
                expect("logits", logits.len(), model.vocab_size())?;
                choice.choose(&mut logits, &allowed);
                Ok(())
            }
            Chooser::Device { steps } => {
                let fed_tokens = self.kv.len_tokens;
                match model.feed_greedy(&mut self.kv, &tokens, steps).await {
                    Ok(ids) => {
                        expect("KV tokens", self.kv.len_tokens, kv_tokens)?;
                        expect("greedy ids", ids.len(), steps)?;
                        run_ahead.grow();
                        self.take(&ids, model.vocab_size())
                    }
                    // Perhaps past the end of the choice, which would not count: come there step
                    // by step.
                    Err(Error::InvalidLogits { .. }) if steps > 1 => {
                        self.kv.len_tokens = fed_tokens;
                        run_ahead.stop();
                        Ok(())
                    }
                    Err(error) => Err(at_position(error, self.choice.generated())),
                }
            }
        }
    }

    /// Takes in what the device chose, up to the end of the choice.
    fn take(&mut self, ids: &[u32], vocab_size: usize) -> Result<()> {
        for &id in ids {
            if id as usize >= vocab_size {
                return Err(Error::Internal(format!("the model chose token id {id}")));
            }
            if let Some(reason) = self.choice.accept(id, None)? {
                self.choice.finish(reason);
                break;
            }
        }
        // Roll back what was run ahead past the end.
        self.kv.len_tokens = self.choice.generation().prompt.len() + self.choice.generated() - 1;
        Ok(())
    }
}
