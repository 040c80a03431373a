//! A model's hyperparameters, and typed access to their two sources: the metadata of a GGUF file and the
//! `config.json` of a Hugging Face folder. `architectures` defines how each architecture uses them.

pub mod embedding;
pub mod json;
pub mod keys;
pub mod llama_like;
mod model_config;
mod plain;
pub mod recurrence;
pub mod rope;

pub use json::ConfigJson;
pub use keys::Keys;
pub use model_config::{
    DenseLayers, DensePlaces, Experts, FeedForwardKind, Latent, LayerConfig, LayerRope, LayerSizes,
    MemoryKind, Mixing, ModelConfig, NormPlaces, Passes, Positions, QkNorm, Shared,
};
pub(in crate::model) use plain::PlainModel;
pub use recurrence::{LinearRecurrence, Recurrence, Rule};
pub use rope::{Rope, RopePairs, RopeParts, Scaling};

pub use crate::ops::{
    Activation, NormKind, attention::Window, rope_kv::Temperature, route_experts::ExpertGroups,
};
