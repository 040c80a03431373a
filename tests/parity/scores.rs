//! Scores of prompts, against references, against decode, and against the host's arithmetic.

use std::path::Path;

use inpage::{
    Error,
    engine::{CausalModel, Input},
    model::LoadOptions,
    sample::TokenScore,
    weights::{BytesSource, Gguf},
};
use pollster::block_on;

use crate::{
    fixture::{Feed, computes, ids, json, load, log_softmax, model, npy, sequence},
    shared_models,
};

const TOP: usize = 5;

/// Checks that scores are those of `logits` `[tokens, vocab]`, within `tolerance`.
fn assert_scores(what: &str, scores: &[TokenScore], logits: &[f32], next: &[u32], tolerance: f32) {
    assert_eq!(scores.len(), next.len(), "{what}");
    let vocab = logits.len() / next.len();
    for (i, ((score, row), &next)) in scores
        .iter()
        .zip(logits.chunks_exact(vocab))
        .zip(next)
        .enumerate()
    {
        let what = format!("{what}, position {i}");
        let logprobs = log_softmax(row);
        assert_eq!(score.id, next, "{what}");
        assert_eq!(score.raw_logprob, score.logprob, "{what}");
        let off = (score.logprob - logprobs[next as usize]).abs();
        assert!(
            score.logprob <= 0.0 && off <= tolerance,
            "{what}: off by {off}"
        );
        let mut sorted = logprobs.clone();
        sorted.sort_by(|a, b| b.total_cmp(a));
        assert_eq!(score.top.len(), TOP, "{what}");
        for (k, &(id, logprob)) in score.top.iter().enumerate() {
            // The k-th best token; close ones may be swapped.
            let off = (logprob - sorted[k])
                .abs()
                .max((logprob - logprobs[id as usize]).abs());
            assert!(off <= tolerance, "{what}, best {k}: off by {off}");
            assert!(
                !score.top[..k].iter().any(|(other, _)| *other == id),
                "{what}"
            );
            if id == next {
                assert_eq!(logprob.to_bits(), score.logprob.to_bits(), "{what}");
            }
        }
    }
}

#[test]
fn scores_meet_references_and_decoding() {
    let Some(folder) = shared_models::folder() else {
        return;
    };
    for (file, reference) in [
        ("stories260K/stories260K-F32.gguf", "stories260K"),
        ("ts4m/ts4m-F16.gguf", "ts4m-hf"),
    ] {
        let prompt = ids(&json(&folder.join(reference).join("ref.json"))["ids"]);
        let logits = npy(&folder.join(reference).join("ref_logits_f32.npy"));
        let mut next = prompt[1..].to_vec();
        next.push(7);
        for (device, compute) in computes() {
            let what = format!("{file} on the {device}");
            let mut model = model(&compute, &folder.join(file));
            let mut kv = sequence(&model);
            let scores = block_on(model.score(&mut kv, &prompt, &next, TOP)).unwrap();
            assert_eq!(kv.len_tokens, prompt.len());
            assert_scores(&what, &scores, &logits, &next, 0.01);
            // In two parts, the second of a single token.
            let mut kv = sequence(&model);
            let (last, most) = prompt.split_last().unwrap();
            let mut parts = block_on(model.score(&mut kv, most, &next[..most.len()], TOP)).unwrap();
            let last = block_on(model.score(&mut kv, &[*last], &next[most.len()..], TOP));
            parts.extend(last.unwrap());
            assert_scores(&what, &parts, &logits, &next, 0.01);
            let mut kv = sequence(&model);
            let mut decoded = Vec::new();
            for id in &prompt {
                decoded.extend(block_on(model.feed(&mut kv, &[*id])).unwrap());
            }
            assert_scores(&format!("{what}, decoded"), &scores, &decoded, &next, 0.05);
        }
    }
}

/// Scores over several chunks and parts of chunks equal those that the host computes from the same logits.
#[test]
fn scores_of_a_long_prompt_equal_the_hosts() {
    let Some(folder) = shared_models::folder() else {
        return;
    };
    let story = ids(&json(&folder.join("ts4m-hf/ref.json"))["greedy_ids"]);
    let prompt: Vec<u32> = story.iter().copied().cycle().take(301).collect();
    let (tokens, next) = (&prompt[..300], &prompt[1..]);
    for (device, compute) in computes() {
        let mut model = model(&compute, &folder.join("ts4m/ts4m-Q4_0.gguf"));
        let mut kv = sequence(&model);
        let logits = block_on(model.feed_all(&mut kv, tokens)).unwrap();
        let mut kv = sequence(&model);
        let scores = block_on(model.score(&mut kv, tokens, next, TOP)).unwrap();
        assert_scores(&format!("on the {device}"), &scores, &logits, next, 0.001);
        // Scored tokens are in the KV cache, and the next token attends to them.
        let after = block_on(model.feed(&mut kv, &[prompt[300]])).unwrap();
        let mut kv = sequence(&model);
        block_on(model.prefill(&mut kv, Input::tokens(tokens))).unwrap();
        let expected = block_on(model.feed(&mut kv, &[prompt[300]])).unwrap();
        assert_eq!(after, expected, "on the {device}");
    }
}

#[test]
fn more_best_tokens_than_there_are() {
    let Some(folder) = shared_models::folder() else {
        return;
    };
    for (device, compute) in computes() {
        let mut model = model(&compute, &folder.join("stories260K/stories260K-F32.gguf"));
        let mut kv = sequence(&model);
        let vocab = model.limits().vocab_size;
        let all = block_on(model.score(&mut kv, &[1], &[2], vocab + 1)).unwrap();
        assert_eq!(all[0].top.len(), vocab);
        for pair in all[0].top.windows(2) {
            assert!(pair[0].1 >= pair[1].1, "{pair:?} on the {device}");
        }
        assert!(all[0].top.contains(&(2, all[0].logprob)), "on the {device}");
        let outside = block_on(model.score(&mut kv, &[1], &[vocab as u32], 0));
        assert!(outside.is_err());
    }
}

/// A model whose logits are NaN reports an error wherever they would be used.
#[test]
fn invalid_logits_are_refused() {
    let Some(folder) = shared_models::folder() else {
        return;
    };
    let file = with_nan(&folder.join("stories260K/stories260K-F32.gguf"));
    let source = BytesSource(file);
    let gguf = block_on(Gguf::read(&source)).unwrap();
    for (device, compute) in computes() {
        let options = LoadOptions::default();
        let mut model = block_on(load(compute, &gguf, &source, options, |_, _| ())).unwrap();
        let mut kv = sequence(&model);
        let scored = block_on(model.score(&mut kv, &[1, 2], &[2, 3], 2));
        let expected = Error::InvalidLogits { position: 1 };
        assert_eq!(scored, Err(expected), "on the {device}");
        let mut kv = sequence(&model);
        let chosen = block_on(model.feed_greedy(&mut kv, &[1, 2], 2));
        let expected = Error::InvalidLogits { position: 0 };
        assert_eq!(chosen, Err(expected), "on the {device}");
    }
}

/// The file with a NaN in the last norm.
fn with_nan(path: &Path) -> Vec<u8> {
    let mut bytes = std::fs::read(path).expect("a model");
    let gguf = block_on(Gguf::read(&BytesSource(bytes.as_slice()))).expect("a GGUF");
    let norm = gguf.tensor("output_norm.weight").expect("a norm");
    let at = norm.offset_bytes as usize;
    bytes[at..at + 4].copy_from_slice(&f32::NAN.to_le_bytes());
    bytes
}
