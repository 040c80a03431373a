//! The engine's contract (`engine/model.rs`): each kind of step, scores, and copies of memory.

use super::{Transformer, chunks::chunks};
use crate::{
    Error, Result,
    engine::{
        CausalModel, Chooser, Input, KnownText, MemoryCopy, ModelLimits, Row, SequenceMemory,
        StepOutput,
    },
    model::steps::sizes::MAX_BATCH,
    ops::{
        matvec,
        sample::accepts,
        score::{parse, score_words},
        step::PAGE_TOKENS,
    },
    sample::{SamplingParams, ScoreRequest, TokenScore},
};

impl CausalModel for Transformer {
    fn limits(&self) -> ModelLimits {
        ModelLimits {
            vocab_size: self.config.token_ids,
            context_tokens: self.reservation.context_tokens,
            page_tokens: PAGE_TOKENS,
            page_count: self.reservation.pages,
            max_batch: MAX_BATCH,
            few_tokens: matvec::MAX_TOKENS,
            state_slots: self.reservation.states.slots,
            embedding_width: self.steps.takes_rows().then_some(self.config.dim),
            whole_images: self.whole_images(),
        }
    }

    fn samples(&self, params: &SamplingParams, score: Option<ScoreRequest>) -> bool {
        self.steps.samples() && accepts(params, score, self.config.token_ids)
    }

    fn run_ahead_steps(&self) -> usize {
        self.pace.run_ahead_steps()
    }

    async fn prefill(&mut self, memory: &mut SequenceMemory, input: Input<'_>) -> Result<()> {
        // Boxed here and below, so that the future of an engine stays small: it is polled on the stack.
        Box::pin(self.feed_input(memory, input)).await.map(|_| ())
    }

    async fn step(&mut self, rows: &mut [Row<'_>], chooser: Chooser<'_>) -> Result<StepOutput> {
        match (rows, chooser) {
            (
                rows,
                Chooser::Samplers {
                    steps,
                    samplers,
                    masks,
                },
            ) => {
                let chosen = Box::pin(self.sampled(rows, samplers, steps, masks)).await?;
                Ok(StepOutput::Chosen(chosen))
            }
            ([row], Chooser::Greedy { steps }) => {
                let chosen = Box::pin(self.greedy(row, steps)).await?;
                Ok(StepOutput::Chosen(vec![chosen]))
            }
            (_, Chooser::Greedy { .. }) => {
                Err(Error::Internal("greedy steps of several rows".into()))
            }
            ([row], Chooser::Host) => {
                let fed = Box::pin(self.feed_input(row.memory, row.input)).await?;
                let logits = self.steps.last_logits(fed)?;
                Ok(StepOutput::Logits(vec![self.steps.floats(logits).await?]))
            }
            (rows, Chooser::Host) => {
                self.check_batch(rows, 1)?;
                let fed = self.feed_batch(rows).await?;
                let logits = self.steps.batch_logits(fed, rows.len())?;
                let logits = self.steps.floats(logits).await?;
                for row in rows.iter_mut() {
                    row.memory.len_tokens += 1;
                }
                let rows = logits.chunks_exact(self.config.token_ids);
                Ok(StepOutput::Logits(rows.map(<[f32]>::to_vec).collect()))
            }
        }
    }

    fn verified_rows(&self) -> usize {
        MAX_BATCH
    }

    fn drafts(&self) -> bool {
        self.drafts && (self.draft_model.is_some() || self.steps.has_head())
    }

    async fn prepare_draft(&mut self, text: KnownText<'_>) -> Result<()> {
        match &mut self.draft_model {
            Some(model) => Box::pin(model.catch_up(text)).await,
            None => Ok(()),
        }
    }

    async fn draft(
        &mut self,
        memory: &SequenceMemory,
        text: KnownText<'_>,
        count: usize,
    ) -> Result<Vec<u32>> {
        match &mut self.draft_model {
            Some(model) => Box::pin(model.draft(text, count)).await,
            None => Box::pin(self.drafted(memory, text, count)).await,
        }
    }

    async fn verify(&mut self, row: Row<'_>, chooser: Chooser<'_>) -> Result<StepOutput> {
        Box::pin(self.verified(row, chooser)).await
    }

    async fn score(
        &mut self,
        memory: &mut SequenceMemory,
        tokens: &[u32],
        next: &[u32],
        top: usize,
    ) -> Result<Vec<TokenScore>> {
        let vocab = self.config.token_ids;
        if next.len() != tokens.len() || next.iter().any(|id| *id as usize >= vocab) {
            return Err(Error::Internal("scores of no such tokens".into()));
        }
        let top = top.min(vocab);
        let first = memory.len_tokens;
        let mut parts = vec![];
        for (tokens, next) in chunks(tokens).zip(chunks(next)) {
            let fed = self.feed_chunks(memory, tokens).await?;
            parts.extend(self.steps.scores(&fed, next, top));
        }
        let parts = self.steps.words(parts).await?;
        let rows = parts
            .iter()
            .flat_map(|part| part.chunks_exact(score_words(top)));
        let scores = rows.zip(next).enumerate().map(|(i, (row, &id))| {
            let position = first + i + 1;
            let score = parse(row).ok_or(Error::InvalidLogits { position })?;
            Ok(TokenScore {
                id,
                logprob: score.logprob,
                raw_logprob: score.logprob,
                top: score.top,
            })
        });
        scores.collect()
    }

    fn copy(&mut self, copy: MemoryCopy) -> Result<()> {
        match copy {
            MemoryCopy::Page { from, to } if (from.max(to) as usize) < self.reservation.pages => {
                self.steps.copy_page(from, to);
                Ok(())
            }
            MemoryCopy::State { from, to }
                if (from.max(to) as usize) < self.reservation.states.slots =>
            {
                self.steps.copy_state(from, to);
                Ok(())
            }
            other => Err(Error::Internal(format!("no memory for {other:?}"))),
        }
    }
}
