//! The tiny random models in `models`, one for each architecture or variant of one, against the logits in their metadata,
//! which `transformers` computes from the same weights (`scripts/references/make.py`).

use std::path::{Path, PathBuf};

use inpage::weights::{FileSource, Gguf};
use pollster::block_on;
use serde_json::Value;

use crate::{
    fixture::{Feed, computes, floats, ids, model, sequence},
    references::{assert_greedy, assert_parity},
};

/// Names and files of all models.
pub fn models() -> Vec<(String, PathBuf)> {
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

/// The reference in the metadata of a model.
pub fn reference(path: &Path) -> Value {
    let source = FileSource::open(path).expect("a model");
    let gguf = block_on(Gguf::read(&source)).expect("a GGUF");
    let text = gguf.metadata.str("inpage.reference").unwrap();
    serde_json::from_str(text.expect("a reference")).expect("JSON")
}

/// The tolerance of a model. It is larger for models with large activations, and for types of few bits, whose
/// sums are rounded.
pub fn tolerance(name: &str) -> f32 {
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
            let reference = reference(&path);
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
