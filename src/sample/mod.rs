//! The sampler chain of specification 5 on the CPU: the specification that the GPU kernels reproduce.
//! Its input is one row of logits at a time; models, sequences and text are outside it.
//!
//! The files in the order in which [`Sampler`] runs them:
//!
//! | file | stage of specification 5 |
//! |---|---|
//! | `check` | invalid logits are an error |
//! | `score` | 0 and 7b: log-probabilities, raw and processed, if requested |
//! | `stages/logit_bias` | 1 |
//! | `stages/repetition` | 2 |
//! | `stages/frequency_presence` | 3 |
//! | `stages/dry` | 4 |
//! | `mask` | 5: a constraint |
//! | `greedy` | 6: argmax, which ends the chain |
//! | `temperature` | 7: logits to weights |
//! | `candidates` | 5.3: the order p descending, id ascending |
//! | `stages/mirostat` | 8a: replaces 8b |
//! | `stages/top_k`, `stages/top_p` and other files there | 8b: truncation |
//! | `philox`, `draw` | 5.4: the uniform number and the draw |
//!
//! `stages/mod.rs` lists the stages that parameters switch on and their order; `sampler` is the rest
//! of the chain. Stages 1 to 5 change the logits in place. A stage that is off costs nothing.
//! `docs/adding-a-sampling-stage.md` says how one is added.
//!
//! # Arithmetic
//! Everything that decides which token is sampled is f32, so that the GPU can reproduce it.
//! Log-probabilities decide nothing and are computed in f64. A *weight* is `exp((z - z_max) / T)`:
//! the probability without its normalization, which no stage needs. Sums run in blocks of 256
//! (`running_sum`), so that they lose nothing over a large vocabulary and a workgroup can reproduce
//! them.

mod candidates;
mod check;
mod defaults;
mod draw;
mod exp;
mod greedy;
mod mask;
pub mod philox;
mod running_sum;
mod sampler;
mod score;
mod stages;
mod temperature;

#[cfg(test)]
mod tests;

pub use candidates::best_tokens;
pub use defaults::SamplingDefaults;
pub use mask::TokenMask;
pub use sampler::{Sampled, Sampler};
pub use score::{LogprobsMode, ScoreRequest, TokenScore, score};
pub use stages::{DRY_MAX_LENGTH, DryParams, MirostatParams, SamplingParams, StageMemory};
