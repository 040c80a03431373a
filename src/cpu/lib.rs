//! The kernels of the CPU device: products of quantized matrices, attention, norms, threads. Slices in, slices
//! out: no tensors, no files, no model. A crate of its own, without dependencies, so that it compiles and tests in
//! seconds.

pub mod lanes;
pub mod team;
