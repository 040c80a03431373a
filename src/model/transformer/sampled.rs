//! Steps of several sequences whose samplers choose on the device: what is uploaded, and how
//! results return to the samplers.

use super::Transformer;
use crate::{
    Error, Result,
    engine::{
        CausalModel, Row,
        model::{Masks, RowSampler},
    },
    model::steps::Fed,
    ops::sample::{RING, RowChoice, parse},
    sample::{Sampled, TokenMask},
};

impl Transformer {
    /// [`Chooser::Samplers`](crate::engine::Chooser::Samplers) of a batch.
    pub(super) async fn sampled(
        &mut self,
        rows: &mut [Row<'_>],
        mut samplers: Vec<RowSampler<'_>>,
        steps: usize,
        masks: Masks<'_>,
    ) -> Result<Vec<Vec<Result<Sampled>>>> {
        self.check_batch(rows, steps)?;
        if samplers.len() != rows.len() || !samplers.iter().all(|row| self.accepts(row)) {
            let what = "samplers that the device does not run";
            return Err(Error::Internal(what.into()));
        }
        let mut last: Vec<u32> = rows.iter().map(|row| row.input.ids()[0]).collect();
        let mut chosen: Vec<Vec<Result<Sampled>>> = rows.iter().map(|_| Vec::new()).collect();
        let start_ms = self.device().now_ms();
        let mut masks = Some(masks);
        let mut left = steps;
        while left > 0 {
            let count = left.min(RING);
            left -= count;
            let masks = || masks.take().map(|masks| masks()).unwrap_or_default();
            let fed: Vec<[u32; 1]> = last.iter().map(|&token| [token]).collect();
            let mut batch: Vec<Row> = rows
                .iter_mut()
                .zip(&fed)
                .map(|(row, tokens)| Row {
                    memory: &mut *row.memory,
                    input: row.input.after(tokens),
                })
                .collect();
            let slots = self
                .enqueue_sampled(&batch, &samplers, count, steps, masks)
                .await?;
            let on_device = self.steps.slots()?;
            // If this call fails or is dropped, the samplers do not record the chosen tokens.
            on_device.forget(&slots);
            let results = on_device.memory.results();
            let words = self.steps.words(vec![results]).await?.remove(0);
            for (i, slot) in slots.into_iter().enumerate() {
                batch[i].memory.len_tokens += count;
                take_in(&mut samplers[i], &mut chosen[i], &words, slot, count);
                // The input of a row that has ended has no effect.
                if let Some(Ok(sampled)) = chosen[i].last() {
                    last[i] = sampled.id;
                    self.steps.slots()?.keep(slot, samplers[i].sampler);
                }
            }
        }
        let ms = self.device().now_ms() - start_ms;
        self.pace.note_steps(ms, steps);
        Ok(chosen)
    }

    pub(super) fn accepts(&self, row: &RowSampler<'_>) -> bool {
        self.samples(row.sampler.params(), row.score)
    }

    /// Enqueues `count` steps, of `all_steps`, that choose on the device; returns the slots of the
    /// rows' samplers.
    async fn enqueue_sampled(
        &mut self,
        rows: &[Row<'_>],
        samplers: &[RowSampler<'_>],
        count: usize,
        all_steps: usize,
        masks: impl FnOnce() -> Vec<Option<TokenMask>>,
    ) -> Result<Vec<usize>> {
        self.steps.prepare_sampled(rows.len()).await?;
        let fed = self.feed_batch(rows).await?;
        self.sample_fed(fed, samplers, count, all_steps, masks)
    }

    /// Enqueues `count` choices, of `all_steps`, by a sampler for each row that was fed, and the steps between them; returns
    /// the slots of the samplers.
    pub(super) fn sample_fed(
        &mut self,
        fed: Fed,
        samplers: &[RowSampler<'_>],
        count: usize,
        all_steps: usize,
        masks: impl FnOnce() -> Vec<Option<TokenMask>>,
    ) -> Result<Vec<usize>> {
        let size = fed.rows;
        let logits = self.steps.batch_logits(fed, samplers.len())?;
        if all_steps == 1 {
            // The device works while the masks are computed.
            self.steps.device().flush()?;
        }
        let masks = masks();
        if all_steps > 1 && masks.iter().any(Option::is_some) {
            return Err(Error::Internal("a mask for several tokens".into()));
        }
        let slots = self.steps.slots()?;
        let placed = slots.place(samplers.iter().map(|row| &*row.sampler));
        for (slot, mask) in placed.iter().zip(&masks) {
            if let Some(mask) = mask {
                slots.memory.set_mask(*slot, mask);
            }
        }
        let choices = samplers.iter().zip(&placed).enumerate();
        let choices = choices.map(|(i, (row, &slot))| RowChoice {
            slot,
            is_masked: masks.get(i).is_some_and(Option::is_some),
            score: row.score,
        });
        let choices: Vec<RowChoice> = choices.collect();
        slots.memory.set_rows(&choices);
        self.steps.sample(size, logits)?;
        self.steps.sampled_steps(size, count - 1)?;
        Ok(placed)
    }
}

/// Passes the `count` latest results of a slot to the row's sampler, up to an error.
pub(super) fn take_in(
    row: &mut RowSampler<'_>,
    chosen: &mut Vec<Result<Sampled>>,
    results: &[u32],
    slot: usize,
    count: usize,
) {
    for _ in 0..count {
        if chosen.last().is_some_and(Result::is_err) {
            return;
        }
        match parse(results, slot, row.sampler.position(), row.score) {
            Ok((sampled, mu)) => {
                row.sampler.follow(sampled.id, mu);
                chosen.push(Ok(sampled));
            }
            Err(error) => chosen.push(Err(error)),
        }
    }
}
