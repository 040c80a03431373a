//! Which request runs next, and who holds the pages. Synchronous; never touches the model.

use std::rc::Rc;

use super::job::Job;
use super::pages::{Grants, PagePool};
use super::plan::{Step, StepLimits};
use super::shared::Shared;
use crate::Error;

/// The running requests, oldest first, and the pages. The oldest that can run does; a waiting one
/// is admitted when none of them can: their readers lag, or they wait for pages.
pub(super) struct Scheduler {
    shared: Rc<Shared>,
    limits: StepLimits,
    pages: PagePool,
    running: Vec<Job>,
}

impl Scheduler {
    /// `pages` hold at least a whole context.
    pub(super) fn new(shared: Rc<Shared>, limits: StepLimits, pages: PagePool) -> Self {
        let scheduler = Self {
            shared,
            limits,
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

    /// Lets go of what has ended or was cancelled; its pages are free.
    pub(super) fn purge(&mut self) {
        self.shared.purge_queue();
        let Self { running, pages, .. } = self;
        running.retain_mut(|job| {
            job.purge(pages);
            !job.is_over()
        });
        self.publish();
    }

    /// The next step and the request to run it on, the pages already in its block tables; `None` if
    /// all have to wait.
    pub(super) fn next(&mut self) -> Option<(usize, Step)> {
        let planned = (0..self.running.len()).find_map(|at| Some((at, self.plan(at)?)));
        let planned = planned.or_else(|| self.admit());
        self.publish();
        planned
    }

    pub(super) fn job(&mut self, index: usize) -> &mut Job {
        &mut self.running[index]
    }

    /// Fails everything that runs or waits, and every later submit.
    pub(super) fn shut_down(&mut self, error: &Error) {
        self.shared
            .down
            .borrow_mut()
            .get_or_insert_with(|| error.clone());
        // Taken out first: a reader that is woken may come back to the queue.
        let queue = std::mem::take(&mut *self.shared.queue.borrow_mut());
        for job in self.running.iter().chain(&queue) {
            job.fail(error);
        }
        self.purge();
    }

    fn plan(&mut self, index: usize) -> Option<Step> {
        let others = self.running.iter().enumerate();
        let others = others.filter(|&(other, _)| other != index);
        let others = others
            .flat_map(|(_, job)| job.claims(&self.pages))
            .collect();
        let mut grants = Grants {
            pool: &mut self.pages,
            others,
        };
        self.running[index].next_step(&mut grants, self.limits)
    }

    /// Takes the first waiting request in if it can run.
    fn admit(&mut self) -> Option<(usize, Step)> {
        let mut job = self.shared.queue.borrow_mut().pop_front()?;
        // Some of its candidates may have been cancelled.
        job.purge(&mut self.pages);
        let index = self.running.len();
        self.running.push(job);
        let step = self.plan(index);
        if step.is_none() {
            // It holds nothing yet.
            let job = self.running.pop()?;
            self.shared.queue.borrow_mut().push_front(job);
        }
        Some((index, step?))
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
