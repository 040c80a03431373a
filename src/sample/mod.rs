//! The sampler chain of specification 5 on the CPU: the specification the GPU must reproduce.
//! It knows one row of logits at a time; nothing of models, sequences or text.
//!
//! One file per stage, in the order in which [`Sampler`] runs them:
//!
//! | file | stage of specification 5 |
//! |---|---|
//! | `check` | bad numerics are an error |
//! | `score` | 0 and 7b: log-probabilities, raw and processed, if someone asks |
//! | `logit_bias` | 1 |
//! | `repetition` | 2 |
//! | `frequency_presence` | 3 |
//! | `dry` | 4 |
//! | `mask` | 5: a constraint |
//! | `greedy` | 6: argmax, and stop there |
//! | `temperature` | 7: logits to weights |
//! | `candidates` | 5.3: the order p descending, id ascending |
//! | `mirostat` | 8a: replaces the truncation |
//! | `top_k`, `top_p`, `min_p` | 8b: truncation |
//! | `philox`, `draw` | 5.4: the uniform number and the walk |
//!
//! Stages 1 to 5 change the logits in place; each keeps what it must remember of the tokens so far,
//! and a stage that is off keeps and costs nothing.
//!
//! # Arithmetic
//! What chooses is f32; only log-probabilities, which nothing is chosen by, are computed in f64. A
//! *weight* is `exp((z - z_max) / T)`: the probability without the common factor, which every stage
//! can do without. Sums run in blocks of 256 (`running_sum`), so that they lose nothing over a large
//! vocabulary and a workgroup can reproduce them.

mod candidates;
mod check;
mod defaults;
mod draw;
mod dry;
mod exp;
mod frequency_presence;
mod greedy;
mod logit_bias;
mod mask;
mod min_p;
mod mirostat;
mod params;
pub mod philox;
mod repetition;
mod running_sum;
mod sampler;
mod score;
mod temperature;
mod top_k;
mod top_p;

#[cfg(test)]
mod tests;

pub use defaults::SamplingDefaults;
pub use dry::MAX_LENGTH as DRY_MAX_LENGTH;
pub use mask::TokenMask;
pub use params::{DryParams, MirostatParams, SamplingParams};
pub use sampler::{Sampled, Sampler, SamplerState};
pub use score::{LogprobsMode, ScoreRequest, TokenScore, score};
