//! Control over a running endpoint for conformance cases: failures and delays on demand, states,
//! switches, the sampler. Built with the feature `test-hooks` only, and never shipped.
//!
//! | file | part |
//! |---|---|
//! | `handler` | the endpoint, with the commands that it takes |
//! | `hooked_model` | a model, of either kind, that fails or waits on command |
//! | `sampler` | the intermediate results of one step of the sampler chain |

mod handler;
mod hooked_model;
mod sampler;

#[cfg(test)]
mod tests;

pub use handler::HookedHandler;
pub use hooked_model::{Controls, HookedModel};
