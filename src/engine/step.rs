//! Does what `plan` says: one step of a request on the model. A candidate that fails does so alone;
//! only a lost device is an error here.

use futures_util::future::join;

use super::contract::expect;
use super::event::FinishReason;
use super::job::Job;
use super::plan::{PageCopy, Step};
use super::prompt::Feed;
use super::sequence::Sequence;
use crate::model::causal::CausalModel;
use crate::{Error, Result};

impl Job {
    /// Runs a step that was just planned.
    ///
    /// # Errors
    /// [`Error::DeviceLost`]; what else goes wrong is told to the candidates it concerns.
    pub(super) async fn run<M: CausalModel>(&mut self, model: &mut M, step: Step) -> Result<()> {
        match step {
            Step::Feed { prompt, feed } => self.feed_prompt(model, prompt, feed).await,
            Step::Start { sequence, copy } => self.start_sequence(model, sequence, copy),
            Step::Batch { sequences } => {
                self.batches += 1;
                let all = self.sequences.iter_mut().enumerate();
                let chosen = all.filter(|(at, _)| sequences.contains(at));
                let mut rows: Vec<&mut Sequence> = chosen.map(|(_, sequence)| sequence).collect();
                for row in &mut rows {
                    row.last_batch = self.batches;
                }
                let result = run_batch(model, &mut rows).await;
                tell(result, rows.iter().map(|row| &**row))
            }
            Step::Lone(step) => {
                let (Some(run_ahead), Some(sequence)) =
                    (&mut self.lone, self.sequences.first_mut())
                else {
                    return Ok(());
                };
                let result = sequence.run_lone(model, step, run_ahead).await;
                tell(result, [&*sequence])
            }
        }
    }

    async fn feed_prompt<M: CausalModel>(
        &mut self,
        model: &mut M,
        prompt: usize,
        feed: Feed,
    ) -> Result<()> {
        let result = self.prompts[prompt].run(model, feed).await;
        let candidates = || self.sequences.iter().filter(|it| it.prompt == prompt);
        match result {
            Ok(None) => Ok(()),
            Ok(Some(scores)) => {
                for Sequence { choice, .. } in candidates() {
                    choice.tell_scores(scores.clone());
                    if choice.generation().max_tokens == 0 {
                        choice.finish(FinishReason::Length);
                    }
                }
                Ok(())
            }
            Err(error) => tell(Err(error), candidates()),
        }
    }

    /// Gives a candidate its first token.
    fn start_sequence<M: CausalModel>(
        &mut self,
        model: &mut M,
        at: usize,
        copy: Option<PageCopy>,
    ) -> Result<()> {
        let sequence = &mut self.sequences[at];
        let Some(outcome) = &self.prompts[sequence.prompt].outcome else {
            return Ok(());
        };
        sequence.is_started = true;
        if let Some(PageCopy { from, to }) = copy
            && let Err(error) = model.copy_page(from, to)
        {
            return tell(Err(error), [&*sequence]);
        }
        let mut logits = outcome.logits.clone();
        sequence.choice.choose(&mut logits, &outcome.allowed);
        Ok(())
    }
}

/// One token for each of several sequences; what their constraints allow next is found out while
/// the device computes.
async fn run_batch<M: CausalModel>(model: &mut M, rows: &mut [&mut Sequence]) -> Result<()> {
    let mut inputs = Vec::with_capacity(rows.len());
    let mut choices = Vec::with_capacity(rows.len());
    let mut kv_tokens = Vec::with_capacity(rows.len());
    for row in rows {
        let token = row.unfed(1)[0];
        kv_tokens.push(row.kv.len_tokens + 1);
        inputs.push((&mut row.kv, token));
        choices.push(&mut row.choice);
    }
    let allowed = async {
        choices
            .iter_mut()
            .map(|it| it.allowed())
            .collect::<Vec<_>>()
    };
    let (logits, allowed) = join(model.feed_batch(&mut inputs), allowed).await;
    let logits = logits?;
    expect("rows of logits", logits.len(), inputs.len())?;
    for ((kv, _), wanted) in inputs.iter().zip(kv_tokens) {
        expect("KV tokens", kv.len_tokens, wanted)?;
    }
    for ((choice, mut logits), allowed) in choices.into_iter().zip(logits).zip(&allowed) {
        match expect("logits", logits.len(), model.vocab_size()) {
            Ok(()) => choice.choose(&mut logits, allowed),
            Err(error) => choice.fail(error),
        }
    }
    Ok(())
}

/// Tells a failure to those it concerns; a lost device concerns everyone.
fn tell<'a>(result: Result<()>, sequences: impl IntoIterator<Item = &'a Sequence>) -> Result<()> {
    match result {
        Err(error @ Error::DeviceLost(_)) => Err(error),
        Err(error) => {
            for sequence in sequences {
                sequence.choice.fail(error.clone());
            }
            Ok(())
        }
        Ok(()) => Ok(()),
    }
}
