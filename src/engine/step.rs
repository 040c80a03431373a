//! Does what `plan` says: one step on the model. A candidate that fails does so alone; only a lost
//! device is an error here.

use futures_util::future::join;

use super::choice::Allowed;
use super::event::FinishReason;
use super::job::Job;
use super::model::{CausalModel, Chooser, Row, RowSampler, SequenceMemory, expect, expect_chosen};
use super::plan::{PageCopy, Place, Step};
use super::prompt::Feed;
use super::sequence::Sequence;
use crate::sample::{Sampled, TokenMask};
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

/// `device_steps` tokens chosen by the device, or one by the host. Where the model fails sequences
/// together, perhaps for one of them or for their number, each gets its chance alone.
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
        Err(error) if rows.len() == 1 => return tell(Err(error), [&*rows[0]]),
        Err(_) => {
            for row in rows {
                row.memory.len_tokens = row.known_tokens() - 1;
                Box::pin(choose_for(model, &mut [row], device_steps.map(|_| 1))).await?;
            }
            return Ok(());
        }
    };
    if let Err(error) = expect("rows of tokens", chosen.len(), rows.len()) {
        return tell(Err(error), rows.iter().map(|row| &**row));
    }
    let vocab_size = model.limits().vocab_size;
    let steps = device_steps.unwrap_or(1);
    for ((row, chosen), allowed) in rows.iter_mut().zip(chosen).zip(&allowed) {
        let kv_tokens = row.known_tokens() - 1 + steps;
        let kept = expect("KV tokens", row.memory.len_tokens, kv_tokens)
            .and_then(|()| expect_chosen(&chosen, steps, vocab_size));
        match kept {
            Ok(()) => row.choice.take(chosen, allowed),
            Err(error) => row.choice.fail(error),
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
    let tokens = last_tokens(sequences);
    let mut rows = Vec::with_capacity(tokens.len());
    let mut samplers = Vec::with_capacity(tokens.len());
    let mut matchers = Vec::with_capacity(tokens.len());
    for (sequence, token) in sequences.iter_mut().zip(&tokens) {
        let Sequence { memory, choice, .. } = &mut **sequence;
        rows.push(row_of(memory, token));
        let score = choice.generation().scores;
        let (sampler, matcher) = choice.parts();
        samplers.push(RowSampler { sampler, score });
        matchers.push(matcher);
    }
    let mut allowed = Vec::new();
    let masks = || {
        let matchers = matchers.into_iter();
        allowed.extend(matchers.map(|it| it.map_or(Ok(Allowed::Any), Allowed::next)));
        let masks = allowed.iter().map(|it| mask_of(it).cloned());
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

/// The same on the host, one token each.
async fn choose_on_host<M: CausalModel>(
    model: &mut M,
    sequences: &mut [&mut Sequence],
) -> Result<Chosen> {
    let tokens = last_tokens(sequences);
    let mut rows = Vec::with_capacity(tokens.len());
    let mut choices = Vec::with_capacity(tokens.len());
    for (sequence, token) in sequences.iter_mut().zip(&tokens) {
        let Sequence { memory, choice, .. } = &mut **sequence;
        rows.push(row_of(memory, token));
        choices.push(choice);
    }
    let allowed = async {
        choices
            .iter_mut()
            .map(|it| it.allowed())
            .collect::<Vec<_>>()
    };
    let (output, allowed) = join(model.step(&mut rows, Chooser::Host), allowed).await;
    let logits = output?.into_logits()?;
    let rows = choices.into_iter().zip(logits).zip(&allowed);
    let chosen = rows.map(|((choice, mut logits), allowed)| {
        let score = choice.generation().scores;
        let sampler = choice.parts().0;
        vec![sampler.sample(&mut logits, mask_of(allowed), score)]
    });
    Ok((chosen.collect(), allowed))
}

fn last_tokens(sequences: &[&mut Sequence]) -> Vec<u32> {
    let unfed = sequences.iter().map(|it| it.unfed(1)[0]);
    unfed.collect()
}

fn row_of<'a>(memory: &'a mut SequenceMemory, token: &'a u32) -> Row<'a> {
    Row {
        memory,
        tokens: std::slice::from_ref(token),
    }
}

fn mask_of(allowed: &Result<Allowed>) -> Option<&TokenMask> {
    match allowed {
        Ok(Allowed::OneOf(mask)) => Some(mask),
        _ => None,
    }
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
