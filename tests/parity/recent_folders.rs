//! Folders in the form of published checkpoints of recent models, each an archive in `models` with its reference
//! (`scripts/references/folders.py`): nested configurations, tensors of other parts, joined experts, blocks of MXFP4, heads
//! of a delta net in another order, 8-bit floats.

use std::{collections::BTreeSet, fs, path::Path};

use inpage::{
    model::{Checkpoint, LoadOptions, Quantize},
    ops::kv_memory::KvFormat,
    tensor_types::TensorType,
    weights::BytesSource,
};
use pollster::block_on;
use serde_json::Value;

use crate::{
    archive,
    fixture::{computes, floats, ids, load, sequence},
    folders::Folder,
    references::{assert_greedy, assert_parity},
};

/// A folder in memory, and its reference.
fn read(path: &Path) -> (Folder, Value) {
    let mut files = archive::files(&fs::read(path).expect("an archive"));
    let reference = files.remove("reference.json").expect("a reference");
    let reference = serde_json::from_slice(&reference).expect("JSON");
    (Folder(files), reference)
}

/// Names, files and references of all models.
fn models() -> Vec<(String, Folder, Value)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/parity/models");
    let files = fs::read_dir(folder).expect("the models");
    let mut paths: Vec<_> = files.map(|file| file.expect("a file").path()).collect();
    paths.retain(|path| path.extension().is_some_and(|ext| ext == "tar"));
    paths.sort();
    assert!(!paths.is_empty());
    let model = |path: &Path| {
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let (folder, reference) = read(path);
        (name, folder, reference)
    };
    paths.iter().map(|path| model(path)).collect()
}

fn options(quantize: &str) -> LoadOptions {
    LoadOptions {
        context_tokens: Some(512),
        kv_format: KvFormat::F32,
        quantize: Quantize::from_name(quantize).expect("a type"),
        ..LoadOptions::default()
    }
}

fn open(folder: &Folder, quantize: &str) -> Checkpoint<BytesSource<Vec<u8>>> {
    block_on(Checkpoint::open(folder, &options(quantize))).expect("a checkpoint")
}

/// The `general.architecture` of all models.
pub fn architectures() -> BTreeSet<String> {
    let architecture = |folder: &Folder| {
        let gguf = open(folder, "none").gguf;
        gguf.metadata
            .str("general.architecture")
            .unwrap()
            .unwrap()
            .to_owned()
    };
    models()
        .iter()
        .map(|(_, folder, _)| architecture(folder))
        .collect()
}

/// The tolerance of a model. It is larger where values are rounded to f16 or factors enlarge the logits.
fn tolerance(name: &str) -> f32 {
    let wide = ["fp8", "granite"].iter().any(|part| name.contains(part));
    if wide { 0.02 } else { 0.005 }
}

#[test]
fn folders_of_recent_models_meet_their_references() {
    let models = models();
    for (device, compute) in computes() {
        for (name, folder, reference) in &models {
            let what = format!("{name} on the {device}");
            let Checkpoint { gguf, source } = open(folder, "none");
            let model = load(compute.clone(), &gguf, &source, options("none"), |_, _| ());
            let mut model = block_on(model).unwrap_or_else(|error| panic!("{what}: {error}"));
            let mut kv = sequence(&model);
            let all = block_on(model.feed_all(&mut kv, &ids(&reference["ids"]))).unwrap();
            let last = floats(&reference["last_logits"]);
            let (row, tolerance) = (&all[all.len() - last.len()..], tolerance(name));
            assert_parity(&what, row, &last, tolerance);
            assert_greedy(&what, &all, &ids(&reference["greedy_next"]), tolerance);
        }
    }
}

/// Blocks of MXFP4 are kept, whatever type floats are converted to.
#[test]
fn blocks_of_mxfp4_are_kept() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/parity/models/gpt-oss-hf.tar");
    let (folder, _) = read(&path);
    for quantize in ["none", "q8_0"] {
        let gguf = open(&folder, quantize).gguf;
        for part in ["ffn_gate_exps", "ffn_up_exps", "ffn_down_exps"] {
            let tensor = gguf.tensor(&format!("blk.1.{part}.weight")).unwrap();
            assert_eq!(tensor.ty, TensorType::MXFP4, "{part}");
        }
    }
}
