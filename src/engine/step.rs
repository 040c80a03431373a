//! Does what `plan` says: one step on the model. A candidate that fails does so alone; only a lost
//! device is an error here.

use super::choice::Allowed;
use super::contract::expect;
use super::event::FinishReason;
use super::job::Job;
use super::plan::{PageCopy, Place, Step};
use super::prompt::Feed;
use super::sequence::Sequence;
use crate::model::causal::{CausalModel, SampledRow};
use crate::sample::Sampled;
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
            Step::Batch { rows, steps } => {
                let all = jobs.iter_mut().enumerate().flat_map(|(job, it)| {
                    let sequences = it.sequences.iter_mut().enumerate();
                    sequences.map(move |(sequence, it)| (Place { job, sequence }, it))
                });
                let chosen = all.filter(|(at, _)| rows.contains(at));
                let rows: Vec<&mut Sequence> = chosen.map(|(_, sequence)| sequence).collect();
                run_batch(model, rows, steps).await
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

/// `steps` tokens for each of several sequences; one where the host chooses. Who chooses depends on
/// the sequence alone.
async fn run_batch<M: CausalModel>(
    model: &mut M,
    rows: Vec<&mut Sequence>,
    steps: usize,
) -> Result<()> {
    let by_device = |row: &&mut Sequence| {
        let generation = row.choice.generation();
        model.chooses(&generation.sampling, generation.scores)
    };
    let (mut on_device, mut on_host): (Vec<_>, Vec<_>) = rows.into_iter().partition(by_device);
    if !on_device.is_empty() {
        choose_for(model, &mut on_device, steps).await?;
        for row in on_device {
            row.run_ahead.grow(model.run_ahead_steps());
        }
    }
    if !on_host.is_empty() {
        choose_for(model, &mut on_host, 1).await?;
    }
    Ok(())
}

/// Where the model fails sequences together, perhaps for one of them or for their number, each gets
/// its chance alone.
async fn choose_for<M: CausalModel>(
    model: &mut M,
    rows: &mut [&mut Sequence],
    steps: usize,
) -> Result<()> {
    let (sampled, allowed) = match feed_sampled(model, rows, steps).await {
        Ok(fed) => fed,
        Err(error @ Error::DeviceLost(_)) => return Err(error),
        Err(error) if rows.len() == 1 => return tell(Err(error), [&*rows[0]]),
        Err(_) => {
            for row in rows {
                row.kv.len_tokens = row.known_tokens() - 1;
                Box::pin(choose_for(model, &mut [row], 1)).await?;
            }
            return Ok(());
        }
    };
    if let Err(error) = expect("rows of choices", sampled.len(), rows.len()) {
        return tell(Err(error), rows.iter().map(|row| &**row));
    }
    for ((row, sampled), allowed) in rows.iter_mut().zip(sampled).zip(&allowed) {
        let kv_tokens = row.known_tokens() - 1 + steps;
        let kept = expect("KV tokens", row.kv.len_tokens, kv_tokens).and_then(|()| {
            let has_failed = sampled.last().is_some_and(Result::is_err);
            expect(
                "choices",
                sampled.len(),
                if has_failed { sampled.len() } else { steps },
            )
        });
        match kept {
            Ok(()) => row.choice.take(sampled, allowed),
            Err(error) => row.choice.fail(error),
        }
        // Roll back what was run ahead past the end.
        row.kv.len_tokens = row.kv.len_tokens.min(row.known_tokens() - 1);
    }
    Ok(())
}

/// Feeds and chooses; what the constraints allow next is found out while the device computes.
async fn feed_sampled<M: CausalModel>(
    model: &mut M,
    rows: &mut [&mut Sequence],
    steps: usize,
) -> Result<(Vec<Vec<Result<Sampled>>>, Vec<Result<Allowed>>)> {
    let mut inputs = Vec::with_capacity(rows.len());
    let mut matchers = Vec::with_capacity(rows.len());
    for row in rows {
        let token = row.unfed(1)[0];
        let score = row.choice.generation().scores;
        let (sampler, matcher) = row.choice.parts();
        inputs.push(SampledRow {
            kv: &mut row.kv,
            token,
            sampler,
            score,
        });
        matchers.push(matcher);
    }
    let mut allowed = Vec::new();
    let masks = || {
        let matchers = matchers.into_iter();
        allowed.extend(matchers.map(|it| it.map_or(Ok(Allowed::Any), Allowed::next)));
        let masks = allowed.iter().map(|allowed| match allowed {
            Ok(Allowed::OneOf(mask)) => Some(mask.clone()),
            _ => None,
        });
        masks.collect()
    };
    let sampled = model.feed_sampled(&mut inputs, steps, masks).await?;
    Ok((sampled, allowed))
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
