//! Runs a planned step on the model. A candidate that fails does so alone; only a lost device is an
//! error here.

use std::rc::Rc;

use futures_util::future::join;

use super::candidate::{Allowed, Limits};
use super::draft::PlannedDraft;
use super::event::FinishReason;
use super::generation::Generation;
use super::job::Job;
use super::model::{
    CausalModel, Chooser, MemoryCopy, Row, RowSampler, SequenceMemory, expect, expect_chosen,
};
use super::planned_step::{PlannedStep, SequenceIndex};
use super::prefill::Feed;
use super::sequence::Sequence;
use crate::sample::Sampled;
use crate::{Error, Result};

impl PlannedStep {
    /// Runs what is not part of the step's cost.
    ///
    /// # Errors
    /// The same as those of [`run`](Self::run).
    pub(super) async fn prepare<M: CausalModel>(&self, model: &mut M, jobs: &[Job]) -> Result<()> {
        let PlannedStep::Verify { at, draft, .. } = self else {
            return Ok(());
        };
        let sequence = &jobs[at.job].sequences[at.sequence];
        match draft {
            PlannedDraft::Tokens(_) => Ok(()),
            PlannedDraft::OfModel(_) => {
                report(model.prepare_draft(sequence.text()).await, [sequence])
            }
        }
    }

    /// Runs the step that was just planned for these running requests.
    ///
    /// # Errors
    /// [`Error::DeviceLost`]. Other errors are reported to the candidates that they concern.
    pub(super) async fn run<M: CausalModel>(self, model: &mut M, jobs: &mut [Job]) -> Result<()> {
        match self {
            PlannedStep::Feed {
                job,
                prompt,
                feed,
                restore,
                snapshot,
            } => {
                let job = &mut jobs[job];
                job.feed_prompt(model, prompt, feed, [restore, snapshot])
                    .await
            }
            PlannedStep::Start { at, copies } => {
                jobs[at.job].start_sequence(model, at.sequence, &copies)
            }
            PlannedStep::Batch { rows, steps } => {
                let all = jobs.iter_mut().enumerate().flat_map(|(job, it)| {
                    let sequences = it.sequences.iter_mut().enumerate();
                    sequences.map(move |(sequence, it)| (SequenceIndex { job, sequence }, it))
                });
                let chosen = all.filter(|(at, _)| rows.contains(at));
                let rows: Vec<&mut Sequence> = chosen.map(|(_, sequence)| sequence).collect();
                run_batch(model, rows, steps).await
            }
            PlannedStep::Verify { at, draft, spare } => {
                let sequence = &mut jobs[at.job].sequences[at.sequence];
                let result = sequence.verify(model, draft, spare).await;
                report(result, [&*sequence])
            }
            PlannedStep::Single { at, step, restore } => {
                let sequence = &mut jobs[at.job].sequences[at.sequence];
                let result = match copy_all(model, &restore) {
                    Ok(()) => sequence.run_single(model, step).await,
                    Err(error) => Err(error),
                };
                report(result, [&*sequence])
            }
        }
    }
}

impl Job {
    /// Feeds a chunk of a prompt. Before it, the state may be restored; after it, a snapshot may be
    /// taken.
    async fn feed_prompt<M: CausalModel>(
        &mut self,
        model: &mut M,
        prompt: usize,
        feed: Feed,
        [restore, snapshot]: [Option<MemoryCopy>; 2],
    ) -> Result<()> {
        let it = &mut self.prompts[prompt];
        let result = async {
            copy_all(model, &restore)?;
            let scores = it.run(model, feed).await?;
            copy_all(model, &snapshot)?;
            Ok(scores)
        };
        let result = result.await;
        let candidates = || self.sequences.iter().filter(|it| it.prompt == prompt);
        match result {
            Ok(None) => Ok(()),
            Ok(Some(scores)) => {
                for Sequence { candidate, .. } in candidates() {
                    candidate.tell_scores(scores.clone());
                    if candidate.generation().max_tokens == 0 {
                        candidate.finish(FinishReason::Length);
                    }
                }
                Ok(())
            }
            Err(error) => report(Err(error), candidates()),
        }
    }

    /// Gives a candidate its first token.
    fn start_sequence<M: CausalModel>(
        &mut self,
        model: &mut M,
        at: usize,
        copies: &[MemoryCopy],
    ) -> Result<()> {
        let sequence = &mut self.sequences[at];
        let Some(outcome) = &self.prompts[sequence.prompt].outcome else {
            return Ok(());
        };
        sequence.is_started = true;
        if let Err(error) = copy_all(model, copies) {
            return report(Err(error), [&*sequence]);
        }
        let mut logits = outcome.logits.clone();
        sequence.candidate.choose(&mut logits, &outcome.allowed);
        Ok(())
    }
}

fn copy_all<'a, M: CausalModel>(
    model: &mut M,
    copies: impl IntoIterator<Item = &'a MemoryCopy>,
) -> Result<()> {
    copies.into_iter().try_for_each(|copy| model.copy(*copy))
}

/// Chooses `steps` tokens for each of several sequences, or one where the host chooses. Whether
/// device or host chooses depends on the sequence alone.
async fn run_batch<M: CausalModel>(
    model: &mut M,
    rows: Vec<&mut Sequence>,
    steps: usize,
) -> Result<()> {
    let by_device = |row: &&mut Sequence| {
        let generation = row.candidate.generation();
        model.samples(&generation.sampling, generation.scores)
    };
    let (mut on_device, mut on_host): (Vec<_>, Vec<_>) = rows.into_iter().partition(by_device);
    if !on_device.is_empty() {
        choose_for(model, &mut on_device, Some(steps)).await?;
        for row in on_device {
            row.run_ahead.grow(model.run_ahead_steps());
        }
    }
    if !on_host.is_empty() {
        choose_for(model, &mut on_host, None).await?;
    }
    Ok(())
}

