//! The ops of the transformer. An op is a file: its declaration, a public function, the composed
//! kernel, the launch on the GPU and the CPU twin. Layers are the concern of `model`.
//!
//! A file uses only files of the groups above its own and of its own.
//!
//! burn is the tensor runtime, the hot ops are our own WGSL. An op is a
//! function over burn tensors that dispatches to a launch on the GPU or to its twin on the CPU. `op!` (`ops/op.rs`)
//! generates the dispatch from one declaration in the op's file.

// The parts of ops.
mod in_place;
mod op;
mod write_words;

// The types of their arguments.
mod arithmetic;
pub mod kv_memory;
pub mod matrix;
pub mod matvec;
mod recurrence_shape;
pub mod state_memory;
pub mod step;
pub mod store;
mod tile;
mod variant;

// Products by the twins and on the CPU device, for the ops below.
mod host_products;

// Each of these files is one op.
pub mod add_given;
pub mod add_positions;
pub mod add_token_type;
pub mod argmax;
pub mod attention;
pub mod attention_split;
pub mod barriers;
pub mod causal_conv;
pub mod copy_page;
pub mod embedding;
pub mod embedding_or_row;
pub mod expert_gated_product;
pub mod expert_matmul;
pub mod expert_matvec;
pub mod gate_columns;
pub mod gated_norm;
pub mod gated_product;
pub mod group_experts;
pub mod head_product;
pub mod last_row;
pub mod latent_row;
pub mod limit;
pub mod linear_recurrence;
pub mod norm;
pub mod product;
mod recurrence_chunks;
pub mod reshape;
pub mod rope_kv;
pub mod route_experts;
pub mod rows;
pub mod sample;
pub mod score;
pub mod sigmoid_gate;
pub mod sum_experts;
pub mod word_rows;

#[cfg(test)]
mod test_cases;

pub use crate::kernel::{DryRun, Kernel, dry_run, launches};
pub use arithmetic::Arithmetic;
pub use in_place::InPlace;
pub use inpage_cpu::lanes::{activation::Activation, norm::NormKind};
pub use store::{Addends, Finish};
pub use tile::MAX_SMALL_TOKENS;
pub use variant::Variant;
pub use write_words::write_words;
