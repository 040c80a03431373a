//! A step of one sequence by itself: the end of its prompt, or its next tokens, run ahead where the
//! largest logit decides. The logits equal those of a batch, bit for bit.

use futures_util::future::join;

use super::candidate::Allowed;
use super::model::{CausalModel, Chooser, Row, expect, expect_chosen, only};
use super::sequence::Sequence;
use crate::Result;

/// A step of one sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SingleStep {
    /// The number of its unfed tokens to feed: all of them.
    feed_tokens: usize,
    /// The number of tokens that the device chooses greedily; `None` if the host chooses one.
    greedy_steps: Option<usize>,
}

impl SingleStep {
    /// The number of tokens by which the step extends the KV cache.
    pub(super) fn kv_tokens(self) -> usize {
        self.feed_tokens + self.greedy_steps.unwrap_or(1) - 1
    }

    /// Tokens that it chooses.
    pub(super) fn steps(self) -> usize {
        self.greedy_steps.unwrap_or(1)
    }

    /// The same step running less far ahead, if it can.
    pub(super) fn shorter(self) -> Option<Self> {
        let steps = self.greedy_steps.filter(|steps| *steps > 1)?;
        Some(Self {
            greedy_steps: Some(steps / 2),
            ..self
        })
    }
}

impl Sequence {
    /// Feeds all that is unfed and chooses one token.
    pub(super) fn next_token(&self) -> SingleStep {
        SingleStep {
            feed_tokens: self.unfed_tokens(),
            greedy_steps: self.is_chosen_greedily().then_some(1),
        }
    }

    /// Same as [`Self::next_token`], with as many more tokens as the sequence may run ahead.
    pub(super) fn next_tokens(&self) -> SingleStep {
        SingleStep {
            feed_tokens: self.unfed_tokens(),
            greedy_steps: self.is_chosen_greedily().then(|| self.steps_ahead()),
        }
    }

    /// Whether its next step is one of its own: the end of a prompt, or greedy tokens that the
    /// device chooses.
    pub(super) fn is_single(&self) -> bool {
        self.unfed_tokens() > 1 || self.is_chosen_greedily()
    }

    fn is_chosen_greedily(&self) -> bool {
        let generation = self.candidate.generation();
        generation.sampling.is_plain_greedy()
            && generation.free_tokens(self.candidate.chosen()) > 0
            && generation.scores.is_none()
    }

    /// Runs a step whose tokens the pages cover.
    pub(super) async fn run_single<M: CausalModel>(
        &mut self,
        model: &mut M,
        step: SingleStep,
    ) -> Result<()> {
        let vocab_size = model.limits().vocab_size;
        let kv_tokens = self.memory.len_tokens + step.kv_tokens();
        let Self {
            memory, candidate, ..
        } = self;
        let generation = candidate.generation().clone();
        let last = candidate.chosen().last().copied();
        let input = match &last {
            Some(last) => generation.prompt.after(std::slice::from_ref(last)),
            None => {
                let begin = memory.len_tokens;
                generation.prompt.input(begin..begin + step.feed_tokens)
            }
        };
        let mut rows = [Row { memory, input }];
        let Some(steps) = step.greedy_steps else {
            let step = model.step(&mut rows, Chooser::Host);
            let (output, allowed) = join(step, async { candidate.allowed() }).await;
            let mut logits = only("rows of logits", output?.into_logits()?)?;
            expect("KV tokens", self.memory.len_tokens, kv_tokens)?;
            expect("logits", logits.len(), vocab_size)?;
            self.candidate.choose(&mut logits, &allowed);
            return Ok(());
        };
        let output = model.step(&mut rows, Chooser::Greedy { steps }).await?;
        let chosen = only("rows of tokens", output.into_chosen()?)?;
        expect("KV tokens", self.memory.len_tokens, kv_tokens)?;
        expect_chosen(&chosen, steps, vocab_size)?;
        self.run_ahead.grow(model.run_ahead_steps());
        self.candidate.take(chosen, &Ok(Allowed::Any));
        self.roll_back();
        Ok(())
    }
}
