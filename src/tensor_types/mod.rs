//! Tensor types. They are declared in `src/cpu/tensor_types`; here are the tests that compare them with ggml's.

pub use inpage_cpu::tensor_types::{BLOCK_COLS, PANEL_ROWS, ScaleWord, TensorType, ggml_type_name};

#[cfg(test)]
mod tests;
#[cfg(test)]
pub(crate) mod vectors;
