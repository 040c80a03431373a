//! Adapters of recurrent layers: a model with an adapter against the model whose matrices hold the sum.

use std::{collections::BTreeMap, fs, path::Path};

use inpage::{
    model::{Adapter, Checkpoint, LoadOptions, Quantize, Transformer},
    ops::kv_memory::KvFormat,
};
use pollster::block_on;
use serde_json::{Map, Value, json};

use crate::{
    adapters::{last_logits, made},
    archive,
    arithmetic::{MAX_DIVERGENCE, divergence},
    fixture::{Compute, computes, load},
    folders::Folder,
    references::assert_parity,
};

const RANK: usize = 3;
const ALPHA: f32 = 6.0;
const WEIGHTS: &str = "model.safetensors";

/// A folder's name, the architecture, a prefix of its tensors and the modules of its first layer.
type Case = (
    &'static str,
    &'static str,
    &'static str,
    &'static [&'static str],
);

const CASES: [Case; 3] = [
    ("lfm2-hf", "lfm2", "", &["conv.in_proj", "conv.out_proj"]),
    (
        "granitehybrid-hf",
        "granitehybrid",
        "",
        &["mamba.in_proj", "mamba.out_proj"],
    ),
    (
        "qwen35-hf",
        "qwen35",
        "language_model.",
        &[
            "linear_attn.in_proj_qkv",
            "linear_attn.in_proj_z",
            "linear_attn.in_proj_a",
            "linear_attn.in_proj_b",
            "linear_attn.out_proj",
        ],
    ),
];

/// A matrix in row order.
struct Array {
    shape: Vec<usize>,
    values: Vec<f32>,
}

/// The tensors of a file of bf16.
fn read(file: &[u8]) -> BTreeMap<String, Array> {
    let header_len = u64::from_le_bytes(file[..8].try_into().unwrap()) as usize;
    let header: Map<String, Value> = serde_json::from_slice(&file[8..8 + header_len]).unwrap();
    let data = &file[8 + header_len..];
    let tensors = header
        .into_iter()
        .filter(|(name, _)| name != "__metadata__");
    let array = |(name, entry): (String, Value)| {
        assert_eq!(entry["dtype"], "BF16");
        let size = |value: &Value| value.as_u64().unwrap() as usize;
        let [start, end] = [0, 1].map(|i| size(&entry["data_offsets"][i]));
        let pairs = data[start..end].as_chunks::<2>().0;
        let values = pairs
            .iter()
            .map(|it| f32::from_bits(u32::from(u16::from_le_bytes(*it)) << 16));
        let shape = entry["shape"].as_array().unwrap().iter().map(size);
        (
            name,
            Array {
                shape: shape.collect(),
                values: values.collect(),
            },
        )
    };
    tensors.map(array).collect()
}

/// A file of f32.
fn written(tensors: &BTreeMap<String, Array>) -> Vec<u8> {
    let (mut header, mut data) = (Map::new(), Vec::new());
    for (name, array) in tensors {
        let start = data.len();
        data.extend(array.values.iter().flat_map(|value| value.to_le_bytes()));
        let offsets = [start, data.len()];
        let entry = json!({ "dtype": "F32", "shape": array.shape, "data_offsets": offsets });
        header.insert(name.clone(), entry);
    }
    let header = Value::Object(header).to_string();
    [
        &(header.len() as u64).to_le_bytes()[..],
        header.as_bytes(),
        &data,
    ]
    .concat()
}

/// Values that look random, of about this size.
fn wave(count: usize, size: f32, step: f32) -> Vec<f32> {
    (0..count)
        .map(|i| size * (step * i as f32 + 1.3 * (i as f32 * 0.37).sin()).sin())
        .collect()
}

