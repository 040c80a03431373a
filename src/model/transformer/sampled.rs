//! Steps that choose tokens on the device for several sequences: what goes up, and what comes back into
//! their samplers. Knows no kernels.

use burn::tensor::Transaction;

use super::{Transformer, segment};
use crate::{
    Error, Result,
    model::SampledRow,
    ops::{
        sample::{RING, RowChoice, parse},
        step::Segment,
    },
    sample::{Sampled, TokenMask},
};

impl Transformer {
    /// As `CausalModel::feed_sampled`, of rows whose samplers the device accepts.
    pub(super) async fn sample(
        &mut self,
        rows: &mut [SampledRow<'_>],
        steps: usize,
        masks: impl FnOnce() -> Vec<Option<TokenMask>>,
    ) -> Result<Vec<Vec<Result<Sampled>>>> {
        let mut chosen: Vec<Vec<Result<Sampled>>> = rows.iter().map(|_| Vec::new()).collect();
        let start_ms = self.compute().now_ms();
        let mut masks = Some(masks);
        let mut left = steps;
        while left > 0 {
            let count = left.min(RING);
            left -= count;
            let masks = || masks.take().map(|masks| masks()).unwrap_or_default();
            let slots = self
                .enqueue_sampled(rows, &chosen, count, steps, masks)
                .await?;
            let on_device = self.steps.slots()?;
            // Should this call fail or be dropped, samplers do not learn what was chosen.
            on_device.forget(&slots);
            let results = on_device.memory.results();
            let words = Transaction::default().register(results);
            let words = self.steps.words(words).await?.remove(0);
            for ((row, chosen), slot) in rows.iter_mut().zip(&mut chosen).zip(slots) {
                row.kv.len_tokens += count;
                take_in(row, chosen, &words, slot, count);
                if chosen.last().is_some_and(Result::is_ok) {
                    self.steps.slots()?.keep(slot, row.sampler);
                }
            }
        }
        let ms = self.compute().now_ms() - start_ms;
        self.pace.note_steps(ms, steps);
        Ok(chosen)
    }

    /// Enqueues `count` steps, of `all_steps`, that choose on the device, after what was `chosen`
    /// before; gives the slots of the rows' samplers.
    async fn enqueue_sampled(
        &mut self,
        rows: &[SampledRow<'_>],
        chosen: &[Vec<Result<Sampled>>],
        count: usize,
        all_steps: usize,
        masks: impl FnOnce() -> Vec<Option<TokenMask>>,
    ) -> Result<Vec<usize>> {
        self.steps.prepare_sampled(rows.len()).await?;
        let tokens = rows
            .iter()
            .zip(chosen)
            .map(|(row, chosen)| match chosen.last() {
                Some(Ok(sampled)) => sampled.id,
                // What a row is fed that has ended means nothing.
                _ => row.token,
            });
        let tokens: Vec<u32> = tokens.collect();
        let segments: Vec<Segment> = rows.iter().map(|row| segment(row.kv, 1)).collect();
        let fed = self.steps.feed_batch(&segments, &tokens).await?;
        let size = fed.rows;
        let logits = self.steps.batch_logits(fed, rows.len())?;
        if all_steps == 1 {
            // The device computes while the masks are found.
            self.steps.compute().flush()?;
        }
        let masks = masks();
        if all_steps > 1 && masks.iter().any(Option::is_some) {
            return Err(Error::Internal("a mask for several tokens".into()));
        }
        let slots = self.steps.slots()?;
        let placed = slots.place(rows.iter().map(|row| &*row.sampler));
        for (slot, mask) in placed.iter().zip(&masks) {
            if let Some(mask) = mask {
                slots.memory.set_mask(*slot, mask);
            }
        }
        let choices = rows.iter().zip(&placed).enumerate();
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

/// Takes the `count` latest results of a row's slot in, up to an error.
fn take_in(
    row: &mut SampledRow<'_>,
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
