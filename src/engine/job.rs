//! One submitted request: its prompts and their candidates, and the memory they hold. `plan` decides
//! what is done next, `execute` does it.

use std::rc::Rc;

use super::banker::{Amount, Claim, GroupClaim};
use super::clock::TimeLimit;
use super::events::{self, EventBudget, EventSender, Events};
use super::generation::Generation;
use super::limits::StepLimits;
use super::patience::Patience;
use super::pool::MemoryPool;
use super::prefill::Prefill;
use super::preparation;
use super::prompt::Prompt;
use super::run_ahead::RunAhead;
use super::semaphore::Permit;
use super::sequence::Sequence;
use crate::Error;

/// A request that waits or runs.
pub(super) struct Job {
    pub(super) prompts: Vec<Prefill>,
    /// The candidates that have neither ended nor lost their reader, by prompt and candidate.
    pub(super) sequences: Vec<Sequence>,
    /// The events of a part of a preparation, which have no reader and do not count as active.
    unread: Option<Events>,
    time_limit: Option<TimeLimit>,
    pub(super) patience: Patience,
    /// The memory of its images, until it is admitted.
    pub(super) held: Option<Permit>,
}

impl Job {
    /// A request of these prompts, each with its candidates. Every prompt and its `max_tokens` fit
    /// the context and need the model.
    pub(super) fn new(
        prompts: Vec<(Generation, Vec<EventSender>)>,
        max_run_ahead_tokens: usize,
        time_limit: Option<TimeLimit>,
    ) -> Self {
        let run_ahead = RunAhead::new(max_run_ahead_tokens);
        let mut job = Self {
            prompts: Vec::with_capacity(prompts.len()),
            sequences: Vec::new(),
            unread: None,
            time_limit,
            patience: Patience::default(),
            held: None,
        };
        for (index, (generation, senders)) in prompts.into_iter().enumerate() {
            let generation = Rc::new(generation);
            for (candidate, sender) in senders.into_iter().enumerate() {
                let generation = generation.clone();
                let candidate = candidate as u32;
                let sequence = Sequence::new(index, generation, candidate, sender, run_ahead);
                job.sequences.push(sequence);
            }
            job.prompts.push(Prefill::new(generation));
        }
        job
    }

    /// A request for the pages of a prompt that no request has yet.
    pub(super) fn preparation(part: Prompt) -> Self {
        // A token, the end and the place reserved for it.
        const MAX_UNREAD: usize = 3;
        let (sender, events) = events::channel(&Rc::default(), &EventBudget::new(MAX_UNREAD));
        let prompts = vec![(preparation::generation(part), vec![sender])];
        Self {
            unread: Some(events),
            ..Self::new(prompts, 1, None)
        }
    }

    /// Whether it is a part of a preparation.
    pub(super) fn is_preparation(&self) -> bool {
        self.unread.is_some()
    }

    /// Gives a part of a preparation up: the next purge releases it.
    pub(super) fn drop_preparation(&mut self) {
        self.unread = None;
    }

    /// Whether no candidate is left, cancelled ones not counted.
    pub(super) fn is_over(&self) -> bool {
        self.sequences.iter().all(|it| it.candidate.is_closed())
    }

    /// Whether it waits for its reader: a candidate has no room for its next event, and none that has started has any.
    pub(super) fn is_paused(&self) -> bool {
        let is_full = |it: &Sequence| it.candidate.room() == 0;
        let mut sequences = self.sequences.iter();
        sequences.clone().any(is_full) && sequences.all(|it| !it.is_started || is_full(it))
    }

    /// The error that ends it now, if there is one.
    pub(super) fn end(&self, now_ms: u64) -> Option<Error> {
        let is_past = |end_ms: u64| end_ms <= now_ms;
        if let Some(limit) = self.time_limit.filter(|it| is_past(it.end_ms)) {
            return Some(limit.error());
        }
        let has_stalled = self.patience.end_ms().is_some_and(is_past) && self.is_paused();
        has_stalled.then_some(Error::StalledReader)
    }

