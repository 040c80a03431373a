//! The transformer as burn modules. Knows layers and weights' names, not requests or text.

mod attention;
pub mod causal;
mod compute;
mod config;
mod feed_forward;
mod kv_reservation;
mod linear;
pub mod llama;
mod load;
mod pace;
mod rope;
mod sampling_defaults;
mod slots;
mod steps;
mod transformer;

pub use causal::{CausalModel, SampledRow, SequenceKv};
pub use compute::Compute;
pub use config::LlamaConfig;
pub use load::{LoadOptions, formats, load};
pub use sampling_defaults::sampling_defaults;
pub use transformer::Transformer;
