//! The ops of the transformer, one file each: a WGSL launch and its CPU twin under one name. Ops
//! know tensors, never what a layer is.

mod arithmetic;
mod backend;
mod kernel;
pub mod shader;

pub mod matrix;
pub mod step;
mod unroll;

pub mod argmax;
pub mod attention;
pub mod barriers;
pub mod copy_page;
pub mod embedding;
pub mod gated_matmul;
pub mod gated_matvec;
pub mod last_row;
pub mod matmul;
pub mod matvec;
pub mod quickest;
pub mod rms_norm;
pub mod rope_kv;
pub mod rows;
pub mod sample;
pub mod score;
pub mod self_test;
mod tile;

pub use arithmetic::Arithmetic;
pub use backend::write_words;
pub use kernel::{Kernel, Variant, launches};
pub use tile::MAX_SMALL_TOKENS;
