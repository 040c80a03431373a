//! The team on native targets: threads that spin for a moment after a computation, then sleep.

use std::{
    any::Any,
    cell::UnsafeCell,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError, TryLockError,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::*},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

/// The time that a thread without work spins before it sleeps.
const SPIN: Duration = Duration::from_micros(30);

/// The gate is open for workers to join.
const OPEN: u64 = 1 << 16;
/// Workers that joined are counted below this bit.
const JOINED: u64 = OPEN - 1;
/// The number of the computation is counted from this bit.
const RUN: u64 = 1 << 17;

type Work = dyn Fn(usize) + Sync;

/// A team of threads, of which the caller of [`run`](Self::run) is one.
pub struct Team {
    shared: Arc<Shared>,
    workers: Vec<JoinHandle<()>>,
    /// Held by the caller that has the workers.
    turn: Mutex<()>,
}

struct Shared {
    /// The number of the computation, whether it is open, and how many workers are in it. `work` and `parts` change
    /// only while the gate is closed and no worker is inside.
    gate: AtomicU64,
    work: UnsafeCell<Option<(*const Work, usize)>>,
    next: AtomicUsize,
    panic: Mutex<Option<Box<dyn Any + Send>>>,
    sleepers: AtomicUsize,
    stop: AtomicBool,
    sleep: Mutex<()>,
    start: Condvar,
    done: Condvar,
    spin: Duration,
}

// SAFETY: the pointer in `work` is to a `Sync` function, which lives while workers are inside the gate.
unsafe impl Send for Shared {}
// SAFETY: as above; `work` is written only while no worker is inside the gate.
unsafe impl Sync for Shared {}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Team {
    /// Starts `threads - 1` threads: the caller of [`run`](Self::run) is one of the team. There may be fewer if the
    /// system has no more.
    pub fn new(threads: usize) -> Team {
        // Where threads share a core, one that spins keeps another from working.
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let shared = Arc::new(Shared {
            gate: AtomicU64::new(0),
            work: UnsafeCell::new(None),
            next: AtomicUsize::new(0),
            panic: Mutex::new(None),
            sleepers: AtomicUsize::new(0),
            stop: AtomicBool::new(false),
            sleep: Mutex::new(()),
            start: Condvar::new(),
            done: Condvar::new(),
            spin: if threads <= cores {
                SPIN
            } else {
                Duration::ZERO
            },
        });
        let mut workers = Vec::new();
        for i in 1..threads.min(JOINED as usize) {
            let shared = shared.clone();
            let builder = thread::Builder::new().name(format!("inpage-cpu-{i}"));
            match builder.spawn(move || shared.serve()) {
                Ok(worker) => workers.push(worker),
                Err(_) => break,
            }
        }
        Team {
            shared,
            workers,
            turn: Mutex::new(()),
        }
    }

    /// The number of threads, with the caller.
    pub fn threads(&self) -> usize {
        self.workers.len() + 1
    }

