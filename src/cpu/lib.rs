//! The kernels of the CPU device: products of quantized matrices, attention, norms, threads. Slices in, slices
//! out: no tensors, no files, no model. A crate of its own, without dependencies, so that it compiles and tests in
//! seconds.
//!
//! Activations are quantized to bytes per block of 32 columns, with a scale and sums for the minimums of types that
//! have them. Integer dot products multiply four bytes per lane.

pub mod activations;
pub mod format;
mod formats;
mod kernel;
pub mod lanes;
pub mod module;
pub mod product;
mod simd;
pub mod team;

#[cfg(test)]
mod product_tests;
