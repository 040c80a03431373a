//! Logits and greedy choices against references, in prefill and in decode. Also perplexity.

use inpage::{engine::CausalModel, model::Transformer, ops::kv_memory::KvFormat};
use pollster::block_on;

use crate::{
    fixture::{
        Compute, Feed, computes, ids, json, model, model_with, npy, perplexity, sequence, stories,
        windows,
    },
    shared_models,
};

/// Checks the rule of `docs/models.md`: logits within `tolerance`, and the same argmax if the best two are further apart.
pub fn assert_parity(what: &str, logits: &[f32], reference: &[f32], tolerance: f32) {
    assert_eq!(logits.len(), reference.len(), "{what}");
    let worst = logits
        .iter()
        .zip(reference)
        .map(|(a, b)| (a - b).abs())
        .fold(0.0, f32::max);
    assert!(worst <= tolerance, "{what}: off by {worst}");
    let best = |row: &[f32]| {
        (0..row.len())
            .max_by(|a, b| row[*a].total_cmp(&row[*b]))
            .unwrap()
    };
    let mut sorted = reference.to_vec();
    sorted.sort_by(|a, b| b.total_cmp(a));
    if sorted[0] - sorted[1] > tolerance {
        assert_eq!(best(logits), best(reference), "{what}: argmax");
    }
}

/// Checks the last logits after one prefill, in chunks, and token by token.
pub fn assert_last_logits(
    name: &str,
    model: &mut Transformer,
    ids: &[u32],
    reference: &[f32],
    tolerance: f32,
) {
    for tokens in [ids.len(), 7, 1] {
        let mut kv = sequence(model);
        let mut logits = Vec::new();
        for chunk in ids.chunks(tokens) {
            logits = block_on(model.feed(&mut kv, chunk)).unwrap();
        }
        assert_eq!(kv.len_tokens, ids.len());
        let what = format!("{name}, {tokens} at a time");
        assert_parity(&what, &logits, reference, tolerance);
    }
}

/// Checks that the reference's greedy token is the best of every row of `logits`, or within `tolerance` of it.
pub fn assert_greedy(what: &str, logits: &[f32], greedy: &[u32], tolerance: f32) {
    let rows = logits.chunks_exact(logits.len() / greedy.len());
    let differing = rows.zip(greedy).filter(|(row, want)| {
        let peak = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        peak - row[**want as usize] > tolerance
    });
    assert_eq!(differing.count(), 0, "{what}: greedy choices");
}

/// Families of `tiny`, and the tolerance for types of many bits.
pub const TINY: [(&str, f32); 5] = [
    ("llama3", 0.02),
    ("qwen2", 0.02),
    ("qwen3", 0.02),
    ("phi3", 0.02),
    ("gemma3", 0.05),
];

/// Every file of a family: the last logits, computed in each way, and the best token of every position.
fn meets_its_references(family: &str, files: usize) {
    let Some(folder) = shared_models::folder() else {
        return;
    };
    let (_, wide) = TINY.into_iter().find(|it| it.0 == family).unwrap();
    let reference = json(&folder.join(format!("tiny/refs/{family}.json")));
    let prompt = ids(&reference["ids"]);
    let mut met = 0;
    for (device, compute) in computes() {
        for ty in ["F16", "Q8_0", "Q6_K", "Q4_K_M", "Q4_0"] {
            let path = folder.join(format!("tiny/{family}-{ty}.gguf"));
            if !path.exists() {
                continue;
            }
            let tolerance = if ty.starts_with('Q') && ty != "Q8_0" {
                0.05
            } else {
                wide
            };
            let what = format!("{family} {ty} on the {device}");
            let logits = npy(&folder.join(format!("tiny/refs/{family}-{ty}.last_logits.npy")));
            // With exact keys and values.
            let mut model = model_with(&compute, &path, KvFormat::F32);
            assert_last_logits(&what, &mut model, &prompt, &logits, tolerance);
            let mut kv = sequence(&model);
            let all = block_on(model.feed_all(&mut kv, &prompt)).unwrap();
            let greedy = ids(&reference["quants"][ty]["greedy_next"]);
            assert_greedy(&what, &all, &greedy, tolerance);
            met += 1;
        }
    }
    assert_eq!(met, 2 * files, "files are missing");
}

