//! A model that fails or dawdles on command. Knows nothing of who commands.

use std::cell::Cell;
use std::rc::Rc;

use crate::api::Host;
use crate::model::{CausalModel, SampledRow, SequenceKv};
use crate::sample::{Sampled, SamplingParams, ScoreRequest, TokenMask, TokenScore};
use crate::{Error, Result};

/// What a [`HookedModel`] does beside its work; all off at first.
#[derive(Debug, Default)]
pub struct Controls {
    /// Tokens that may still be generated before a step fails, once.
    pub tokens_until_failure: Cell<Option<usize>>,
    /// How long each step that reads a prompt waits before it starts.
    pub prefill_delay_ms: Cell<u32>,
    /// How long each other step waits before it starts.
    pub step_delay_ms: Cell<u32>,
}

/// `M`, under [`Controls`].
pub struct HookedModel<M> {
    model: M,
    controls: Rc<Controls>,
    host: Rc<dyn Host>,
}

impl<M: CausalModel> HookedModel<M> {
    /// `model` and what controls it; `host` has the timers.
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

    /// Before a step that generates `tokens`.
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

/// Whether feeding `tokens` reads a prompt: decoding feeds one token to a sequence that has some.
fn is_prefill(kv: &SequenceKv, tokens: &[u32]) -> bool {
    kv.len_tokens == 0 || tokens.len() > 1
}

impl<M: CausalModel> CausalModel for HookedModel<M> {
    fn vocab_size(&self) -> usize {
        self.model.vocab_size()
    }

    fn context_tokens(&self) -> usize {
        self.model.context_tokens()
    }

    fn page_tokens(&self) -> usize {
        self.model.page_tokens()
    }

    fn page_count(&self) -> usize {
        self.model.page_count()
    }

    fn max_batch(&self) -> usize {
        self.model.max_batch()
    }

    fn few_tokens(&self) -> usize {
        self.model.few_tokens()
    }

    fn chooses(&self, params: &SamplingParams, score: Option<ScoreRequest>) -> bool {
        self.model.chooses(params, score)
    }

    fn run_ahead_steps(&self) -> usize {
        self.model.run_ahead_steps()
    }

    async fn prefill(&mut self, kv: &mut SequenceKv, tokens: &[u32]) -> Result<()> {
        self.enter(true, 0).await?;
        self.model.prefill(kv, tokens).await
    }

    async fn feed(&mut self, kv: &mut SequenceKv, tokens: &[u32]) -> Result<Vec<f32>> {
        self.enter(is_prefill(kv, tokens), 1).await?;
        self.model.feed(kv, tokens).await
    }

    async fn feed_batch(&mut self, rows: &mut [(&mut SequenceKv, u32)]) -> Result<Vec<Vec<f32>>> {
        self.enter(false, rows.len()).await?;
        self.model.feed_batch(rows).await
    }

    async fn score(
        &mut self,
        kv: &mut SequenceKv,
        tokens: &[u32],
        next: &[u32],
        top: usize,
    ) -> Result<Vec<TokenScore>> {
        self.enter(true, 0).await?;
        self.model.score(kv, tokens, next, top).await
    }

    fn copy_page(&mut self, from: u32, to: u32) -> Result<()> {
        self.model.copy_page(from, to)
    }

    async fn feed_greedy(
        &mut self,
        kv: &mut SequenceKv,
        tokens: &[u32],
        steps: usize,
    ) -> Result<Vec<u32>> {
        self.enter(is_prefill(kv, tokens), steps).await?;
        self.model.feed_greedy(kv, tokens, steps).await
    }

    async fn feed_sampled(
        &mut self,
        rows: &mut [SampledRow<'_>],
        steps: usize,
        masks: impl FnOnce() -> Vec<Option<TokenMask>>,
    ) -> Result<Vec<Vec<Result<Sampled>>>> {
        self.enter(false, rows.len() * steps).await?;
        self.model.feed_sampled(rows, steps, masks).await
    }
}
