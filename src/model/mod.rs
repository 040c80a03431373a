//! The decoder: configurations and architectures, layers, loading, and the steps that a device runs. Requests
//! and text are above it.
//!
//! A file uses the rows above its own, never those below:
//!
//! | files | contents |
//! |---|---|
//! | `config` | hyperparameters; typed access to GGUF metadata and `config.json` |
//! | `architectures` | one file per architecture: what differs from a Llama |
//! | `vision` | one file per family of models that take images: its towers, images and folders |
//! | `hugging_face` | a Hugging Face folder as the GGUF file that a converter would make of it |
//! | `layers` | burn modules over `ops` |
//! | `load_options`, `kv_reservation`, `load`, `checkpoint` | from a file to a decoder on a device |
//! | `lora` | adapters beside the decoder's matrices |
//! | `steps`, `slots`, `pace` | steps of the device and their captured graphs |
//! | `patch_grid`, `image_rows`, `features` | runs a vision tower; the rows it has made |
//! | `transformer` | the model that the engine runs: sequences in pages, cut into steps |
//! | `inspect`, `inspect_tower`, `refusal` | a report on a header; why the model does not load |
//! | `sampling_defaults` | the sampling that a header recommends |

mod architectures;
mod checkpoint;
pub mod config;
mod features;
mod hugging_face;
mod image_rows;
mod inspect;
mod inspect_tower;
mod kv_reservation;
mod layers;
mod load;
mod load_options;
mod lora;
mod pace;
mod patch_grid;
mod refusal;
mod sampling_defaults;
mod slots;
mod steps;
mod transformer;
mod vision;

#[cfg(test)]
mod inspect_tests;

pub use architectures::names as architecture_names;
pub use checkpoint::{Checkpoint, CheckpointSource};
pub use config::ModelConfig;
pub use hugging_face::Quantize;
pub use image_rows::Vision;
pub use inspect::{ModelReport, for_sequences, inspect};
pub use inspect_tower::{InspectedTower, inspect_tower, is_tower};
pub use layers::{experts::ExpertFeedForward, linear::Norm};
pub use load::matrix_types;
pub(crate) use load::{Plan, TowerPlan, load_weights, outline, plan};
pub use load_options::LoadOptions;
pub use lora::Adapter;
pub use refusal::{check_budget, refusal, tower_refusal};
pub use sampling_defaults::sampling_defaults;
pub use transformer::{DraftModel, Transformer};
pub use vision::family_model_types as vision_family_model_types;
