//! One submitted request: its prompts and their candidates, and the pages they hold. Knows neither
//! other requests nor when it runs; `plan` says what is done next, `step` does it.

use std::rc::Rc;

use super::events::EventSender;
use super::generation::Generation;
use super::pages::{Claim, GroupClaim, PagePool};
use super::plan::StepLimits;
use super::prompt::Prompt;
use super::run_ahead::RunAhead;
use super::sequence::Sequence;
use crate::Error;

/// A request that waits or runs.
pub(super) struct Job {
    pub(super) prompts: Vec<Prompt>,
    /// The candidates that have neither ended nor lost their reader, by prompt and candidate.
    pub(super) sequences: Vec<Sequence>,
}

impl Job {
    /// A request of these prompts, each with its candidates. Every prompt and its `max_tokens` fit
    /// the context and need the model.
    pub(super) fn new(
        prompts: Vec<(Generation, Vec<EventSender>)>,
        max_run_ahead_tokens: usize,
    ) -> Self {
        let run_ahead = RunAhead::new(max_run_ahead_tokens);
        let mut job = Self {
            prompts: Vec::with_capacity(prompts.len()),
            sequences: Vec::new(),
        };
        for (index, (generation, senders)) in prompts.into_iter().enumerate() {
            let generation = Rc::new(generation);
            for (candidate, sender) in senders.into_iter().enumerate() {
                let generation = generation.clone();
                let candidate = candidate as u32;
                let sequence = Sequence::new(index, generation, candidate, sender, run_ahead);
                job.sequences.push(sequence);
            }
            job.prompts.push(Prompt::new(generation));
        }
        job
    }

    /// Whether no candidate is left, cancelled ones not counted.
    pub(super) fn is_over(&self) -> bool {
        self.sequences.iter().all(|it| it.choice.is_closed())
    }

    /// Lets go of candidates that have ended or lost their reader, and of prompts that nobody waits
    /// for; their pages are free at once, or kept for others.
    pub(super) fn purge(&mut self, pool: &mut PagePool, limits: &StepLimits) {
        let Self { prompts, sequences } = self;
        sequences.retain_mut(|sequence| {
            let prompt = &mut prompts[sequence.prompt];
            // Once there was a token the pages hold what they should.
            let is_proven = !sequence.choice.chosen().is_empty();
            let is_closed = sequence.choice.is_closed();
            // Again at the end: they were used until now.
            if is_proven && (is_closed || !prompt.is_kept) {
                let known = prompt.whole_pages(limits);
                let table = match sequence.memory.pages.is_empty() {
                    true => &prompt.memory.pages,
                    false => &sequence.memory.pages,
                };
                pool.keep(table, known);
                prompt.shared_pages = prompt.shared_pages.max(known.len() / limits.page_tokens);
                prompt.is_kept = true;
            }
            if is_closed {
                pool.release(&mut sequence.memory.pages);
            }
            !is_closed
        });
        for (index, prompt) in self.prompts.iter_mut().enumerate() {
            let is_waited_for = |it: &Sequence| it.prompt == index && !it.is_started;
            if !self.sequences.iter().any(is_waited_for) {
                pool.release(&mut prompt.memory.pages);
                prompt.outcome = None;
            }
        }
    }

    /// Fails every candidate.
    pub(super) fn fail(&self, error: &Error) {
        for sequence in &self.sequences {
            sequence.choice.fail(error.clone());
        }
    }

    /// What the request holds and can come to hold.
    ///
    /// The candidates of a prompt that hold no page yet count as one: at worst they run one after
    /// another, the partly filled last page of the prompt passing from one to the next.
    pub(super) fn claims(&self, pool: &PagePool) -> Vec<GroupClaim> {
        let prompts = self.prompts.iter().enumerate();
        let groups = prompts.map(|(index, prompt)| {
            let shared = prompt.shared_pages;
            let claim = |held: usize| Claim {
                held: held.saturating_sub(shared),
                most: prompt.most_pages(pool).saturating_sub(shared),
            };
            let sequences = || self.sequences.iter().filter(|it| it.prompt == index);
            let tables = || {
                sequences()
                    .map(|it| &it.memory.pages)
                    .filter(|it| !it.is_empty())
            };
            let mut members: Vec<Claim> = tables().map(|it| claim(it.len())).collect();
            if sequences().any(|it| it.memory.pages.is_empty()) {
                let is_lent = prompt.tail().is_some_and(|tail| pool.is_shared(tail));
                members.push(claim(prompt.memory.pages.len() - usize::from(is_lent)));
            }
            // All of them list the same ones.
            let table = tables().next().unwrap_or(&prompt.memory.pages);
            let shared = table.iter().take(shared).copied().collect();
            GroupClaim { shared, members }
        });
        groups.filter(|group| !group.members.is_empty()).collect()
    }
}
