//! The kernels of the CPU device: products of quantized matrices, attention, norms, threads. Slices in, slices
//! out: no tensors, no files, no model. A crate of its own, without dependencies, so that it compiles and tests in
//! seconds.
//!
//! The crate declares what kernels of all devices have in common: tensor types, formats of the KV cache and activations,
//! each with the text of its WGSL.
//!
//! The twins of the ops have their sums in `reference`.
//!
//! Activations are quantized to bytes per block of 32 columns, with a scale and sums for the minimums of types that
//! have them. Integer dot products multiply four bytes per lane.
#![cfg_attr(
    test,
    allow(clippy::too_many_lines, reason = "a test may be a long list of cases")
)]

/// The text of a file in `shaders/`, by its path without the extension.
macro_rules! wgsl {
    ($path:literal) => {
        include_str!(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../shaders/",
            $path,
            ".wgsl"
        ))
    };
}
pub mod activations;
pub mod half;
mod inputs;
mod kernel;
mod kernel_module;
pub mod lanes;
pub mod module;
pub mod product;
pub mod reference;
mod simd;
pub mod team;
pub mod tensor_types;

#[cfg(test)]
mod product_tests;
