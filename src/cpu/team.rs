//! A team of threads that divides the parts of one computation, natively. On wasm32 the caller computes all parts. What
//! a part computes is up to the caller; results must not depend on who computes which part.

#[cfg(not(target_arch = "wasm32"))]
#[path = "team/threads.rs"]
mod threads;
#[cfg(not(target_arch = "wasm32"))]
pub use threads::Team;

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
