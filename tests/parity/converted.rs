//! Models of recent architectures as the files that llama.cpp's converter makes and as the folders that it makes them of
//! (`scripts/references/converted.py`), against the logits that `transformers` computes.

use std::path::{Path, PathBuf};

use inpage::{
    model::{Checkpoint, LoadOptions, Quantize},
    ops::kv_memory::KvFormat,
    weights::LocalFiles,
};
use pollster::block_on;

use crate::{
    cpu_device::assert_near,
    fixture::{Compute, computes, floats, ids, json, load, model_with, sequence},
    references::{assert_greedy, assert_last_logits, assert_parity},
};

/// Names in `tests/parity/converted`, and the tolerance of their files: the factors of Falcon-H1 are rounded to f16 in them.
const MODELS: [(&str, f32); 11] = [
    ("falcon-h1", 0.005),
    ("falcon-h1-groups", 0.005),
    ("nanbeige", 0.005),
    ("bitnet", 0.02),
    ("qwen3next", 0.005),
    ("deepseek2", 0.005),
    ("deepseek2-joined", 0.005),
    ("deepseek3", 0.005),
    ("llama4", 0.005),
    ("nvfp4", 0.005),
    ("nvfp4-moe", 0.005),
];

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/parity/converted")
        .join(name)
}

/// The prompt, the logits after it, and the best token after each of its tokens.
fn reference(name: &str) -> (Vec<u32>, Vec<f32>, Vec<u32>) {
    let reference = json(&path(&format!("{name}.json")));
    (
        ids(&reference["ids"]),
        floats(&reference["last_logits"]),
        ids(&reference["greedy_next"]),
    )
}

#[test]
fn converted_files_meet_their_references() {
    for (device, compute) in computes() {
        for (name, tolerance) in MODELS {
            let (prompt, last, greedy) = reference(name);
            let what = format!("{name} on the {device}");
            let file = path(&format!("{name}.gguf"));
            let mut model = model_with(&compute, &file, KvFormat::F32);
            assert_last_logits(&what, &mut model, &prompt, &last, tolerance);
            let mut kv = sequence(&model);
            let all = block_on(model.feed_all(&mut kv, &prompt)).unwrap();
            assert_greedy(&what, &all, &greedy, tolerance);
        }
    }
}

#[test]
fn converted_files_stay_near_their_references_on_the_cpu() {
    for (name, _) in MODELS {
        let (prompt, last, _) = reference(name);
        assert_near(name, &path(&format!("{name}.gguf")), &prompt, &last);
    }
}

/// Names, configurations and conversions of the folders. What is computed is that of the files.
#[test]
fn folders_of_converted_files_meet_their_references() {
    let options = LoadOptions {
        context_tokens: Some(512),
        kv_format: KvFormat::F32,
        quantize: Quantize::None,
        ..LoadOptions::default()
    };
    for (name, tolerance) in MODELS {
        let (prompt, last, greedy) = reference(name);
        let files = LocalFiles::at(path(name)).unwrap();
        let Checkpoint { gguf, source } = block_on(Checkpoint::open(&files, &options))
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        let model = load(Compute::reference(), &gguf, &source, options, |_, _| ());
        let mut model = block_on(model).unwrap_or_else(|error| panic!("{name}: {error}"));
        let mut kv = sequence(&model);
        let all = block_on(model.feed_all(&mut kv, &prompt)).unwrap();
        assert_parity(name, &all[all.len() - last.len()..], &last, tolerance);
        assert_greedy(name, &all, &greedy, tolerance);
    }
}