/// Chooses `device_steps` tokens on the device, or one on the host. If the model fails a batch,
/// perhaps because of one row or of the number of rows, each sequence is tried alone.
async fn choose_for<M: CausalModel>(
    model: &mut M,
    rows: &mut [&mut Sequence],
    device_steps: Option<usize>,
) -> Result<()> {
    let chosen = match device_steps {
        Some(steps) => choose_on_device(model, rows, steps).await,
        None => choose_on_host(model, rows).await,
    };
    let (chosen, allowed) = match chosen {
        Ok(chosen) => chosen,
        Err(error @ Error::DeviceLost(_)) => return Err(error),
        // States are undefined after a failed step: nothing can be tried again.
        Err(error) if rows.len() == 1 || rows[0].memory.state.is_some() => {
            return report(Err(error), rows.iter().map(|row| &**row));
        }
        Err(_) => {
            for row in rows {
                row.memory.len_tokens = row.known_tokens() - 1;
                Box::pin(choose_for(model, &mut [row], device_steps.map(|_| 1))).await?;
            }
            return Ok(());
        }
    };
    if let Err(error) = expect("rows of tokens", chosen.len(), rows.len()) {
        return report(Err(error), rows.iter().map(|row| &**row));
    }
    let vocab_size = model.limits().vocab_size;
    let steps = device_steps.unwrap_or(1);
    for ((row, chosen), allowed) in rows.iter_mut().zip(chosen).zip(&allowed) {
        let kv_tokens = row.known_tokens() - 1 + steps;
        let kept = expect("KV tokens", row.memory.len_tokens, kv_tokens)
            .and_then(|()| expect_chosen(&chosen, steps, vocab_size));
        match kept {
            Ok(()) => row.candidate.take(chosen, allowed),
            Err(error) => row.candidate.fail(error),
        }
        row.roll_back();
    }
    Ok(())
}

/// The tokens of each row, and what its constraint allowed for the first of them.
type Chosen = (Vec<Vec<Result<Sampled>>>, Vec<Result<Allowed>>);

/// Feeds each row its last token and lets the device choose; what the constraints allow is computed
/// while the device works.
async fn choose_on_device<M: CausalModel>(
    model: &mut M,
    sequences: &mut [&mut Sequence],
    steps: usize,
) -> Result<Chosen> {
    let last = last_tokens(sequences);
    let mut rows = Vec::with_capacity(last.len());
    let mut samplers = Vec::with_capacity(last.len());
    let mut limits = Vec::with_capacity(last.len());
    for (sequence, last) in sequences.iter_mut().zip(&last) {
        let Sequence {
            memory, candidate, ..
        } = &mut **sequence;
        rows.push(row_of(memory, last));
        let score = candidate.generation().scores;
        let (sampler, limit) = candidate.parts();
        samplers.push(RowSampler { sampler, score });
        limits.push(limit);
    }
    let mut allowed = Vec::new();
    let masks = || {
        allowed.extend(limits.into_iter().map(Limits::allowed));
        let masks = allowed.iter().map(|it| Allowed::mask(it).cloned());
        masks.collect()
    };
    let chooser = Chooser::Samplers {
        steps,
        samplers,
        masks: Box::new(masks),
    };
    let output = model.step(&mut rows, chooser).await?;
    Ok((output.into_chosen()?, allowed))
}

/// Feeds each row its last token and chooses one token on the host.
async fn choose_on_host<M: CausalModel>(
    model: &mut M,
    sequences: &mut [&mut Sequence],
) -> Result<Chosen> {
    let last = last_tokens(sequences);
    let mut rows = Vec::with_capacity(last.len());
    let mut candidates = Vec::with_capacity(last.len());
    for (sequence, last) in sequences.iter_mut().zip(&last) {
        let Sequence {
            memory, candidate, ..
        } = &mut **sequence;
        rows.push(row_of(memory, last));
        candidates.push(candidate);
    }
    let allowed = async {
        candidates
            .iter_mut()
            .map(|it| it.allowed())
            .collect::<Vec<_>>()
    };
    let (output, allowed) = join(model.step(&mut rows, Chooser::Host), allowed).await;
    let logits = output?.into_logits()?;
    let rows = candidates.into_iter().zip(logits).zip(&allowed);
    let chosen =
        rows.map(|((candidate, mut logits), allowed)| vec![candidate.sample(&mut logits, allowed)]);
    Ok((chosen.collect(), allowed))
}

/// The token that each sequence feeds, and the prompt before it.
fn last_tokens(sequences: &[&mut Sequence]) -> Vec<(Rc<Generation>, u32)> {
    let last = sequences.iter();
    last.map(|it| (it.candidate.generation().clone(), it.last_token()))
        .collect()
}

fn row_of<'a>(memory: &'a mut SequenceMemory, last: &'a (Rc<Generation>, u32)) -> Row<'a> {
    let (generation, token) = last;
    Row {
        memory,
        input: generation.prompt.after(std::slice::from_ref(token)),
    }
}

/// Reports a failure to the sequences that it concerns. A lost device concerns all and is returned.
fn report<'a>(result: Result<()>, sequences: impl IntoIterator<Item = &'a Sequence>) -> Result<()> {
    match result {
        Err(error @ Error::DeviceLost(_)) => Err(error),
        Err(error) => {
            for sequence in sequences {
                sequence.candidate.fail(error.clone());
            }
            Ok(())
        }
        Ok(()) => Ok(()),
    }
}
