//! The sampler chain on the device against the chain on the CPU, its specification.

mod bench_of_rows;
mod random;
mod steps;
mod vectors;
