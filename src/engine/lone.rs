//! A sequence by itself: the end of its prompt, or its next tokens, run ahead where the largest
//! logit is all that counts. Knows no batch: its logits are those of a batch, bit for bit.

use futures_util::future::join;

use super::choice::at_position;
use super::contract::expect;
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
    /// One token after all that is unfed.
    pub(super) fn next_token(&self) -> LoneStep {
        LoneStep {
            feed_tokens: self.unfed_tokens(),
            chooser: if self.is_chosen_on_device() {
                Chooser::Device { steps: 1 }
            } else {
                Chooser::Sampler
            },
        }
    }

    /// The same, and as many more as it may be run ahead.
    pub(super) fn next_tokens(&self) -> LoneStep {
        let mut step = self.next_token();
        if let Chooser::Device { steps } = &mut step.chooser {
            *steps = self.steps_ahead();
        }
        step
    }

    /// Whether it is one for this file: the end of a prompt, or what the device chooses by itself.
    pub(super) fn is_lone(&self) -> bool {
        self.unfed_tokens() > 1 || self.is_chosen_on_device()
    }

    fn is_chosen_on_device(&self) -> bool {
        let generation = self.choice.generation();
        generation.sampling.is_plain_greedy()
            && generation.constraint.is_none()
            && generation.scores.is_none()
    }

    /// Runs a step whose tokens the pages cover.
    pub(super) async fn run_lone<M: CausalModel>(
        &mut self,
        model: &mut M,
        step: LoneStep,
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
                        self.run_ahead.grow(model.run_ahead_steps());
                        self.take(&ids, model.vocab_size())
                    }
                    // Perhaps past the end of the choice, which would not count: come there step
                    // by step.
                    Err(Error::InvalidLogits { .. }) if steps > 1 => {
                        self.kv.len_tokens = fed_tokens;
                        self.run_ahead.stop();
                        Ok(())
                    }
                    Err(error) => Err(at_position(error, self.choice.chosen().len())),
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
        self.kv.len_tokens = self.known_tokens() - 1;
        Ok(())
    }
}
