//! The running requests and the memory: which requests are admitted and released. Synchronous; never
//! calls the model.

use std::rc::Rc;

use super::costs::Costs;
use super::job::Job;
use super::limits::StepLimits;
use super::planned_step::SequenceIndex;
use super::pool::MemoryPool;
use super::shared::Shared;
use crate::Error;

/// The running requests, oldest first, and the memory; `plan` decides what they do next.
pub(super) struct Scheduler {
    pub(super) shared: Rc<Shared>,
    pub(super) limits: StepLimits,
    pub(super) pool: MemoryPool,
    pub(super) running: Vec<Job>,
    /// Number of decode turns so far.
    pub(super) turns: u64,
    /// Whether the last step fed a prompt while sequences of other requests could continue.
    pub(super) decode_is_due: bool,
    /// Whether the last plan lacked memory for something.
    pub(super) lacks_memory: bool,
    pub(super) costs: Costs,
}

impl Scheduler {
    /// `pool` holds at least a whole context.
    pub(super) fn new(shared: Rc<Shared>, limits: StepLimits, pool: MemoryPool) -> Self {
        let scheduler = Self {
            shared,
            limits,
            pool,
            running: Vec::new(),
            turns: 0,
            decode_is_due: false,
            lacks_memory: false,
            costs: Costs::default(),
        };
        scheduler.publish();
        scheduler
    }

    pub(super) fn shared(&self) -> &Rc<Shared> {
        &self.shared
    }

    /// Whether nothing runs, nothing waits and no handle remains to submit a request.
    pub(super) fn is_done(&self) -> bool {
        self.running.is_empty()
            && self.shared.queue.borrow().is_empty()
            && self.shared.abandoned.get()
    }

    /// Whether no admitted request is still running.
    pub(super) fn is_idle(&self) -> bool {
        self.running.is_empty()
    }

    /// Drops the cached prompts, and those that were to be cached. No request may be running.
    pub(super) fn forget_prompts(&mut self) {
        self.shared.preparations.borrow_mut().clear();
        self.pool.forget();
        self.publish();
    }

    /// Releases requests that have ended or were cancelled, and frees their memory.
    pub(super) fn purge(&mut self) {
        self.shared.purge_queue();
        if !self.shared.queue.borrow().is_empty() {
            self.interrupt_preparation();
        }
        let Self {
            running,
            pool,
            limits,
            ..
        } = self;
        running.retain_mut(|job| {
            job.purge(pool, limits);
            !job.is_over()
        });
        self.publish();
    }

    /// Fails the requests whose time is up, and those whose readers have stalled.
    pub(super) fn end_late(&self, now_ms: u64) {
        for job in &self.running {
            if let Some(error) = job.end(now_ms) {
                job.fail(&error);
            }
        }
        // Taken out first: a reader that is woken may access the queue.
        let next_late = || {
            let mut queue = self.shared.queue.borrow_mut();
            let late = queue.iter().map(|job| job.end(now_ms));
            let (at, error) = late
                .enumerate()
                .find_map(|(at, error)| Some((at, error?)))?;
            Some((queue.remove(at)?, error))
        };
        while let Some((job, error)) = next_late() {
            job.fail(&error);
        }
    }

    /// The time when the next request ends unless something happens before.
    pub(super) fn next_end_ms(&self) -> Option<u64> {
        let queue = self.shared.queue.borrow();
        self.running
            .iter()
            .chain(&*queue)
            .filter_map(Job::end_ms)
            .min()
    }

    /// Lets the patience with those requests run out that wait for their readers while others wait: for memory, or for
    /// a change of the model. `rows` can continue.
    pub(super) fn run_patience(&mut self, rows: &[SequenceIndex], now_ms: u64) {
        let changes = self.shared.changes.get() > 0;
        let queued = self.lacks_memory && !self.shared.queue.borrow().is_empty();
        let waits = |(job, it): (usize, &Job)| {
            let mut sequences = it.sequences.iter().enumerate();
            sequences.any(|(sequence, it)| {
                it.candidate.room() > 0 && !rows.contains(&SequenceIndex { job, sequence })
            })
        };
        let waiting: Vec<bool> = match self.lacks_memory {
            true => self.running.iter().enumerate().map(waits).collect(),
            false => Vec::new(),
        };
        for (index, job) in self.running.iter_mut().enumerate() {
            let mut others = waiting.iter().enumerate();
            let keeps_waiting =
                changes || queued || others.any(|(other, waits)| other != index && *waits);
            job.patience.run(keeps_waiting && job.is_paused(), now_ms);
        }
    }

    /// A step for these running requests took `duration_ms`.
    pub(super) fn restore_patience(&mut self, jobs: &[usize], duration_ms: u64) {
        for &job in jobs {
            self.running[job].patience.restore(duration_ms);
        }
    }

    pub(super) fn jobs(&mut self) -> &mut [Job] {
        &mut self.running
    }

    /// Fails everything that runs or waits, and every later submit.
    pub(super) fn shut_down(&mut self, error: &Error) {
        self.shared
            .down
            .borrow_mut()
            .get_or_insert_with(|| error.clone());
        // Taken out first: a reader that is woken may access the queue.
        let queue = std::mem::take(&mut *self.shared.queue.borrow_mut());
        self.shared.preparations.borrow_mut().clear();
        for job in self.running.iter().chain(&queue) {
            job.fail(error);
        }
        self.purge();
    }

    /// Admits the first waiting request, if there is one and no change waits for the running ones. An idle engine admits
    /// a part of a preparation otherwise.
    pub(super) fn admit(&mut self) -> bool {
        if self.shared.changes.get() > 0 {
            return false;
        }
        let waiting = self.shared.queue.borrow_mut().pop_front();
        let Some(mut job) = waiting.or_else(|| self.next_preparation()) else {
            return false;
        };
        // The images of running requests are bounded by the batch, so others may be decoded.
        job.held = None;
        // Some of its candidates may have been cancelled.
        job.purge(&mut self.pool, &self.limits);
        self.running.push(job);
        true
    }

    /// A request goes first.
    fn interrupt_preparation(&mut self) {
        for job in self.running.iter_mut().filter(|job| job.is_preparation()) {
            job.drop_preparation();
            self.shared.preparations.borrow_mut().restart();
        }
    }

    fn next_preparation(&mut self) -> Option<Job> {
        if !self.running.is_empty() || self.shared.abandoned.get() {
            return None;
        }
        let mut preparations = self.shared.preparations.borrow_mut();
        let part = preparations.next_part(&mut self.pool, &self.limits)?;
        Some(Job::preparation(part))
    }

    /// Returns the request admitted last to the queue, or drops a preparation. It holds no memory yet.
    pub(super) fn dismiss(&mut self) {
        let job = self.running.pop().filter(|job| !job.is_preparation());
        if let Some(job) = job {
            self.shared.queue.borrow_mut().push_front(job);
        }
    }

    pub(super) fn publish(&self) {
        let requests = self.running.iter().filter(|job| !job.is_preparation());
        let sequences = requests.map(Job::open_sequences).sum();
        self.shared.running_sequences.set(sequences);
        self.shared.free.set(self.pool.free());
    }
}

impl Drop for Scheduler {
    fn drop(&mut self) {
        self.shut_down(&Error::Internal("the engine was stopped".into()));
    }
}
