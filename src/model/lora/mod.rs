//! Low-rank adapters (LoRA, Hu et al. 2021, <https://arxiv.org/abs/2106.09685>): `W x + scale * B (A x)`
//! for matrices `W` of the model, which keep their own bits.
//!
//! Order, lowest first: `row_order`, `adapter`, `gguf` and `peft`, `open`; `targets`, `adapted`.
//!
//! An adapter is two thin products beside a matrix, not a change of its weights: these keep their file's bits. All
//! adapters of all matrices that are multiplied together (Q, K and V; gate and up) are joined into one pair, so they
//! cost two dispatches however many there are. They change between requests (`engine/change.rs`): no request is
//! admitted, in-flight requests finish, the prefix cache is cleared, steps are recorded again. Where there are no
//! adapters, nothing is added.

mod adapted;
mod adapter;
mod gguf;
mod open;
mod peft;
mod row_order;
mod targets;

pub(super) use adapted::{Adapted, BaseModel, adapted};
pub use adapter::Adapter;

#[cfg(test)]
mod tests;
