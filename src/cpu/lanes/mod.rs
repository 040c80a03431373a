//! Kernels on f32 values, written over eight lanes. Their bits are the same on every target: sums have a fixed order of
//! eight partial sums, nothing is fused, and functions are polynomials. The result of a row does not depend on others.

// Iterators over several slices at once need closures, which may not inline into the function that enables vectors.
#![allow(clippy::needless_range_loop)]

pub mod activation;
pub mod argmax;
pub mod attention;
pub mod convolution;
mod f32x8;
mod functions;
pub mod gated_norm;
pub mod kv;
pub mod log_sum_exp;
pub mod norm;
pub mod recurrence;
#[cfg(test)]
mod recurrent_speed;
pub mod rope;
#[cfg(test)]
pub(crate) mod test_values;