    /// The time when it ends unless something happens before.
    pub(super) fn end_ms(&self) -> Option<u64> {
        let limit = self.time_limit.map(|it| it.end_ms);
        [limit, self.patience.end_ms()].into_iter().flatten().min()
    }

    /// The number of candidates that take places in a batch, or will.
    pub(super) fn open_sequences(&self) -> usize {
        let sequences = self.sequences.iter();
        sequences.filter(|it| !it.candidate.is_closed()).count()
    }

    /// Releases candidates that have ended or lost their reader, and prompts that no candidate
    /// waits for. Their memory is free at once; pages may stay cached.
    pub(super) fn purge(&mut self, pool: &mut MemoryPool, limits: &StepLimits) {
        let Self {
            prompts, sequences, ..
        } = self;
        sequences.retain_mut(|sequence| {
            let prompt = &mut prompts[sequence.prompt];
            // The first token shows that the prompt was fed without an error.
            let is_proven = !sequence.candidate.chosen().is_empty();
            let is_closed = sequence.candidate.is_closed();
            // Pages are kept again at the end, to mark them as recently used.
            if is_proven && (is_closed || !prompt.is_kept) {
                let whole_pages = prompt.whole_pages(limits);
                let table = match sequence.memory.pages.is_empty() {
                    true => &prompt.memory.pages,
                    false => &sequence.memory.pages,
                };
                pool.keep(table, prompt.page_keys(whole_pages, limits));
                prompt.shared_pages = prompt.shared_pages.max(whole_pages);
                prompt.is_kept = true;
            }
            if is_closed {
                pool.release(&mut sequence.memory);
            }
            !is_closed
        });
        for (index, prompt) in self.prompts.iter_mut().enumerate() {
            let is_waited_for = |it: &Sequence| it.prompt == index && !it.is_started;
            if !self.sequences.iter().any(is_waited_for) {
                pool.release(&mut prompt.memory);
                prompt.outcome = None;
            }
        }
    }

    /// Fails every candidate.
    pub(super) fn fail(&self, error: &Error) {
        for sequence in &self.sequences {
            sequence.candidate.fail(error.clone());
        }
    }

    /// The memory that the request holds and may come to hold.
    ///
    /// The candidates of a prompt that hold no memory yet count as one: at worst they run one after
    /// another, and the partly filled last page of the prompt passes from one to the next. A state is
    /// not passed on: all candidates but the last need a copy in addition to the prompt's own state.
    pub(super) fn claims(&self, pool: &MemoryPool) -> Vec<GroupClaim> {
        let prompts = self.prompts.iter().enumerate();
        let groups = prompts.map(|(index, prompt)| {
            let shared = prompt.shared_pages;
            let most = prompt.most(pool);
            let claim = |pages: usize, states: usize, most_states: usize| Claim {
                held: Amount {
                    pages: pages.saturating_sub(shared),
                    states,
                },
                most: Amount {
                    pages: most.pages.saturating_sub(shared),
                    states: most_states,
                },
            };
            let sequences = || self.sequences.iter().filter(|it| it.prompt == index);
            let with_memory = || {
                let memories = sequences().map(|it| &it.memory);
                memories.filter(|it| !it.pages.is_empty())
            };
            let members = with_memory()
                .map(|it| claim(it.pages.len(), usize::from(it.state.is_some()), most.states));
            let mut members: Vec<Claim> = members.collect();
            let waiting = sequences().count() - members.len();
            if waiting > 0 {
                let is_lent = prompt.tail().is_some_and(|tail| pool.is_shared(tail));
                let pages = prompt.memory.pages.len() - usize::from(is_lent);
                let copies = match prompt.is_continued() && waiting > 1 {
                    true => most.states,
                    false => 0,
                };
                let states = usize::from(prompt.memory.state.is_some());
                members.push(claim(pages, states, most.states + copies));
            }
            // All tables list the same shared pages.
            let table = with_memory().next().unwrap_or(&prompt.memory);
            let shared = table.pages.iter().take(shared).copied().collect();
            GroupClaim { shared, members }
        });
        groups.filter(|group| !group.members.is_empty()).collect()
    }
}
