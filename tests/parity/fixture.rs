//! Models on both devices, and their references.

use std::path::Path;

use inpage::{
    device::{Gpu, GpuOptions},
    model::{CausalModel, Compute, LoadOptions, SequenceKv, Transformer, load},
    ops::{matrix::Format, self_test},
    weights::{FileSource, Gguf},
};
use pollster::block_on;

/// f32 values of a NumPy file.
pub fn npy(path: &Path) -> Vec<f32> {
    let bytes = std::fs::read(path).expect("a reference");
    assert_eq!(&bytes[..6], b"\x93NUMPY");
    let header = 10 + usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    bytes[header..]
        .chunks_exact(4)
        .map(|b| f32::from_le_bytes(b.try_into().unwrap()))
        .collect()
}

pub fn json(path: &Path) -> serde_json::Value {
    serde_json::from_slice(&std::fs::read(path).expect("a reference")).expect("JSON")
}

pub fn ids(value: &serde_json::Value) -> Vec<u32> {
    value
        .as_array()
        .unwrap()
        .iter()
        .map(|id| id.as_u64().unwrap() as u32)
        .collect()
}

pub fn computes() -> Vec<(&'static str, Compute)> {
    let gpu = block_on(Gpu::request(GpuOptions::default())).expect("a GPU device");
    let variant = block_on(self_test::exact_variant(&gpu, &Format::ALL)).expect("a variant");
    vec![
        ("CPU", Compute::cpu()),
        ("GPU", Compute::Gpu { gpu, variant }),
    ]
}

pub fn model(compute: &Compute, path: &Path) -> Transformer {
    let source = FileSource::open(path).expect("a model");
    let gguf = block_on(Gguf::read(&source)).expect("a GGUF");
    let options = LoadOptions {
        context_tokens: Some(512),
    };
    block_on(load(compute.clone(), &gguf, &source, options, |_, _| ())).expect("a model that runs")
}

pub fn sequence(model: &Transformer) -> SequenceKv {
    // Out of order: the block table counts.
    SequenceKv {
        pages: (0..model.page_count() as u32).rev().collect(),
        len_tokens: 0,
    }
}

/// `log(softmax(logits))`, in f64.
pub fn log_softmax(logits: &[f32]) -> Vec<f32> {
    let peak = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let sum: f64 = logits.iter().map(|v| f64::from(v - peak).exp()).sum();
    let normalizer = f64::from(peak) + sum.ln();
    let logprobs = logits.iter().map(|v| (f64::from(*v) - normalizer) as f32);
    logprobs.collect()
}
