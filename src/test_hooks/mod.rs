//! What conformance cases need to reach inside of a running endpoint: failures and delays on demand,
//! states, switches, the sampler. Built with the feature `test-hooks` only, and never shipped.
//!
//! | file | part |
//! |---|---|
//! | `hooks` | the commands, each one JSON object |
//! | `hooked_model` | a model that fails or dawdles on command |
//! | `sampler` | one step of the sampler chain, laid open |

mod hooked_model;
mod hooks;
mod sampler;

#[cfg(test)]
mod tests;

pub use hooked_model::{Controls, HookedModel};
pub use hooks::Hooks;
