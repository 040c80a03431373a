//! Token ids in, token ids out: scheduler, sequences, KV pages. Never sees text or JSON.
//!
//! A file uses those above it in this table, and none below it:
//!
//! | file | part |
//! |---|---|
//! | `prompt`, `model` | what is fed; the contract with a model |
//! | `token_rules`, `draft`, `generation`, `event` | what comes in, what goes out; guesses of what comes next |
//! | `costs`, `limits`, `run_ahead`, `wake`, `semaphore` | bounds of steps; sleeping and yielding; turns |
//! | `clock`, `patience` | the time by which requests end; how long one may wait for its reader |
//! | `events` | the bounded streams of events to the reader of a request |
//! | `prefix_cache`, `states`, `banker`, `pool` | the memory: kept prompts, states, who may take more |
//! | `candidate`, `sequence`, `single`, `verify` | one candidate: its tokens and events; with memory; by itself; with a draft |
//! | `prefill`, `preparation`, `job` | feeding a prompt, once for all its candidates, or ahead of its request; a request |
//! | `shared`, `reservation`, `handle`, `change` | the entry: reserving places, submitting requests, changing the model |
//! | `planned_step`, `scheduler` | a step; the running requests |
//! | `plan`, `execute` | deciding on the next step; running it |
//! | `run` | the loop |
//! | `embed/` | a model that embeds: its contract, queue and loop |

pub mod embed;
pub mod event;
pub mod generation;
pub mod model;
pub mod prompt;

mod banker;
mod candidate;
mod change;
mod clock;
mod costs;
mod draft;
mod events;
mod execute;
mod handle;
mod job;
mod limits;
mod patience;
mod plan;
mod planned_step;
mod pool;
mod prefill;
mod prefix_cache;
mod preparation;
mod reservation;
mod run;
mod run_ahead;
mod scheduler;
mod semaphore;
mod sequence;
mod shared;
mod single;
mod states;
mod token_rules;
mod verify;
mod wake;

#[cfg(test)]
mod tests;

pub use change::ModelAccess;
pub use clock::{Clock, TimeLimit};
pub use draft::{DraftRules, Follower};
pub use events::Events;
pub use handle::EngineHandle;
pub use limits::{EngineLimits, Speculation};
pub use model::{
    CausalModel, Chooser, Input, KnownText, MemoryCopy, ModelLimits, Row, RowSampler,
    SequenceMemory, StepOutput,
};
pub use reservation::Reservation;
pub use run::Engine;
pub use semaphore::{Permit, Semaphore};
