//! Does what `plan` says: one step on the model. A candidate that fails does so alone; only a lost
//! device is an error here.

use futures_util::future::join;

use super::choice::Allowed;
use super::contract::expect;
use super::event::FinishReason;
use super::job::Job;
use super::plan::{PageCopy, Place, Step};
use super::prompt::Feed;
use super::sequence::Sequence;
use crate::model::causal::CausalModel;
use crate::{Error, Result};

impl Step {
    /// Runs the step that was just planned for these running requests.
    ///
    /// # Errors
    /// [`Error::DeviceLost`]; what else goes wrong is told to the candidates it concerns.
    pub(super) async fn run<M: CausalModel>(self, model: &mut M, jobs: &mut [Job]) -> Result<()> {
        match self {
            Step::Feed { job, prompt, feed } => jobs[job].feed_prompt(model, prompt, feed).await,
            Step::Start { at, copy } => jobs[at.job].start_sequence(model, at.sequence, copy),
            Step::Batch { rows } => {
                let all = jobs.iter_mut().enumerate().flat_map(|(job, it)| {
                    let sequences = it.sequences.iter_mut().enumerate();
                    sequences.map(move |(sequence, it)| (Place { job, sequence }, it))
                });
                let chosen = all.filter(|(at, _)| rows.contains(at));
                let mut rows: Vec<&mut Sequence> = chosen.map(|(_, sequence)| sequence).collect();
                run_batch(model, &mut rows).await
            }
            Step::Lone { at, step } => {
                let sequence = &mut jobs[at.job].sequences[at.sequence];
                let result = sequence.run_lone(model, step).await;
                tell(result, [&*sequence])
            }
        }
    }
}

impl Job {
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

/// One token for each of several sequences. Where the model fails them together, perhaps for one
/// of them or for their number, each gets its chance alone.
async fn run_batch<M: CausalModel>(model: &mut M, rows: &mut [&mut Sequence]) -> Result<()> {
    let (logits, allowed) = match feed_batch(model, rows).await {
        Ok(fed) => fed,
        Err(error @ Error::DeviceLost(_)) => return Err(error),
        Err(_) => {
            for row in rows {
                row.kv.len_tokens = row.known_tokens() - 1;
                let step = row.next_token();
                let result = row.run_lone(model, step).await;
                tell(result, [&**row])?;
            }
            return Ok(());
        }
    };
    if let Err(error) = expect("rows of logits", logits.len(), rows.len()) {
        return tell(Err(error), rows.iter().map(|row| &**row));
    }
    for ((row, mut logits), allowed) in rows.iter_mut().zip(logits).zip(&allowed) {
        let kv_tokens = row.known_tokens();
        let kept = expect("logits", logits.len(), model.vocab_size());
        match kept.and_then(|()| expect("KV tokens", row.kv.len_tokens, kv_tokens)) {
            Ok(()) => row.choice.choose(&mut logits, allowed),
            Err(error) => row.choice.fail(error),
        }
    }
    Ok(())
}

/// Feeds one token to each row; what their constraints allow next is found out while the device
/// computes.
async fn feed_batch<M: CausalModel>(
    model: &mut M,
    rows: &mut [&mut Sequence],
) -> Result<(Vec<Vec<f32>>, Vec<Result<Allowed>>)> {
    let mut inputs = Vec::with_capacity(rows.len());
    let mut choices = Vec::with_capacity(rows.len());
    for row in rows {
        let token = row.unfed(1)[0];
        inputs.push((&mut row.kv, token));
        choices.push(&mut row.choice);
    }
    let allowed = async {
        let choices = choices.iter_mut();
        choices.map(|it| it.allowed()).collect()
    };
    let (logits, allowed) = join(model.feed_batch(&mut inputs), allowed).await;
    Ok((logits?, allowed))
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
