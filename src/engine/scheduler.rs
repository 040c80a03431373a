//! Which sequence runs next and which pages it gets. Synchronous; never touches the model.

use std::rc::Rc;

use super::EngineLimits;
use super::event::{Event, FinishReason};
use super::pages::{Claim, PagePool, is_safe};
use super::sequence::{self, Sequence, Step};
use super::shared::Shared;
use crate::Error;

/// The running sequences, oldest first, and the pages. The oldest that can run does; a waiting
/// choice is admitted when none of them can: their readers lag, or they wait for pages.
pub(super) struct Scheduler {
    shared: Rc<Shared>,
    limits: EngineLimits,
    context_tokens: usize,
    pages: PagePool,
    running: Vec<Sequence>,
}

impl Scheduler {
    /// `pages` hold at least `context_tokens`.
    pub(super) fn new(
        shared: Rc<Shared>,
        limits: EngineLimits,
        context_tokens: usize,
        pages: PagePool,
    ) -> Self {
        let scheduler = Self {
            shared,
            limits,
            context_tokens,
            pages,
            running: Vec::new(),
        };
        scheduler.publish();
        scheduler
    }

    pub(super) fn shared(&self) -> &Rc<Shared> {
        &self.shared
    }

    /// Whether nothing runs, nothing waits and nobody can submit any more.
    pub(super) fn is_done(&self) -> bool {
        self.running.is_empty()
            && self.shared.queue.borrow().is_empty()
            && self.shared.abandoned.get()
    }

    /// Drops cancelled choices and gives their pages back.
    pub(super) fn purge(&mut self) {
        self.shared.purge_queue();
        for index in (0..self.running.len()).rev() {
            if self.running[index].events.is_closed() {
                self.remove(index);
            }
        }
    }

    /// The next step, its pages already in the sequence's block table; `None` if all have to wait.
    pub(super) fn next(&mut self) -> Option<(usize, Step)> {
        let ready = (0..self.running.len()).find_map(|index| Some((index, self.prepare(index)?)));
        ready.or_else(|| {
            let index = self.admit()?;
            Some((index, self.prepare(index)?))
        })
    }

    pub(super) fn sequence(&mut self, index: usize) -> &mut Sequence {
        &mut self.running[index]
    }

    /// A choice ended by itself.
    pub(super) fn finish(&mut self, index: usize, reason: FinishReason) {
        self.remove(index).events.send(Event::Finished { reason });
    }

    /// A choice failed; the others go on.
    pub(super) fn fail(&mut self, index: usize, error: Error) {
        self.remove(index).events.send(Event::Failed(error));
    }

    /// Fails everything that runs or waits, and every later submit.
    pub(super) fn shut_down(&mut self, error: &Error) {
        self.shared
            .down
            .borrow_mut()
            .get_or_insert_with(|| error.clone());
        while !self.running.is_empty() {
            self.fail(0, error.clone());
        }
        // Taken out first: a reader that is woken may come back to the queue.
        let queue = std::mem::take(&mut *self.shared.queue.borrow_mut());
        for waiting in queue {
            waiting.events.send(Event::Failed(error.clone()));
        }
    }

    /// The step a running sequence can take now, with its pages.
    fn prepare(&mut self, index: usize) -> Option<Step> {
        let mut step = self.running[index].next_step()?;
        loop {
            let sequence = &self.running[index];
            let count = self
                .pages
                .pages_for(sequence.kv.len_tokens + step.kv_tokens());
            if self.may_hold(Some(index), count, sequence.most_kv_tokens()) {
                let granted = self.pages.grow(&mut self.running[index].kv.pages, count);
                debug_assert!(granted, "a safe state has the pages free");
                self.publish();
                return granted.then_some(step);
            }
            step = step.shorter()?;
        }
    }

    /// Moves the first waiting choice to the running ones if its first step gets its pages.
    fn admit(&mut self) -> Option<usize> {
        let prompt_tokens;
        let max_tokens;
        {
            let queue = self.shared.queue.borrow();
            let generation = &queue.front()?.generation;
            (prompt_tokens, max_tokens) = (generation.prompt.len(), generation.max_tokens);
        }
        let first = sequence::first_step_tokens(prompt_tokens, &self.limits);
        let most = sequence::most_kv_tokens(prompt_tokens, max_tokens, self.context_tokens);
        if !self.may_hold(None, self.pages.pages_for(first), most) {
            return None;
        }
        let waiting = self.shared.queue.borrow_mut().pop_front()?;
        self.running
            .push(Sequence::new(waiting, &self.limits, self.context_tokens));
        self.publish();
        Some(self.running.len() - 1)
    }

    /// Whether a sequence (`None`: a new one) may come to hold `count` pages: they are free, and
    /// every sequence can still end afterwards.
    fn may_hold(&self, index: Option<usize>, count: usize, most_kv_tokens: usize) -> bool {
        let held = index.map_or(0, |index| self.running[index].kv.pages.len());
        let more = count.saturating_sub(held);
        if more == 0 {
            return true;
        }
        let Some(free) = self.pages.free_count().checked_sub(more) else {
            return false;
        };
        let others = self
            .running
            .iter()
            .enumerate()
            .filter(|&(other, _)| Some(other) != index);
        let claims = others.map(|(_, sequence)| Claim {
            held: sequence.kv.pages.len(),
            most: self.pages.pages_for(sequence.most_kv_tokens()),
        });
        let grown = Claim {
            held: count,
            most: self.pages.pages_for(most_kv_tokens),
        };
        is_safe(free, claims.chain([grown]))
    }

    fn remove(&mut self, index: usize) -> Sequence {
        let mut sequence = self.running.remove(index);
        self.pages.release(&mut sequence.kv.pages);
        sequence.kv.len_tokens = 0;
        self.publish();
        sequence
    }

    fn publish(&self) {
        self.shared.running.set(self.running.len());
        self.shared.free_pages.set(self.pages.free_count());
    }
}

impl Drop for Scheduler {
    fn drop(&mut self) {
        self.shut_down(&Error::Internal("the engine was stopped".into()));
    }
}
