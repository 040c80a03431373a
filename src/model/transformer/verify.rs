//! Steps that verify drafts: consecutive tokens of one sequence, with a choice after each of them. They are batches over
//! positions: the kernels are those for few tokens, which round alike for one row and for several.

use super::{Transformer, sampled::take_in, segment};
use crate::{
    Error, Result,
    engine::{
        Chooser, Row, StepOutput,
        model::{Masks, RowSampler},
    },
    model::steps::{Fed, sizes::MAX_BATCH},
    sample::Sampled,
};

impl Transformer {
    /// [`CausalModel::verify`](crate::engine::CausalModel::verify).
    pub(super) async fn verified(
        &mut self,
        row: Row<'_>,
        chooser: Chooser<'_>,
    ) -> Result<StepOutput> {
        let rows = row.input.ids().len();
        self.check(row.memory, rows)?;
        if rows == 0 || rows > MAX_BATCH || row.input.embeddings().next().is_some() {
            return Err(Error::Internal(format!("a draft of {rows}")));
        }
        let output = match chooser {
            Chooser::Host => {
                let fed = self.feed_draft(&row).await?;
                let logits = self.steps.batch_logits(fed, rows)?;
                let logits = self.steps.floats(logits).await?;
                let logits = logits.chunks_exact(self.config.token_ids);
                StepOutput::Logits(logits.map(<[f32]>::to_vec).collect())
            }
            Chooser::Samplers {
                steps: 1,
                samplers,
                masks,
            } if samplers.len() == rows => {
                StepOutput::Chosen(self.sampled_draft(&row, samplers, masks).await?)
            }
            _ => return Err(Error::Internal("a draft without its samplers".into())),
        };
        row.memory.len_tokens += rows;
        Ok(output)
    }

    async fn feed_draft(&mut self, row: &Row<'_>) -> Result<Fed> {
        let tokens = row.input.ids();
        let rotary = self.rotary(&row.input);
        let segment = segment(row.memory, tokens.len(), rotary.of_segment());
        let fed = self.steps.feed_draft(segment, tokens).await?;
        self.remember_draft(row.memory, tokens, &fed);
        Ok(fed)
    }

    async fn sampled_draft(
        &mut self,
        row: &Row<'_>,
        mut samplers: Vec<RowSampler<'_>>,
        masks: Masks<'_>,
    ) -> Result<Vec<Vec<Result<Sampled>>>> {
        if !samplers.iter().all(|row| self.accepts(row)) {
            let what = "samplers that the device does not run";
            return Err(Error::Internal(what.into()));
        }
        self.steps.prepare_sampled(MAX_BATCH).await?;
        let fed = self.feed_draft(row).await?;
        let slots = self.sample_fed(fed, &samplers, 1, 1, masks)?;
        let on_device = self.steps.slots()?;
        // If this call fails or is dropped, the samplers do not record the chosen tokens.
        on_device.forget(&slots);
        let results = on_device.memory.results();
        let words = self.steps.words(vec![results]).await?.remove(0);
        let mut chosen: Vec<Vec<Result<Sampled>>> = samplers.iter().map(|_| Vec::new()).collect();
        for ((sampler, chosen), slot) in samplers.iter_mut().zip(&mut chosen).zip(slots) {
            take_in(sampler, chosen, &words, slot, 1);
            if let [Ok(_)] = &chosen[..] {
                self.steps.slots()?.keep(slot, sampler.sampler);
            }
        }
        Ok(chosen)
    }
}
