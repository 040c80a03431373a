//! Whole models, real and random, on the reference, the CPU and the GPU: against references, and one way of
//! feeding tokens against another.
#![allow(clippy::too_many_lines, reason = "a test may be a long list of cases")]

#[path = "../shared_gpus/mod.rs"]
mod shared_gpus;
#[path = "../shared_models/mod.rs"]
mod shared_models;

mod archive;
mod fixture;

mod adapters;
mod architectures;
mod arithmetic;
mod batches;
mod containers;
mod converted;
mod cpu_device;
mod drafts;
mod embeddings;
mod far_tensors;
mod folders;
mod grid_images;
mod image_families;
mod image_files;
mod image_folders;
mod images;
mod kept_kernels;
mod kv_formats;
mod long_context;
mod prefixes;
mod quantized;
mod recent_folders;
mod recurrent;
mod recurrent_adapters;
mod references;
mod references_2026;
mod rerankers;
mod sampling;
mod scores;
mod types;
