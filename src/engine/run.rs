//! The engine's loop: takes planned steps from the scheduler to the model, one at a time.

use std::rc::Rc;

use super::change::{Changes, ModelAccess};
use super::handle::EngineHandle;
use super::limits::{EngineLimits, StepLimits};
use super::model::CausalModel;
use super::pool::MemoryPool;
use super::scheduler::Scheduler;
use super::shared::Shared;
use super::wake::yield_now;
use crate::Result;

/// Runs submitted requests on one model. Single-threaded: [`Engine::run`] is a task beside those
/// that submit through an [`EngineHandle`] and read [`super::Events`].
pub struct Engine<M: CausalModel> {
    model: M,
    scheduler: Scheduler,
    changes: Rc<Changes<M>>,
}

impl<M: CausalModel> Engine<M> {
    /// An engine and its first handle; nothing happens until [`Engine::run`] is polled.
    pub fn new(model: M, limits: EngineLimits) -> (Self, EngineHandle) {
        let limits = limits.at_least_minimal();
        let shared = Rc::new(Shared::default());
        let sizes = model.limits();
        let step_limits = StepLimits::new(&limits, &sizes);
        let pool = MemoryPool::new(&sizes, limits.max_cached_pages);
        let handle = EngineHandle::new(shared.clone(), limits, sizes);
        let scheduler = Scheduler::new(shared, step_limits, pool);
        let engine = Self {
            model,
            scheduler,
            changes: Rc::default(),
        };
        (engine, handle)
    }

    /// Access to the model between requests.
    pub fn model_access(&self) -> ModelAccess<M>
    where
        M: 'static,
    {
        ModelAccess::new(&self.changes, self.scheduler.shared().clone())
    }

    /// Runs until all handles are dropped and all requests have ended. Dropping the future stops
    /// the engine: running and waiting requests fail, as does every later submit.
    ///
    /// # Errors
    /// [`crate::Error::DeviceLost`]: the device is gone, everything has failed.
    pub async fn run(mut self) -> Result<()> {
        loop {
            self.scheduler.purge();
            if self.scheduler.is_idle() && self.make_change().await? {
                continue;
            }
            let Some(step) = self.scheduler.next_step() else {
                if self.scheduler.is_done() {
                    return Ok(());
                }
                let shared = self.scheduler.shared().clone();
                shared.activity.wake.raised().await;
                continue;
            };
            let jobs = self.scheduler.jobs();
            if let Err(error) = step.run(&mut self.model, jobs).await {
                self.scheduler.shut_down(&error);
                return Err(error);
            }
            // Memory of requests that ended or were cancelled during the step is free before the
            // next step.
            self.scheduler.purge();
            yield_now().await;
        }
    }

    /// Makes the change that has waited longest. Returns false if none waits.
    async fn make_change(&mut self) -> Result<bool> {
        let change = self.changes.borrow_mut().pop_front();
        let Some(change) = change else {
            return Ok(false);
        };
        if let Some(error) = change(&mut self.model).await {
            self.scheduler.shut_down(&error);
            return Err(error);
        }
        // Cached pages were computed by the model before the change.
        self.scheduler.forget_prompts();
        let waiting = &self.scheduler.shared().changes;
        waiting.set(waiting.get() - 1);
        Ok(true)
    }
}
