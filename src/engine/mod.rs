//! Token ids in, token ids out: scheduler, sequences, KV pages. Never sees text or JSON.
//!
//! | file | part |
//! |---|---|
//! | `generation`, `event` | what comes in, what goes out |
//! | `handle`, `events` | the door: submit, and the bounded stream of events to one reader |
//! | `shared`, `wake` | what both sides of the door share; sleeping and giving way |
//! | `run`, `change` | the loop: one step of the model at a time; changes to the model in between |
//! | `scheduler`, `job` | the running requests; one of them |
//! | `pages`, `prefix_cache` | the KV pages; what those hold that are kept for prompts to come |
//! | `plan`, `step` | what is done next, for one request or several at once; doing it |
//! | `prompt` | feeding a prompt, once for all its candidates |
//! | `sequence`, `choice` | one candidate: its pages; its tokens, constraint, end and events |
//! | `lone`, `run_ahead` | a candidate by itself |
//! | `model` | the contract with a model |

pub mod event;
pub mod generation;
pub mod model;

mod change;
mod choice;
mod events;
mod handle;
mod job;
mod limits;
mod lone;
mod pages;
mod plan;
mod prefix_cache;
mod prompt;
mod run;
mod run_ahead;
mod scheduler;
mod sequence;
mod shared;
mod step;
mod wake;

#[cfg(test)]
mod tests;

pub use change::ModelAccess;
pub use events::Events;
pub use handle::EngineHandle;
pub use limits::EngineLimits;
pub use model::{CausalModel, Chooser, ModelLimits, Row, RowSampler, SequenceMemory, StepOutput};
pub use run::Engine;
