//! Token ids in, token ids out: scheduler, sequences, KV pages. Never sees text or JSON.
//!
//! | file | part |
//! |---|---|
//! | `generation`, `event` | what comes in, what goes out |
//! | `handle`, `events` | the door: submit, and the bounded stream of events to one reader |
//! | `shared`, `wake` | what both sides of the door share; sleeping and giving way |
//! | `run` | the loop: one step of the model at a time |
//! | `scheduler`, `pages` | who runs next, and with which KV pages |
//! | `sequence`, `run_ahead` | one running choice and its next step |

pub mod event;
pub mod generation;

mod events;
mod handle;
mod limits;
mod pages;
mod run;
mod run_ahead;
mod scheduler;
mod sequence;
mod shared;
mod wake;

#[cfg(test)]
mod tests;

pub use events::Events;
pub use handle::EngineHandle;
pub use limits::EngineLimits;
pub use run::Engine;