/// The folder of a model, the same with an adapter in its matrices, and the adapter.
fn folders(case: Case) -> [Folder; 3] {
    let (name, _, prefix, modules) = case;
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/parity/models/{name}.tar"));
    let plain = archive::files(&fs::read(path).unwrap());
    let mut merged = read(&plain[WEIGHTS]);
    let mut adapter = BTreeMap::new();
    for (i, module) in modules.iter().enumerate() {
        let module = format!("model.{prefix}layers.0.{module}");
        let array = merged
            .get_mut(&format!("{module}.weight"))
            .expect("a matrix");
        let [rows, cols] = array.shape[..] else {
            panic!("{module} is no matrix");
        };
        let step = 2.1 + 0.17 * i as f32;
        let a = wave(RANK * cols, 2.0 / (cols as f32).sqrt(), step);
        let b = wave(rows * RANK, 0.3, step + 0.5);
        for (row, values) in array.values.chunks_exact_mut(cols).enumerate() {
            for (col, value) in values.iter_mut().enumerate() {
                let products = (0..RANK).map(|r| b[row * RANK + r] * a[r * cols + col]);
                *value += ALPHA / RANK as f32 * products.sum::<f32>();
            }
        }
        let stored = |half: &str| format!("base_model.model.{module}.lora_{half}.weight");
        adapter.insert(
            stored("A"),
            Array {
                shape: vec![RANK, cols],
                values: a,
            },
        );
        adapter.insert(
            stored("B"),
            Array {
                shape: vec![rows, RANK],
                values: b,
            },
        );
    }
    let config = json!({ "peft_type": "LORA", "r": RANK, "lora_alpha": ALPHA }).to_string();
    let adapter = BTreeMap::from([
        ("adapter_config.json".to_owned(), config.into_bytes()),
        ("adapter_model.safetensors".to_owned(), written(&adapter)),
    ]);
    let mut with_sums = plain.clone();
    with_sums.insert(WEIGHTS.to_owned(), written(&merged));
    [plain, with_sums, adapter].map(Folder)
}

fn model(compute: &Compute, folder: &Folder) -> Transformer {
    let options = LoadOptions {
        context_tokens: Some(128),
        kv_format: KvFormat::F32,
        quantize: Quantize::None,
        ..LoadOptions::default()
    };
    let Checkpoint { gguf, source } = block_on(Checkpoint::open(folder, &options)).unwrap();
    block_on(load(compute.clone(), &gguf, &source, options, |_, _| ())).expect("a model that runs")
}

#[test]
fn adapters_of_recurrent_layers_equal_the_sums() {
    let prompt: Vec<u32> = (0..40).map(|i| i * 37 % 320).collect();
    let mut devices = computes();
    devices.push(("CPU", Compute::cpu()));
    for case in CASES {
        let [plain, merged, adapter] = folders(case);
        let adapter = block_on(Adapter::open(&adapter)).expect("an adapter");
        for (device, compute) in &devices {
            let what = format!("{} on the {device}", case.0);
            let expected = last_logits(&mut model(&Compute::reference(), &merged), &prompt, 40);
            let mut model = model(compute, &plain);
            let without = last_logits(&mut model, &prompt, 40);
            let moved = without.iter().zip(&expected).map(|(a, b)| (a - b).abs());
            assert!(moved.fold(0.0, f32::max) > 1.0, "{what} does nothing");
            block_on(model.set_adapters(&[(&adapter, 1.0)])).expect("an adapter that fits");
            for tokens in [40, 7, 1] {
                let found = last_logits(&mut model, &prompt, tokens);
                if *device == "CPU" {
                    let divergence = divergence(&expected, &found);
                    assert!(divergence <= MAX_DIVERGENCE, "{what}: {divergence}");
                } else {
                    assert_parity(&what, &found, &expected, 0.02);
                }
            }
        }
    }
}

/// Converters of Qwen3.5 reorder heads of values, and the rows of their adapters.
#[test]
fn adapters_with_heads_in_another_order_are_refused() {
    let [plain, ..] = folders(CASES[2]);
    let mut model = model(&Compute::reference(), &plain);
    for (tensor, cols, rows) in [("attn_qkv", 64, 256), ("ssm_out", 128, 64)] {
        let adapter = made("qwen35", &format!("blk.0.{tensor}.weight"), cols, rows);
        let error = block_on(model.set_adapters(&[(&adapter, 1.0)])).unwrap_err();
        let message = error.to_string();
        assert!(message.contains("heads are in another order"), "{message}");
    }
}
