//! The transformer as burn modules. Knows layers and weights' names, not requests or text.

mod architectures;
mod attention;
mod checkpoint;
mod compute;
pub mod config;
pub mod decoder;
mod experts;
mod feed_forward;
mod hugging_face;
mod inspect;
mod kv_reservation;
mod linear;
mod load;
mod lora;
mod pace;
mod sampling_defaults;
mod slots;
mod start;
mod steps;
mod transformer;

#[cfg(test)]
mod inspect_tests;

pub use checkpoint::{Checkpoint, CheckpointSource};
pub use compute::Compute;
pub use config::ModelConfig;
pub use experts::ExpertFeedForward;
pub use hugging_face::Quantize;
pub use inspect::{ModelReport, for_sequences, inspect, refusal};
pub use linear::Norm;
pub use load::{LoadOptions, formats, load};
pub use lora::Adapter;
pub use sampling_defaults::sampling_defaults;
pub use start::{StartTimes, start};
pub use transformer::Transformer;
