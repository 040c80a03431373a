//! Low-rank adapters (LoRA, Hu et al. 2021, <https://arxiv.org/abs/2106.09685>): `W x + scale * B (A x)`
//! for matrices `W` of the model, which keep their own bits.
//!
//! Order, lowest first: `row_order`, `adapter`, `gguf` and `peft`, `open`; `targets`, `adapted`.

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
