//! The ops of the transformer, one file each: a WGSL launch and its CPU twin under one name. Ops
//! know tensors, never what a layer is.

mod arithmetic;
mod backend;
mod kernel;
pub mod shader;

pub mod kv_memory;
pub mod matrix;
pub mod step;
mod unroll;

pub mod activation;
pub mod add_positions;
pub mod argmax;
pub mod attention;
pub mod attention_split;
pub mod barriers;
pub mod copy_page;
pub mod embedding;
pub mod expert_gated_matmul;
pub mod expert_gated_matvec;
pub mod expert_matmul;
pub mod expert_matvec;
pub mod gated_matmul;
pub mod gated_matvec;
pub mod group_experts;
pub mod last_row;
pub mod layer_norm;
pub mod matmul;
pub mod matvec;
pub mod rms_norm;
pub mod rope_kv;
pub mod route_experts;
pub mod rows;
pub mod sample;
pub mod score;
pub mod store;
pub mod sum_experts;
mod tile;

pub use activation::Activation;
pub use arithmetic::Arithmetic;
pub use backend::write_words;
pub use kernel::{Kernel, Variant, collect, launches};
pub use store::{Addends, Finish};
pub use tile::MAX_SMALL_TOKENS;
