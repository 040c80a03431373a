//! The tiny random models beside this file, one architecture or one of its variants each, against
//! what transformers computes from the same weights (`scripts/references/make.py`).

use std::path::{Path, PathBuf};

use inpage::{
    Error,
    model::{CausalModel, Compute, LoadOptions, load},
    weights::{FileSource, Gguf},
};
use pollster::block_on;

use crate::{
    fixture::{computes, floats, ids, json, model, sequence},
    references::{assert_greedy, assert_parity},
};

/// Models this build refuses, and the part of the refusal that says why. To be emptied.
const REFUSED: &[(&str, &str)] = &[
    ("gemma-Q8_0", "architecture \"gemma\""),
    ("gemma2", "architecture \"gemma2\""),
    ("gemma3", "architecture \"gemma3\""),
    ("gemma3-linear-Q8_0", "architecture \"gemma3\""),
    ("gpt2", "architecture \"gpt2\""),
    ("granite", "architecture \"granite\""),
    ("llama-yarn-Q8_0", "rope scaling \"yarn\""),
    ("olmo2", "architecture \"olmo2\""),
    ("olmoe-Q8_0", "architecture \"olmoe\""),
    ("phi3", "architecture \"phi3\""),
    ("phi3-longrope-long", "architecture \"phi3\""),
    ("phi3-longrope-short", "architecture \"phi3\""),
    ("qwen3", "architecture \"qwen3\""),
    ("qwen3-Q4_0", "architecture \"qwen3\""),
    ("qwen3moe-Q8_0", "architecture \"qwen3moe\""),
    ("smollm3-Q8_0", "architecture \"smollm3\""),
    ("starcoder2", "architecture \"starcoder2\""),
];

/// All models: names and files.
fn models() -> Vec<(String, PathBuf)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/parity/models");
    let files = std::fs::read_dir(folder).expect("the models");
    let paths = files.map(|file| file.expect("a file").path());
    let mut models: Vec<(String, PathBuf)> = paths
        .filter(|path| path.extension().is_some_and(|ext| ext == "gguf"))
        .map(|path| (path.file_stem().unwrap().to_str().unwrap().to_owned(), path))
        .collect();
    models.sort();
    models
}

fn refusal(name: &str) -> Option<&'static str> {
    let found = REFUSED.iter().find(|(refused, _)| *refused == name);
    found.map(|(_, reason)| *reason)
}

/// `models/README.md`: activations of these grow large, types of few bits round their sums.
fn tolerance(name: &str) -> f32 {
    let wide = ["gemma", "gpt2", "Q4_0", "Q5_0"];
    if wide.iter().any(|part| name.contains(part)) {
        0.05
    } else {
        0.02
    }
}

/// Whole prompts, chunks and single tokens, past sliding windows and original contexts.
#[test]
fn every_architecture_meets_its_references() {
    for (device, compute) in computes() {
        for (name, path) in models() {
            if refusal(&name).is_some() {
                continue;
            }
            let reference = json(&path.with_extension("json"));
            let prompt = ids(&reference["ids"]);
            let what = format!("{name} on the {device}");
            let last = floats(&reference["last_logits"]);
            let tolerance = tolerance(&name);
            let mut model = model(&compute, &path);
            let mut kv = sequence(&model);
            let all = block_on(model.feed_all(&mut kv, &prompt)).unwrap();
            let row = &all[all.len() - last.len()..];
            assert_parity(&format!("{what}, prefill"), row, &last, tolerance);
            assert_greedy(&what, &all, &ids(&reference["greedy_next"]), tolerance);
            for tokens in [7, 1] {
                let mut kv = sequence(&model);
                let mut row = Vec::new();
                for chunk in prompt.chunks(tokens) {
                    row = block_on(model.feed(&mut kv, chunk)).unwrap();
                }
                let what = format!("{what}, {tokens} at a time");
                assert_parity(&what, &row, &last, tolerance);
            }
        }
    }
}

/// What cannot run is refused by name, before a tensor is read.
#[test]
fn other_models_are_refused_by_name() {
    let models = models();
    for (name, reason) in REFUSED {
        let found = models.iter().find(|(model, _)| model == name);
        let (_, path) = found.unwrap_or_else(|| panic!("no model {name}"));
        let source = FileSource::open(path).unwrap();
        let gguf = block_on(Gguf::read(&source)).unwrap();
        let (compute, options) = (Compute::cpu(), LoadOptions::default());
        let loaded = block_on(load(compute, &gguf, &source, options, |_, _| {
            panic!("{name}: a tensor was read")
        }));
        match loaded.err() {
            Some(Error::UnsupportedModel(message)) => {
                assert!(message.contains(reason), "{name}: {message}");
            }
            other => panic!("{name}: {other:?}"),
        }
    }
}
