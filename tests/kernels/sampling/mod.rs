//! The sampler chain on the device against the chain on the CPU, which is its specification.

mod device_rows;
mod random;
mod steps;
mod vectors;
