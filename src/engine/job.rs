//! One submitted request: its prompts and their candidates. Knows neither other requests nor when
//! it runs; `plan` says what it does next, `step` does it.

use std::rc::Rc;

use super::events::EventSender;
use super::generation::Generation;
use super::pages::{Claim, GroupClaim, PagePool};
use super::prompt::Prompt;
use super::run_ahead::RunAhead;
use super::sequence::Sequence;
use crate::Error;

/// A request that waits or runs.
pub(super) struct Job {
    pub(super) prompts: Vec<Prompt>,
    /// The candidates that have neither ended nor lost their reader, by prompt and candidate.
    pub(super) sequences: Vec<Sequence>,
    /// Only where the request is one sequence: how far that runs ahead. Others are batched to the
    /// last, so that no result depends on which sequences happen to be left.
    pub(super) lone: Option<RunAhead>,
    /// Batches run so far.
    pub(super) batches: u64,
}

impl Job {
    /// A request of these prompts, each with its candidates; `max_run_ahead_tokens` if it is a
    /// single sequence. Every prompt and its `max_tokens` fit the context and need the model.
    pub(super) fn new(
        prompts: Vec<(Generation, Vec<EventSender>)>,
        max_run_ahead_tokens: Option<usize>,
    ) -> Self {
        let mut job = Self {
            prompts: Vec::with_capacity(prompts.len()),
            sequences: Vec::new(),
            lone: max_run_ahead_tokens.map(RunAhead::new),
            batches: 0,
        };
        for (index, (generation, senders)) in prompts.into_iter().enumerate() {
            let generation = Rc::new(generation);
            for (candidate, sender) in senders.into_iter().enumerate() {
                let generation = generation.clone();
                let sequence = Sequence::new(index, generation, candidate as u32, sender);
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
    /// for; their pages are free at once.
    pub(super) fn purge(&mut self, pool: &mut PagePool) {
        self.sequences.retain_mut(|sequence| {
            let stays = !sequence.choice.is_closed();
            if !stays {
                pool.release(&mut sequence.kv.pages);
            }
            stays
        });
        for (index, prompt) in self.prompts.iter_mut().enumerate() {
            let is_waited_for = |it: &Sequence| it.prompt == index && !it.is_started;
            if !self.sequences.iter().any(is_waited_for) {
                pool.release(&mut prompt.kv.pages);
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
            let own = sequences()
                .map(|it| it.kv.pages.len())
                .filter(|&held| held > 0);
            let mut members: Vec<Claim> = own.map(claim).collect();
            if sequences().any(|it| it.kv.pages.is_empty()) {
                let is_lent = prompt.tail().is_some_and(|tail| pool.is_shared(tail));
                members.push(claim(prompt.kv.pages.len() - usize::from(is_lent)));
            }
            GroupClaim { shared, members }
        });
        groups.filter(|group| !group.members.is_empty()).collect()
    }
}
