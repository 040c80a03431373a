//! Models in f16 and on bytes: bounds of their distance from the reference distribution and from f32.

use std::path::Path;

use inpage::{
    engine::CausalModel,
    model::Transformer,
    ops::{Arithmetic, Variant},
    weights::{FileSource, Gguf},
};
use pollster::block_on;

use crate::{
    fixture::{Compute, Feed, computes, ids, json, log_softmax, model, npy, sequence},
    shared_models,
};

/// Largest Kullback-Leibler divergence from the reference, in nats, and largest change of a
/// perplexity (`docs/models.md`).
pub const MAX_DIVERGENCE: f64 = 0.02;
pub const MAX_PERPLEXITY_CHANGE: f64 = 0.01;

/// The arithmetics that the device supports besides f32, each with the type of a file to test it with.
fn cases(compute: &Compute) -> Vec<(Compute, &'static str)> {
    let device = &compute.device;
    let variant = |matvec, matmul| Variant {
        matvec,
        matmul,
        rows_per_group: 4,
        ..Variant::PORTABLE
    };
    let i8 = variant(Arithmetic::I8, Arithmetic::I8);
    let mut cases = vec![(i8, "Q8_0"), (i8, "Q4_0")];
    if device.report().shader_f16 {
        let f16 = variant(Arithmetic::F32, Arithmetic::F16);
        cases.extend([(f16, "F16"), (f16, "Q4_0")]);
    }
    let on = |variant| Compute {
        device: device.clone(),
        variant,
    };
    let cases = cases.into_iter().map(|(variant, ty)| (on(variant), ty));
    cases.collect()
}

/// Logits after every token, fed all at once and one by one.
fn logits(model: &mut Transformer, prompt: &[u32]) -> [Vec<f32>; 2] {
    let mut kv = sequence(model);
    let together = block_on(model.feed_all(&mut kv, prompt)).unwrap();
    let mut kv = sequence(model);
    let mut alone = Vec::new();
    for id in prompt {
        alone.extend(block_on(model.feed(&mut kv, &[*id])).unwrap());
    }
    [together, alone]
}

/// Kullback-Leibler divergence, in nats.
pub fn divergence(reference: &[f32], logits: &[f32]) -> f64 {
    let (p, q) = (log_softmax(reference), log_softmax(logits));
    let terms = p.iter().zip(&q);
    terms
        .map(|(p, q)| f64::from(*p).exp() * f64::from(p - q))
        .sum()
}

#[test]
fn distributions_stay_close_to_the_reference() {
    let Some(folder) = shared_models::folder() else {
        return;
    };
    let prompt = ids(&json(&folder.join("ts4m-hf/ref.json"))["ids"]);
    let [(_, cpu), (_, gpu)] = computes().try_into().ok().expect("two devices");
    for (compute, ty) in cases(&gpu) {
        let path = folder.join(format!("ts4m/ts4m-{ty}.gguf"));
        // The loss of Q4_0 is a property of the file. The loss of the arithmetic is measured against f32.
        let reference = if ty == "Q4_0" {
            let mut model = model(&cpu, &path);
            let mut kv = sequence(&model);
            block_on(model.feed_all(&mut kv, &prompt)).unwrap()
        } else {
            npy(&folder.join("ts4m-hf/ref_logits_f32.npy"))
        };
        let mut model = model(&compute, &path);
        let vocab = model.limits().vocab_size;
        let variant = compute.variant;
        let arithmetics = [variant.matmul, variant.matvec];
        for (logits, arithmetic) in logits(&mut model, &prompt).iter().zip(arithmetics) {
            let rows = reference
                .chunks_exact(vocab)
                .zip(logits.chunks_exact(vocab));
            let worst = rows
                .map(|(reference, row)| divergence(reference, row))
                .fold(0.0, f64::max);
            let what = format!("{ty} in {}", arithmetic.name());
            println!("{what}: divergence {worst:.1e}");
            assert!(worst <= MAX_DIVERGENCE, "{what}: {worst}");
            let rounded = arithmetic != Arithmetic::F32;
            assert!(worst > 1e-7 || !rounded, "{what}: nothing was rounded");
        }
    }
}

/// Mean negative log-likelihoods of the second halves of windows of 256 tokens that are fed in chunks, and of
/// 128 tokens that are fed one by one.
fn losses(model: &mut Transformer, tokens: &[u32]) -> [f64; 2] {
    let mut together = 0.0;
    for window in tokens.chunks_exact(256) {
        let mut kv = sequence(model);
        let scores = block_on(model.score(&mut kv, &window[..255], &window[1..], 0)).unwrap();
        let logprobs = scores[128..].iter().map(|score| f64::from(score.logprob));
        together -= logprobs.sum::<f64>() / 127.0;
    }
    let mut alone = 0.0;
    let mut kv = sequence(model);
    for pair in tokens[..129].windows(2) {
        let logits = block_on(model.feed(&mut kv, &pair[..1])).unwrap();
        alone -= f64::from(log_softmax(&logits)[pair[1] as usize]) / 128.0;
    }
    [together / (tokens.len() / 256) as f64, alone]
}

#[test]
fn perplexities_stay_close_to_those_in_f32() {
    const WINDOWS: usize = 2;
    let Some(folder) = shared_models::folder() else {
        return;
    };
    let text = std::fs::read_to_string(folder.join("text/tinystories_heldout_60.txt")).unwrap();
    let (_, gpu) = computes().remove(1);
    let losses_of = |compute: &Compute, path: &Path| {
        let gguf = block_on(Gguf::read(&FileSource::open(path).unwrap())).unwrap();
        let tokenizer = inpage::text::Tokenizer::from_gguf(&gguf.metadata).unwrap();
        let tokens = tokenizer.encode(&text, true).unwrap();
        losses(&mut model(compute, path), &tokens[..WINDOWS * 256])
    };
    for (compute, ty) in cases(&gpu) {
        let path = folder.join(format!("ts4m/ts4m-{ty}.gguf"));
        let (exact, quick) = (losses_of(&gpu, &path), losses_of(&compute, &path));
        for (exact, quick) in exact.iter().zip(quick) {
            let change = (quick - exact).exp() - 1.0;
            let what = format!("{ty}, {}", compute.variant.name());
            println!("{what}: perplexity {:.4}, change {change:.6}", exact.exp());
            assert!(change.abs() <= MAX_PERPLEXITY_CHANGE, "{what}: {change}");
        }
    }
}
