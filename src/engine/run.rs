//! The engine's loop: takes planned steps from the scheduler to the model, one at a time, and sleeps between them.

use std::future::Future;
use std::pin::{Pin, pin};
use std::rc::Rc;

use futures_util::future::{Either, select};

use super::change::{Changes, ModelAccess};
use super::clock::Clock;
use super::handle::EngineHandle;
use super::limits::{EngineLimits, StepLimits};
use super::model::CausalModel;
use super::patience::PATIENCE_MS;
use super::planned_step::PlannedStep;
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
    clock: Rc<dyn Clock>,
    /// The timer that was set last, and when it completes.
    timer: Option<(u64, Timer)>,
}

type Timer = Pin<Box<dyn Future<Output = ()>>>;

impl<M: CausalModel> Engine<M> {
    /// An engine and its first handle; nothing happens until [`Engine::run`] is polled.
    pub fn new(model: M, limits: EngineLimits, clock: Rc<dyn Clock>) -> (Self, EngineHandle) {
        let limits = limits.at_least_minimal();
        let shared = Rc::new(Shared::default());
        let sizes = model.limits();
        let step_limits = StepLimits::new(&limits, &sizes, model.verified_rows(), model.drafts());
        let pool = MemoryPool::new(&sizes, limits.max_cached_pages);
        let handle = EngineHandle::new(shared.clone(), limits, sizes);
        let scheduler = Scheduler::new(shared, step_limits, pool);
        let engine = Self {
            model,
            scheduler,
            changes: Rc::default(),
            clock,
            timer: None,
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
            let now_ms = self.clock.now_ms();
            self.scheduler.end_late(now_ms);
            self.scheduler.purge();
            if self.scheduler.is_idle() && self.make_change().await? {
                continue;
            }
            let Some(step) = self.scheduler.next_step(now_ms) else {
                if self.scheduler.is_done() {
                    return Ok(());
                }
                self.sleep(now_ms).await;
                continue;
            };
            if let Err(error) = self.run_step(step, now_ms).await {
                self.scheduler.shut_down(&error);
                return Err(error);
            }
            // Memory of requests that ended or were cancelled during the step is free before the
            // next step.
            self.scheduler.purge();
            yield_now().await;
        }
    }

    async fn run_step(&mut self, step: PlannedStep, now_ms: u64) -> Result<()> {
        let work = self.scheduler.work_of(&step);
        let spare = match &step {
            PlannedStep::Verify { spare, .. } => *spare,
            _ => None,
        };
        let jobs = self.scheduler.jobs();
        let served: Vec<usize> = (0..jobs.len()).filter(|job| step.is_for(*job)).collect();
        step.prepare(&mut self.model, jobs).await?;
        let begun_ms = self.clock.monotonic_ms();
        let result = step.run(&mut self.model, jobs).await;
        let step_ms = self.clock.monotonic_ms() - begun_ms;
        let duration_ms = self.clock.now_ms().saturating_sub(now_ms);
        self.scheduler.restore_patience(&served, duration_ms);
        if let Some(slot) = spare {
            self.scheduler.pool.states.give_back(slot);
        }
        if let Some(work) = work {
            self.scheduler.costs.note(work, step_ms);
        }
        result
    }

    /// Sleeps until it is woken, or until a request may have to end.
    async fn sleep(&mut self, now_ms: u64) {
        let shared = self.scheduler.shared().clone();
        let woken = shared.activity.wake.raised();
        let Some(end_ms) = self.scheduler.next_end_ms() else {
            return woken.await;
        };
        // A timer may be a thread, so it is not set with every wake, and not for long.
        let set = self.timer.take().filter(|(at_ms, _)| *at_ms <= end_ms);
        let (at_ms, timer) = set.unwrap_or_else(|| {
            let left_ms = end_ms.saturating_sub(now_ms).clamp(1, PATIENCE_MS);
            (now_ms + left_ms, self.clock.sleep_ms(left_ms as u32))
        });
        match select(pin!(woken), timer).await {
            Either::Left(((), timer)) => self.timer = Some((at_ms, timer)),
            // A timer may complete a little early. Readers run before the next one is set.
            Either::Right(_) => yield_now().await,
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
