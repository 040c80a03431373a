//! The sampler chain on the device against the chain on the CPU, its specification.

mod device_rows;
mod random;
mod steps;
mod vectors;
