//! Whole models at positions up to 32,768: rotations against those of the first positions, and attention to
//! up to 32,768 keys on one device against the other.

use std::path::{Path, PathBuf};

use inpage::{
    engine::SequenceMemory,
    model::{Checkpoint, LoadOptions, Transformer},
    ops::{kv_memory::KvFormat, step::PAGE_TOKENS},
    weights::LocalFiles,
};
use pollster::block_on;

use crate::{
    architectures::reference,
    fixture::{Compute, computes, ids, json, load, sequence},
};

const CONTEXT_TOKENS: usize = 32_768;

/// A tiny model whose metadata is changed to permit long sequences.
fn model(name: &str, compute: &Compute) -> Transformer {
    let options = LoadOptions {
        context_tokens: Some(CONTEXT_TOKENS),
        // At another position, a key is rotated differently and would be rounded to a different f16.
        kv_format: KvFormat::F32,
        ..LoadOptions::default()
    };
    let files = LocalFiles::at(models().join(name)).unwrap();
    let Checkpoint { mut gguf, source } = block_on(Checkpoint::open(&files, &options)).unwrap();
    let architecture = gguf.metadata.str("general.architecture").unwrap();
    let key = format!("{}.context_length", architecture.expect("a name"));
    gguf.metadata.insert(&key, CONTEXT_TOKENS as u64);
    block_on(load(compute.clone(), &gguf, &source, options, |_, _| ())).expect("a model that runs")
}

fn models() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/parity/models")
}

/// A token of a windowed model depends only on the tokens in its layers' windows, and rotations of keys and
/// queries by the same angle cancel. So the position of a sequence does not matter after its first tokens.
#[test]
fn windows_at_32k_equal_the_first_ones() {
    // Two layers with windows of 24.
    const SEEN: usize = 2 * 23;
    let ids = ids(&json(&models().join("mistral-hf.json"))["ids"]);
    assert!(ids.len() > SEEN + 20);
    for (name, compute) in computes() {
        let mut model = model("mistral-hf", &compute);
        let vocab = model.config().token_ids;
        let mut logits_at = |first: usize| {
            let mut kv = SequenceMemory {
                len_tokens: first,
                ..sequence(&model)
            };
            let logits = block_on(model.feed_all(&mut kv, &ids)).unwrap();
            logits[SEEN * vocab..].to_vec()
        };
        let near = logits_at(0);
        for first in [4_096, 32_000, CONTEXT_TOKENS - ids.len()] {
            let far = logits_at(first);
            assert_close(&format!("{name} from {first}"), &far, &near, 1e-3);
        }
    }
}

/// A long history that repeats one page, whose keys were rotated once.
#[test]
fn attention_to_32k_keys_agrees_across_devices() {
    let ids = ids(&reference(&models().join("llama.gguf"))["ids"]);
    // lavapipe ends the loops of a shader after 65,535 iterations in total, so many tokens attend to fewer keys.
    for (keys, at_a_time) in [(4_096, 9), (CONTEXT_TOKENS, 1)] {
        let mut found: Vec<Vec<f32>> = Vec::new();
        for (_, compute) in computes() {
            let mut model = model("llama.gguf", &compute);
            let mut page = sequence(&model);
            block_on(model.feed_all(&mut page, &ids[..PAGE_TOKENS])).unwrap();
            let history = keys / PAGE_TOKENS - 1;
            let mut kv = SequenceMemory {
                pages: vec![page.pages[0]; history],
                len_tokens: history * PAGE_TOKENS,
                ..SequenceMemory::default()
            };
            kv.pages.push(page.pages[1]);
            let mut logits = Vec::new();
            for tokens in ids[..9].chunks(at_a_time) {
                logits.extend(block_on(model.feed_all(&mut kv, tokens)).unwrap());
            }
            found.push(logits);
        }
        let [on_cpu, on_gpu] = &found[..] else {
            panic!("two devices");
        };
        assert_close(&format!("{keys} keys"), on_gpu, on_cpu, 0.001);
    }
}

fn assert_close(what: &str, found: &[f32], wanted: &[f32], tolerance: f32) {
    assert_eq!(found.len(), wanted.len(), "{what}");
    for (i, (a, b)) in found.iter().zip(wanted).enumerate() {
        // Also false for NaN.
        let is_close = (a - b).abs() <= tolerance;
        assert!(is_close, "{what}: {a}, not {b}, at {i}");
    }
}
