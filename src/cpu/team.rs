//! A team of threads that divides the parts of one computation, natively. On wasm32 the caller computes all parts. What
//! a part computes is up to the caller; results must not depend on who computes which part.

#[cfg(not(target_arch = "wasm32"))]
#[path = "team/threads.rs"]
mod threads;
#[cfg(not(target_arch = "wasm32"))]
pub use threads::Team;

use std::sync::OnceLock;

/// The team of the program.
static CURRENT: OnceLock<Team> = OnceLock::new();

/// Starts the team of the program with this number of threads, the caller included. The first call decides. Returns the number
/// of its threads.
pub fn start(threads: usize) -> usize {
    CURRENT.get_or_init(|| Team::new(threads)).threads()
}

/// The team of the program; the caller alone before [`start`].
pub fn current() -> &'static Team {
    static ALONE: OnceLock<Team> = OnceLock::new();
    CURRENT
        .get()
        .unwrap_or_else(|| ALONE.get_or_init(|| Team::new(1)))
}

/// The caller alone.
#[cfg(target_arch = "wasm32")]
#[derive(Debug)]
pub struct Team;

#[cfg(target_arch = "wasm32")]
impl Team {
    /// A team of one, whatever `threads` is.
    pub fn new(_threads: usize) -> Team {
        Team
    }

    /// The number of threads, with the caller.
    pub fn threads(&self) -> usize {
        1
    }

    /// Calls `work(part)` for each part in `0..parts`.
    pub fn run(&self, parts: usize, work: &(dyn Fn(usize) + Sync)) {
        (0..parts).for_each(work);
    }
}