    /// Calls `work(part)` for each part in `0..parts`; threads take parts as they finish others. Returns when all are
    /// done. If a part panics, no further parts are started and the panic is propagated. While the team is busy with
    /// another computation, also one that calls this from a part, the caller computes all parts itself.
    pub fn run(&self, parts: usize, work: &(dyn Fn(usize) + Sync)) {
        let turn = match self.turn.try_lock() {
            Ok(turn) => Some(turn),
            Err(TryLockError::Poisoned(turn)) => Some(turn.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        };
        if turn.is_none() || self.workers.is_empty() || parts < 2 {
            return (0..parts).for_each(work);
        }
        self.shared.run(parts, work);
        drop(turn);
        let panic = lock(&self.shared.panic).take();
        if let Some(panic) = panic {
            resume_unwind(panic);
        }
    }
}

impl Drop for Team {
    fn drop(&mut self) {
        self.shared.stop.store(true, SeqCst);
        drop(lock(&self.shared.sleep));
        self.shared.start.notify_all();
        for worker in self.workers.drain(..) {
            // A worker panics only if this module is wrong; its parts' panics are caught.
            let _ = worker.join();
        }
    }
}

impl Shared {
    /// The caller's side of a computation.
    fn run(&self, parts: usize, work: &(dyn Fn(usize) + Sync)) {
        // SAFETY: only the lifetime changes. Workers call `work` only inside the gate, and this function returns
        // after all left the closed gate.
        let work: *const Work =
            unsafe { std::mem::transmute::<&(dyn Fn(usize) + Sync), &'static Work>(work) };
        // SAFETY: the gate is closed and nobody is inside.
        unsafe { *self.work.get() = Some((work, parts)) };
        self.next.store(0, Relaxed);
        let gate = self.gate.load(Relaxed);
        self.gate.store(((gate / RUN + 1) * RUN) | OPEN, SeqCst);
        // A worker that goes to sleep is counted before it looks at the gate for the last time.
        let sleepers = self.sleepers.load(SeqCst).min(parts - 1);
        if sleepers > 0 {
            drop(lock(&self.sleep));
            (0..sleepers).for_each(|_| self.start.notify_one());
        }
        self.take_parts(work, parts);
        self.gate.fetch_and(!OPEN, SeqCst);
        self.wait(|| self.gate.load(SeqCst) & JOINED == 0, &self.done);
    }

    /// Computes parts until none is left. Panics are kept for the caller.
    fn take_parts(&self, work: *const Work, parts: usize) {
        // SAFETY: `run` waits for this function on all threads before the work ends.
        let work = unsafe { &*work };
        let result = catch_unwind(AssertUnwindSafe(|| {
            loop {
                let part = self.next.fetch_add(1, Relaxed);
                if part >= parts {
                    break;
                }
                work(part);
            }
        }));
        if let Err(panic) = result {
            // Half of the range is as good as none left, and additions to it do not overflow.
            self.next.store(usize::MAX / 2, Relaxed);
            lock(&self.panic).get_or_insert(panic);
        }
    }

    /// Spins for a moment, then sleeps, until `ready`.
    fn wait(&self, ready: impl Fn() -> bool, signal: &Condvar) {
        if ready() {
            return;
        }
        let begin = Instant::now();
        while begin.elapsed() < self.spin {
            for _ in 0..32 {
                if ready() {
                    return;
                }
                std::hint::spin_loop();
            }
        }
        let mut sleep = lock(&self.sleep);
        while !ready() {
            sleep = signal.wait(sleep).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Whether there is a computation after number `seen` to join, or the team ends.
    fn is_called(&self, seen: u64) -> bool {
        let gate = self.gate.load(SeqCst);
        (gate & OPEN != 0 && gate / RUN != seen) || self.stop.load(SeqCst)
    }

    /// A worker: waits for computations and joins them until the team ends.
    fn serve(&self) {
        let mut seen = 0;
        loop {
            self.sleep_until_called(seen);
            if self.stop.load(SeqCst) {
                return;
            }
            let gate = self.gate.load(SeqCst);
            if gate & OPEN == 0 || gate / RUN == seen {
                continue;
            }
            let joined = self.gate.compare_exchange(gate, gate + 1, SeqCst, SeqCst);
            if joined.is_err() {
                continue;
            }
            seen = gate / RUN;
            // SAFETY: this worker is inside the gate.
            if let Some((work, parts)) = unsafe { *self.work.get() } {
                self.take_parts(work, parts);
            }
            let before = self.gate.fetch_sub(1, SeqCst);
            if before & (OPEN | JOINED) == 1 {
                // The last one out of a closed gate. The caller looks at the gate while it holds the lock.
                drop(lock(&self.sleep));
                self.done.notify_one();
            }
        }
    }

    fn sleep_until_called(&self, seen: u64) {
        let begin = Instant::now();
        while begin.elapsed() < self.spin {
            for _ in 0..32 {
                if self.is_called(seen) {
                    return;
                }
                std::hint::spin_loop();
            }
        }
        let mut sleep = lock(&self.sleep);
        self.sleepers.fetch_add(1, SeqCst);
        while !self.is_called(seen) {
            sleep = self
                .start
                .wait(sleep)
                .unwrap_or_else(PoisonError::into_inner);
        }
        self.sleepers.fetch_sub(1, SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_part_is_done_once_in_every_run() {
        for threads in 1..=8 {
            let team = Team::new(threads);
            assert_eq!(team.threads(), threads);
            let counts: Vec<AtomicUsize> = (0..17).map(|_| AtomicUsize::new(0)).collect();
            let mut expected = [0; 17];
            for run in 0..400 {
                let parts = run % 18;
                team.run(parts, &|part| {
                    counts[part].fetch_add(1, Relaxed);
                });
                expected[..parts].iter_mut().for_each(|count| *count += 1);
                // All parts are done when `run` returns.
                for (count, expected) in counts.iter().zip(expected) {
                    assert_eq!(count.load(Relaxed), expected);
                }
                if run % 100 == 0 {
                    thread::sleep(2 * SPIN);
                }
            }
        }
    }

    #[test]
    fn panics_are_propagated_and_the_team_goes_on() {
        for threads in 1..=8 {
            let team = Team::new(threads);
            for run in 0..50 {
                let bad = run % 7;
                let result = catch_unwind(AssertUnwindSafe(|| {
                    team.run(7, &|part| {
                        if part == bad {
                            // Without the message that a panic prints.
                            resume_unwind(Box::new(part));
                        }
                    });
                }));
                assert_eq!(*result.unwrap_err().downcast::<usize>().unwrap(), bad);
                let done = AtomicUsize::new(0);
                team.run(5, &|part| {
                    done.fetch_add(part, Relaxed);
                });
                assert_eq!(done.into_inner(), 10);
            }
        }
    }

    #[test]
    fn runs_within_runs_and_beside_runs_are_done() {
        let team = Team::new(3);
        let done = AtomicUsize::new(0);
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    for _ in 0..50 {
                        team.run(4, &|_| {
                            team.run(3, &|_| {
                                done.fetch_add(1, Relaxed);
                            });
                        });
                    }
                });
            }
        });
        assert_eq!(done.into_inner(), 3 * 50 * 4 * 3);
    }

    #[test]
    fn an_idle_team_ends() {
        for _ in 0..20 {
            let team = Team::new(4);
            team.run(2, &|_| ());
            drop(team);
        }
    }
}