// A test per family, so that both cores are busy until the end.
#[test]
fn tiny_llama3_meets_its_references() {
    meets_its_references("llama3", 5);
}

#[test]
fn tiny_qwen2_meets_its_references() {
    meets_its_references("qwen2", 2);
}

#[test]
fn tiny_qwen3_meets_its_references() {
    meets_its_references("qwen3", 5);
}

#[test]
fn tiny_phi3_meets_its_references() {
    meets_its_references("phi3", 2);
}

#[test]
fn tiny_gemma3_meets_its_references() {
    meets_its_references("gemma3", 2);
}

/// All prompt positions of real models, and their greedy continuations.
#[test]
fn real_models_meet_their_references() {
    let Some(folder) = shared_models::folder() else {
        return;
    };
    for (name, file, reference) in [
        (
            "stories260K F32",
            "stories260K/stories260K-F32.gguf",
            "stories260K",
        ),
        ("ts4m F16", "ts4m/ts4m-F16.gguf", "ts4m-hf"),
    ] {
        let json = json(&folder.join(reference).join("ref.json"));
        let logits = npy(&folder.join(reference).join("ref_logits_f32.npy"));
        let (prompt, greedy) = (ids(&json["ids"]), ids(&json["greedy_ids"]));
        for (device, compute) in computes() {
            let what = format!("{name} on the {device}");
            let mut model = model_with(&compute, &folder.join(file), KvFormat::F32);
            let vocab = model.limits().vocab_size;
            let mut kv = sequence(&model);
            let all = block_on(model.feed_all(&mut kv, &prompt)).unwrap();
            assert_eq!(all.len(), logits.len(), "{what}");
            for (i, (row, want)) in all
                .chunks_exact(vocab)
                .zip(logits.chunks_exact(vocab))
                .enumerate()
            {
                assert_parity(&format!("{what}, position {i}"), row, want, 0.02);
            }
            let mut kv = sequence(&model);
            let chosen =
                block_on(model.feed_greedy(&mut kv, &prompt, greedy.len() - prompt.len())).unwrap();
            assert_eq!(chosen, greedy[prompt.len()..], "{what}: greedy ids");
            assert_eq!(kv.len_tokens, greedy.len() - 1);
        }
    }
}

/// The quantized files of the real models: GPU against CPU, prefill and decode.
#[test]
fn quantized_real_models_agree_across_devices() {
    let Some(folder) = shared_models::folder() else {
        return;
    };
    let computes = computes();
    for (file, reference) in [
        ("stories260K/stories260K-Q8_0.gguf", "stories260K"),
        ("stories260K/stories260K-Q4_0.gguf", "stories260K"),
        ("ts4m/ts4m-Q8_0.gguf", "ts4m-hf"),
        ("ts4m/ts4m-Q4_0.gguf", "ts4m-hf"),
        ("ts4m/ts4m-Q4_K_M.gguf", "ts4m-hf"),
    ] {
        let prompt = ids(&json(&folder.join(reference).join("ref.json"))["ids"]);
        let [mut on_cpu, mut on_gpu] = [0, 1].map(|device: usize| {
            model_with(&computes[device].1, &folder.join(file), KvFormat::F32)
        });
        let mut kv = sequence(&on_cpu);
        let logits = block_on(on_cpu.feed(&mut kv, &prompt)).unwrap();
        assert_last_logits(file, &mut on_gpu, &prompt, &logits, 0.02);
    }
}

/// Perplexity (context 256) on every sixth window of the 60 stories is within 1 % of that on the CPU device, whose
/// perplexity on all of them is the listed one (`cpu_device.rs`).
#[test]
fn perplexity_is_that_of_the_cpu() {
    let Some(folder) = shared_models::folder() else {
        return;
    };
    for ty in ["F16", "Q8_0", "Q6_K", "Q4_K_M", "Q4_0"] {
        let path = folder.join(format!("ts4m/ts4m-{ty}.gguf"));
        let tokens = stories(&folder, &path);
        let (_, gpu) = computes().remove(1);
        let [found, on_cpu] = [gpu, Compute::cpu()].map(|compute| {
            let mut model = model(&compute, &path);
            perplexity(&mut model, windows(&tokens).step_by(6))
        });
        assert!(
            (found / on_cpu - 1.0).abs() < 0.01,
            "{ty}: {found}, on the CPU {on_cpu}"
        );
    }
}
