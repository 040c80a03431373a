//! The CPU device, whose products are of bytes: how far its models may be from the references. That the result of a
//! token does not depend on its company is tested with the other devices.

use inpage::{engine::CausalModel, ops::kv_memory::KvFormat};
use pollster::block_on;

use crate::{
    architectures::{models, reference},
    arithmetic::{MAX_DIVERGENCE, MAX_PERPLEXITY_CHANGE, divergence},
    fixture::{
        Compute, Feed, floats, ids, json, model, model_with, npy, perplexity, sequence, stories,
        windows,
    },
    references::TINY,
    shared_models,
};

/// Last logits in one prefill, in chunks of 7 and token by token, each near the reference distribution.
pub fn assert_near(what: &str, path: &std::path::Path, prompt: &[u32], reference: &[f32]) {
    let mut model = model_with(&Compute::cpu(), path, KvFormat::F32);
    for tokens in [prompt.len(), 7, 1] {
        let mut kv = sequence(&model);
        let mut row = Vec::new();
        for chunk in prompt.chunks(tokens) {
            row = block_on(model.feed(&mut kv, chunk)).unwrap();
        }
        let divergence = divergence(reference, &row);
        assert!(
            divergence <= MAX_DIVERGENCE,
            "{what}, {tokens} at a time: divergence {divergence}"
        );
    }
}

#[test]
fn every_architecture_stays_near_its_reference() {
    for (name, path) in models() {
        let reference = reference(&path);
        let prompt = ids(&reference["ids"]);
        assert_near(&name, &path, &prompt, &floats(&reference["last_logits"]));
    }
}

#[test]
fn every_tiny_model_stays_near_its_reference() {
    let Some(folder) = shared_models::folder() else {
        return;
    };
    for (family, _) in TINY {
        let prompt = ids(&json(&folder.join(format!("tiny/refs/{family}.json")))["ids"]);
        for ty in ["F16", "Q8_0", "Q6_K", "Q4_K_M", "Q4_0"] {
            let path = folder.join(format!("tiny/{family}-{ty}.gguf"));
            if path.exists() {
                let logits = folder.join(format!("tiny/refs/{family}-{ty}.last_logits.npy"));
                assert_near(&format!("{family} {ty}"), &path, &prompt, &npy(&logits));
            }
        }
    }
}

/// Every position of a real model: against the unquantized reference where the file's bits are nearly as good, else
/// against the file in f32.
#[test]
fn distributions_of_a_real_model_stay_near_the_reference() {
    let Some(folder) = shared_models::folder() else {
        return;
    };
    let prompt = ids(&json(&folder.join("ts4m-hf/ref.json"))["ids"]);
    for ty in ["F16", "Q8_0", "Q6_K", "Q4_K_M", "Q4_0"] {
        let path = folder.join(format!("ts4m/ts4m-{ty}.gguf"));
        let all = |compute: &Compute| {
            let mut model = model(compute, &path);
            let mut kv = sequence(&model);
            let all = block_on(model.feed_all(&mut kv, &prompt)).unwrap();
            (all, model.limits().vocab_size)
        };
        let (found, vocab) = all(&Compute::cpu());
        let reference = match ty {
            "F16" | "Q8_0" => npy(&folder.join("ts4m-hf/ref_logits_f32.npy")),
            _ => all(&Compute::reference()).0,
        };
        let rows = reference.chunks_exact(vocab).zip(found.chunks_exact(vocab));
        let worst = rows
            .map(|(reference, row)| divergence(reference, row))
            .fold(0.0, f64::max);
        println!("{ty}: divergence {worst:.1e}");
        assert!(worst <= MAX_DIVERGENCE, "{ty}: {worst}");
    }
}

/// Perplexity on the 60 stories, as `docs/models.md` lists it (context 256).
#[test]
fn perplexities_are_the_listed_ones() {
    let Some(folder) = shared_models::folder() else {
        return;
    };
    for (file, listed) in [
        ("ts4m/ts4m-F16.gguf", 22.57),
        ("ts4m/ts4m-Q8_0.gguf", 22.56),
        ("ts4m/ts4m-Q6_K.gguf", 22.57),
        ("ts4m/ts4m-Q4_K_M.gguf", 22.67),
        ("ts4m/ts4m-Q4_0.gguf", 22.80),
    ] {
        let path = folder.join(file);
        let tokens = stories(&folder, &path);
        let mut model = model(&Compute::cpu(), &path);
        let perplexity = perplexity(&mut model, windows(&tokens));
        println!("{file}: perplexity {perplexity:.3}, listed {listed}");
        assert!(
            (perplexity / listed - 1.0).abs() < MAX_PERPLEXITY_CHANGE,
            "{file}: {perplexity}, listed {listed}"
        );
    }
}
