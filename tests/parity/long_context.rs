//! Whole models at positions up to 32,768: rotations against those of the first positions, attention to
//! as many keys on one device against the other.

use std::path::Path;

use inpage::{
    model::{Checkpoint, Compute, LoadOptions, SequenceKv, Transformer, load},
    ops::step::PAGE_TOKENS,
    weights::LocalFiles,
};
use pollster::block_on;

use crate::fixture::{computes, ids, json, sequence};

const CONTEXT_TOKENS: usize = 32_768;

/// A tiny model whose file admits long sequences.
fn model(name: &str, compute: &Compute) -> Transformer {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/parity/models");
    let options = LoadOptions {
        context_tokens: Some(CONTEXT_TOKENS),
        ..LoadOptions::default()
    };
    let files = LocalFiles::at(path.join(name)).unwrap();
    let Checkpoint { mut gguf, source } = block_on(Checkpoint::open(&files, &options)).unwrap();
    let architecture = gguf.metadata.str("general.architecture").unwrap();
    let key = format!("{}.context_length", architecture.expect("a name"));
    gguf.metadata.insert(&key, CONTEXT_TOKENS as u64);
    block_on(load(compute.clone(), &gguf, &source, options, |_, _| ())).expect("a model that runs")
}

fn prompt(name: &str) -> Vec<u32> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/parity/models");
    ids(&json(&path.join(format!("{name}.json")))["ids"])
}

/// A token of a windowed model sees no further than its layers' windows, and rotations of keys and
/// queries by the same angle cancel: where a sequence lies does not matter once it is long enough.
#[test]
fn windows_at_32k_give_what_the_first_ones_give() {
    // Two layers with windows of 24.
    const SEEN: usize = 2 * 23;
    let ids = prompt("mistral-hf");
    assert!(ids.len() > SEEN + 20);
    for (name, compute) in computes() {
        let mut model = model("mistral-hf", &compute);
        let vocab = model.config().token_ids;
        let mut logits_at = |first: usize| {
            let mut kv = SequenceKv {
                len_tokens: first,
                ..sequence(&model)
            };
            let logits = block_on(model.feed_all(&mut kv, &ids)).unwrap();
            logits[SEEN * vocab..].to_vec()
        };
        let near = logits_at(0);
        for first in [4_096, 32_000, CONTEXT_TOKENS - ids.len()] {
            let far = logits_at(first);
            assert_close(&format!("{name} from {first}"), &far, &near, 2e-3);
        }
    }
}

/// A history of 32k tokens: the same page again and again, whose keys are as they were rotated once.
#[test]
fn attention_to_32k_keys_agrees_across_devices() {
    let ids = prompt("llama");
    let mut found: Vec<Vec<f32>> = Vec::new();
    for (_, compute) in computes() {
        let mut model = model("llama", &compute);
        let mut page = sequence(&model);
        block_on(model.feed_all(&mut page, &ids[..PAGE_TOKENS])).unwrap();
        let history = CONTEXT_TOKENS / PAGE_TOKENS - 2;
        let mut kv = SequenceKv {
            pages: vec![page.pages[0]; history],
            len_tokens: history * PAGE_TOKENS,
        };
        kv.pages.extend(&page.pages[1..3]);
        // A chunk through tiles, then single tokens.
        let mut logits = block_on(model.feed_all(&mut kv, &ids[..9])).unwrap();
        for id in &ids[9..12] {
            logits.extend(block_on(model.feed_all(&mut kv, &[*id])).unwrap());
        }
        found.push(logits);
    }
    let [on_cpu, on_gpu] = &found[..] else {
        panic!("two devices");
    };
    assert_close("32k keys", on_gpu, on_cpu, 0.01);
}

fn assert_close(what: &str, found: &[f32], wanted: &[f32], tolerance: f32) {
    assert_eq!(found.len(), wanted.len(), "{what}");
    for (i, (a, b)) in found.iter().zip(wanted).enumerate() {
        // False for NaN too.
        let is_close = (a - b).abs() <= tolerance;
        assert!(is_close, "{what}: {a}, not {b}, at {i}");
    }
}
