//! Whole models, real and random, on the reference, the CPU and the GPU: against references, and one way of
//! feeding tokens against another.

#[path = "../shared_gpus/mod.rs"]
mod shared_gpus;
#[path = "../shared_models/mod.rs"]
mod shared_models;

mod fixture;

mod adapters;
mod architectures;
mod arithmetic;
mod batches;
mod containers;
mod cpu_device;
mod embeddings;
mod far_tensors;
mod folders;
mod grid_pictures;
mod kept_kernels;
mod kv_formats;
mod long_context;
mod picture_families;
mod picture_files;
mod picture_folders;
mod pictures;
mod prefixes;
mod quantized;
mod recurrent;
mod references;
mod sampling;
mod scores;
mod types;
