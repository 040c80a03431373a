//! Keys and values in fewer bits: bounds of how far they change the distributions of a real model.

use inpage::{
    Error,
    engine::CausalModel,
    model::LoadOptions,
    ops::kv_memory::KvFormat,
    weights::{FileSource, Gguf},
};
use pollster::block_on;

use crate::{
    fixture::{
        Compute, Feed, computes, ids, json, load, log_softmax, model_with, npy, perplexity,
        sequence, stories, windows,
    },
    shared_models,
};

const FILE: &str = "ts4m/ts4m-F16.gguf";

/// All formats but that of exact keys and values.
fn inexact() -> impl Iterator<Item = KvFormat> {
    let formats = KvFormat::ALL.into_iter();
    formats.filter(|format| *format != KvFormat::F32)
}

/// Kullback-Leibler divergence of the distribution of `logits` from that of `reference`, in nats.
fn divergence(reference: &[f32], logits: &[f32]) -> f64 {
    let (p, q) = (log_softmax(reference), log_softmax(logits));
    let terms = p.iter().zip(&q).map(|(p, q)| {
        let (p, q) = (f64::from(*p), f64::from(*q));
        p.exp() * (p - q)
    });
    terms.sum()
}

/// `docs/models.md`: at most 0.02 at every position, in a prompt and token by token.
#[test]
fn distributions_stay_near_the_reference() {
    let Some(folder) = shared_models::folder() else {
        return;
    };
    let prompt = ids(&json(&folder.join("ts4m-hf/ref.json"))["ids"]);
    let reference = npy(&folder.join("ts4m-hf/ref_logits_f32.npy"));
    for (device, compute) in computes() {
        for format in inexact() {
            let mut model = model_with(&compute, &folder.join(FILE), format);
            let mut kv = sequence(&model);
            let fed = block_on(model.feed_all(&mut kv, &prompt)).unwrap();
            let mut kv = sequence(&model);
            let mut decoded = Vec::new();
            for id in &prompt {
                decoded.extend(block_on(model.feed(&mut kv, &[*id])).unwrap());
            }
            for logits in [fed, decoded] {
                assert_eq!(logits.len(), reference.len());
                let vocab = model.limits().vocab_size;
                let rows = reference
                    .chunks_exact(vocab)
                    .zip(logits.chunks_exact(vocab));
                let worst = rows.map(|(a, b)| divergence(a, b)).fold(0.0, f64::max);
                // A divergence of 0 would mean that the format is not used.
                assert!(
                    worst > 0.0 && worst <= 0.02,
                    "{format:?} on the {device}: {worst}"
                );
            }
        }
    }
}

/// Within 1 % of the perplexity with exact keys and values, on the same part of the stories.
#[test]
fn perplexity_stays_near_that_of_exact_keys_and_values() {
    let Some(folder) = shared_models::folder() else {
        return;
    };
    let path = folder.join(FILE);
    let tokens = stories(&folder, &path);
    let (_, compute) = computes().remove(1);
    let perplexity_of = |format| {
        let mut model = model_with(&compute, &path, format);
        perplexity(&mut model, windows(&tokens).step_by(6))
    };
    let exact = perplexity_of(KvFormat::F32);
    for format in inexact() {
        let found = perplexity_of(format);
        assert!(
            (found / exact - 1.0).abs() < 0.01,
            "{format:?}: {found}, exact {exact}"
        );
    }
}

#[test]
fn heads_that_are_not_whole_blocks_are_refused() {
    let Some(folder) = shared_models::folder() else {
        return;
    };
    let source = FileSource::open(folder.join("stories260K/stories260K-F32.gguf")).unwrap();
    let gguf = block_on(Gguf::read(&source)).unwrap();
    let options = LoadOptions {
        kv_format: KvFormat::Q8_0,
        ..LoadOptions::default()
    };
    let loaded = block_on(load(
        Compute::reference(),
        &gguf,
        &source,
        options,
        |_, _| (),
    ));
    let error = loaded.err().expect("heads of 8 elements");
    assert!(matches!(error, Error::UnsupportedModel(_)), "{error}");
}

/// A pool with more memory than the longest sequence needs has space for other sequences.
#[test]
fn a_pool_may_hold_several_contexts() {
    let Some(folder) = shared_models::folder() else {
        return;
    };
    let source = FileSource::open(folder.join("stories260K/stories260K-F32.gguf")).unwrap();
    let gguf = block_on(Gguf::read(&source)).unwrap();
    let options = LoadOptions {
        context_tokens: Some(100),
        kv_pool_tokens: Some(1000),
        ..LoadOptions::default()
    };
    for (device, compute) in computes() {
        let loaded = block_on(load(compute, &gguf, &source, options, |_, _| ()));
        let mut model = loaded.unwrap();
        assert_eq!(
            (model.limits().context_tokens, model.limits().page_count),
            (100, 16)
        );
        // Pages at both ends of the memory give the same tokens, and a sequence may use the whole context.
        let answers = [[0, 1], [15, 14]].map(|pages| {
            let mut kv = sequence(&model);
            kv.pages = pages.to_vec();
            block_on(model.feed_greedy(&mut kv, &[1], 100)).unwrap()
        });
        assert_eq!(answers[0], answers[1], "on the {device}");
        let mut kv = sequence(&model);
        assert!(block_on(model.feed_greedy(&mut kv, &[1], 101)).is_err());
    }
}
