//! Models on both devices, and their references.

use std::path::Path;
use std::sync::OnceLock;

use inpage::{
    Result,
    device::{ComputeDevice, CpuOptions},
    engine::{CausalModel, Chooser, Input, Row, SequenceMemory},
    images::Image,
    model::{LoadOptions, Transformer},
    ops::{Variant, kv_memory::KvFormat},
    runtime::{Tuning, start},
    tensor_types::TensorType,
    tuner::{Needs, Precision, candidates, choose},
    weights::{ByteSource, FileSource, Gguf},
};
use pollster::block_on;

use crate::shared_gpus;

/// f32 values of a NumPy file.
pub fn npy(path: &Path) -> Vec<f32> {
    npy_of(&std::fs::read(path).expect("a reference"))
}

pub fn npy_of(bytes: &[u8]) -> Vec<f32> {
    assert_eq!(&bytes[..6], b"\x93NUMPY");
    let header = 10 + usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    bytes[header..]
        .chunks_exact(4)
        .map(|b| f32::from_le_bytes(b.try_into().unwrap()))
        .collect()
}

/// An image of gradients with noise, as the scripts make them.
pub fn image(width: usize, height: usize) -> Image {
    let mut rgb = Vec::new();
    for y in 0..height {
        for x in 0..width {
            for channel in 0..3 {
                let noise = (x * 73 + y * 151 + channel * 199).pow(2) % 97;
                rgb.push(((x * 5 + y * 3 + channel * 40 + noise) % 256) as u8);
            }
        }
    }
    Image { width, height, rgb }
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

pub fn floats(value: &serde_json::Value) -> Vec<f32> {
    let values = value.as_array().unwrap().iter();
    values.map(|float| float.as_f64().unwrap() as f32).collect()
}

/// A device, and the form of the kernels that all models of a test run on it.
#[derive(Clone)]
pub struct Compute {
    pub device: ComputeDevice,
    pub variant: Variant,
}

impl Compute {
    /// The reference.
    pub fn reference() -> Compute {
        Compute {
            device: ComputeDevice::reference(),
            variant: Variant::PORTABLE,
        }
    }

    /// The CPU device.
    pub fn cpu() -> Compute {
        Compute {
            device: ComputeDevice::cpu(CpuOptions::default()),
            variant: Variant::CPU,
        }
    }
}

pub fn computes() -> Vec<(&'static str, Compute)> {
    // All tests run on the same kind of device.
    static BEST: OnceLock<Variant> = OnceLock::new();
    let device = gpu();
    // `tests/kernels` covers the other types.
    let needs = Needs {
        types: &[TensorType::Q4_0],
        experts: true,
        whole_attention: false,
        kv_format: KvFormat::default(),
        precision: Precision::F32,
    };
    // Not by the measured cost of a barrier, which on software adapters is around the threshold: other runs would have other
    // kernels to compile.
    let candidates = || candidates(&device, device.report().software_adapter);
    let best = || block_on(choose(&device, &candidates(), needs)).expect("a variant");
    let variant = *BEST.get_or_init(best);
    vec![
        ("reference", Compute::reference()),
        ("GPU", Compute { device, variant }),
    ]
}

/// Same as [`computes`], and the CPU, whose arithmetic is not that of the reference.
pub fn all_computes() -> Vec<(&'static str, Compute)> {
    let mut computes = computes();
    computes.push(("CPU", Compute::cpu()));
    computes
}

/// Same as [`all_computes`], and the GPU with each way to tile and to attend: which is the best is measured.
pub fn computes_of_every_tiling() -> Vec<(String, Compute)> {
    let device = gpu();
    let mut variants = candidates(&device, true);
    variants.dedup_by_key(|variant| variant.barrier_free);
    let mut computes = vec![
        ("reference".into(), Compute::reference()),
        ("CPU".into(), Compute::cpu()),
    ];
    for variant in variants {
        let device = device.clone();
        computes.push((
            format!("GPU, {}", variant.name()),
            Compute { device, variant },
        ));
    }
    computes
}

fn gpu() -> ComputeDevice {
    ComputeDevice::Gpu(shared_gpus::gpu())
}

/// Starts a model with the kernels of `compute`.
pub async fn load<S: ByteSource>(
    compute: Compute,
    gguf: &Gguf,
    source: &S,
    options: LoadOptions,
    progress: impl FnMut(u64, u64),
) -> Result<Transformer> {
    let Compute { device, variant } = compute;
    let tuning = Tuning::Fixed(variant);
    let (model, _) = start(&device, tuning, gguf, source, options, progress).await?;
    Ok(model)
}

/// A model with the default KV format.
pub fn model(compute: &Compute, path: &Path) -> Transformer {
    model_with(compute, path, KvFormat::default())
}

pub fn model_with(compute: &Compute, path: &Path, kv_format: KvFormat) -> Transformer {
    let source = FileSource::open(path).expect("a model");
    let gguf = block_on(Gguf::read(&source)).expect("a GGUF");
    let options = LoadOptions {
        context_tokens: Some(512),
        kv_format,
        ..LoadOptions::default()
    };
    block_on(load(compute.clone(), &gguf, &source, options, |_, _| ())).expect("a model that runs")
}

pub fn sequence(model: &Transformer) -> SequenceMemory {
    // Pages are out of order, so that the block table matters.
    let memory = SequenceMemory::new((0..model.limits().page_count as u32).rev().collect());
    SequenceMemory {
        state: (model.limits().state_slots > 0).then_some(1),
        ..memory
    }
}

/// Steps of a model in a form that is convenient for tests.
#[allow(async_fn_in_trait)]
pub trait Feed {
    /// The logits after `tokens`.
    async fn feed(&mut self, memory: &mut SequenceMemory, tokens: &[u32]) -> Result<Vec<f32>>;
    /// The logits after one token of each sequence.
    async fn feed_batch(
        &mut self,
        rows: &mut [(&mut SequenceMemory, u32)],
    ) -> Result<Vec<Vec<f32>>>;
    /// The `steps` tokens that the device chooses greedily after `tokens`.
    async fn feed_greedy(
        &mut self,
        memory: &mut SequenceMemory,
        tokens: &[u32],
        steps: usize,
    ) -> Result<Vec<u32>>;
}

impl<M: CausalModel> Feed for M {
    async fn feed(&mut self, memory: &mut SequenceMemory, tokens: &[u32]) -> Result<Vec<f32>> {
        let mut rows = [Row {
            memory,
            input: Input::tokens(tokens),
        }];
        let output = self.step(&mut rows, Chooser::Host).await?;
        Ok(output.into_logits()?.remove(0))
    }

    async fn feed_batch(
        &mut self,
        rows: &mut [(&mut SequenceMemory, u32)],
    ) -> Result<Vec<Vec<f32>>> {
        let rows = rows.iter_mut().map(|(memory, token)| Row {
            memory,
            input: Input::tokens(std::slice::from_ref(token)),
        });
        let mut rows: Vec<Row> = rows.collect();
        self.step(&mut rows, Chooser::Host).await?.into_logits()
    }

    async fn feed_greedy(
        &mut self,
        memory: &mut SequenceMemory,
        tokens: &[u32],
        steps: usize,
    ) -> Result<Vec<u32>> {
        let mut rows = [Row {
            memory,
            input: Input::tokens(tokens),
        }];
        let output = self.step(&mut rows, Chooser::Greedy { steps }).await?;
        let chosen = output.into_chosen()?.remove(0);
        chosen.into_iter().map(|it| Ok(it?.id)).collect()
    }
}

/// The 60 stories, tokenized for a model.
pub fn stories(folder: &Path, model: &Path) -> Vec<u32> {
    let text = std::fs::read_to_string(folder.join("text/tinystories_heldout_60.txt")).unwrap();
    let gguf = block_on(Gguf::read(&FileSource::open(model).unwrap())).unwrap();
    let tokenizer = inpage::text::Tokenizer::from_gguf(&gguf.metadata).unwrap();
    tokenizer.encode(&text, true).unwrap()
}

/// Windows of 256 tokens, on which llama.cpp measures perplexities.
pub fn windows(tokens: &[u32]) -> impl Iterator<Item = &[u32]> {
    tokens.chunks_exact(256)
}

/// The perplexity of the second halves of `windows`.
pub fn perplexity<'a>(model: &mut Transformer, windows: impl Iterator<Item = &'a [u32]>) -> f64 {
    let (mut sum, mut count) = (0.0, 0);
    for window in windows {
        let mut kv = sequence(model);
        let (tokens, next) = (&window[..255], &window[1..]);
        let scores = block_on(model.score(&mut kv, tokens, next, 0)).unwrap();
        for score in &scores[128..] {
            sum -= f64::from(score.logprob);
            count += 1;
        }
    }
    (sum / f64::from(count)).exp()
}

/// `log(softmax(logits))`, in f64.
pub fn log_softmax(logits: &[f32]) -> Vec<f32> {
    let peak = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let sum: f64 = logits.iter().map(|v| f64::from(v - peak).exp()).sum();
    let normalizer = f64::from(peak) + sum.ln();
    let logprobs = logits.iter().map(|v| (f64::from(*v) - normalizer) as f32);
    logprobs.collect()
}
