//! A model that fails or waits on command.

use std::cell::Cell;
use std::rc::Rc;

use crate::api::Host;
use crate::engine::embed::{EmbeddingInput, EmbeddingLimits, EmbeddingModel};
use crate::engine::{
    CausalModel, Chooser, Input, KnownText, MemoryCopy, ModelLimits, Row, SequenceMemory,
    StepOutput,
};
use crate::sample::{SamplingParams, ScoreRequest, TokenScore};
use crate::{Error, Result};

/// Failures and delays of a [`HookedModel`]; all off at first.
#[derive(Debug, Default)]
pub struct Controls {
    /// Tokens that may still be generated, or inputs that may still be embedded, before one step fails.
    pub tokens_until_failure: Cell<Option<usize>>,
    /// The time that each step that reads a prompt or embeds inputs waits before it starts.
    pub prefill_delay_ms: Cell<u32>,
    /// The time that each other step waits before it starts.
    pub step_delay_ms: Cell<u32>,
}

/// A model under [`Controls`].
pub struct HookedModel<M> {
    model: M,
    controls: Rc<Controls>,
    host: Rc<dyn Host>,
}

impl<M> HookedModel<M> {
    /// `model` and its controls; `host` has the timers.
    pub fn new(model: M, host: Rc<dyn Host>) -> (Self, Rc<Controls>) {
        let controls = Rc::new(Controls::default());
        let hooked = Self {
            model,
            controls: Rc::clone(&controls),
            host,
        };
        (hooked, controls)
    }

    /// The model itself.
    pub fn model_mut(&mut self) -> &mut M {
        &mut self.model
    }

    /// Waits or fails before a step that generates `tokens`.
    async fn enter(&self, is_prefill: bool, tokens: usize) -> Result<()> {
        let delay_ms = match is_prefill {
            true => self.controls.prefill_delay_ms.get(),
            false => self.controls.step_delay_ms.get(),
        };
        if delay_ms > 0 {
            self.host.sleep_ms(delay_ms).await;
        }
        let until_failure = &self.controls.tokens_until_failure;
        match until_failure.get().map(|left| left.checked_sub(tokens)) {
            Some(None) => {
                until_failure.set(None);
                Err(Error::Internal("a test asked for this failure".into()))
            }
            Some(left) => {
                until_failure.set(left);
                Ok(())
            }
            None => Ok(()),
        }
    }
}

/// Whether the row is part of a prefill. A decode step feeds one token to a sequence that is not empty.
fn is_prefill(row: &Row<'_>) -> bool {
    row.memory.len_tokens == 0 || row.input.ids().len() > 1
}

impl<M: CausalModel> CausalModel for HookedModel<M> {
    fn limits(&self) -> ModelLimits {
        self.model.limits()
    }

    fn samples(&self, params: &SamplingParams, score: Option<ScoreRequest>) -> bool {
        self.model.samples(params, score)
    }

    fn run_ahead_steps(&self) -> usize {
        self.model.run_ahead_steps()
    }

    async fn prefill(&mut self, memory: &mut SequenceMemory, input: Input<'_>) -> Result<()> {
        self.enter(true, 0).await?;
        self.model.prefill(memory, input).await
    }

    async fn step(&mut self, rows: &mut [Row<'_>], chooser: Chooser<'_>) -> Result<StepOutput> {
        let tokens = rows.len() * chooser.steps();
        self.enter(rows.iter().any(is_prefill), tokens).await?;
        self.model.step(rows, chooser).await
    }

    fn verified_rows(&self) -> usize {
        self.model.verified_rows()
    }

    async fn verify(&mut self, row: Row<'_>, chooser: Chooser<'_>) -> Result<StepOutput> {
        self.enter(false, row.input.ids().len()).await?;
        self.model.verify(row, chooser).await
    }

    fn drafts(&self) -> bool {
        self.model.drafts()
    }

    async fn prepare_draft(&mut self, text: KnownText<'_>) -> Result<()> {
        self.model.prepare_draft(text).await
    }

    async fn draft(
        &mut self,
        memory: &SequenceMemory,
        text: KnownText<'_>,
        count: usize,
    ) -> Result<Vec<u32>> {
        self.model.draft(memory, text, count).await
    }

    async fn score(
        &mut self,
        memory: &mut SequenceMemory,
        tokens: &[u32],
        next: &[u32],
        top: usize,
    ) -> Result<Vec<TokenScore>> {
        self.enter(true, 0).await?;
        self.model.score(memory, tokens, next, top).await
    }

    fn copy(&mut self, copy: MemoryCopy) -> Result<()> {
        self.model.copy(copy)
    }
}

impl<M: EmbeddingModel> EmbeddingModel for HookedModel<M> {
    fn embedding_limits(&self) -> EmbeddingLimits {
        self.model.embedding_limits()
    }

    async fn embed(&mut self, inputs: &[&EmbeddingInput]) -> Result<Vec<Vec<f32>>> {
        self.enter(true, inputs.len()).await?;
        self.model.embed(inputs).await
    }
}
