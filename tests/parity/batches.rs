//! Several sequences in one step: each gets the same logits as alone.

use std::path::Path;

use inpage::{
    engine::{CausalModel, Input, MemoryCopy, SequenceMemory},
    model::Transformer,
    ops::launches,
};
use pollster::block_on;

use crate::{
    fixture::{Feed, computes, computes_of_every_tiling, ids, json, model, sequence},
    shared_models,
};

/// A file, and the folder of its reference.
const MODELS: [(&str, &str); 3] = [
    ("stories260K/stories260K-F32.gguf", "stories260K"),
    ("ts4m/ts4m-F16.gguf", "ts4m-hf"),
    ("ts4m/ts4m-Q4_0.gguf", "ts4m-hf"),
];

/// Feeds one token to each sequence, for as many steps as there are rows of tokens.
fn batched(
    model: &mut Transformer,
    kvs: &mut [SequenceMemory],
    steps: &[Vec<u32>],
) -> Vec<Vec<f32>> {
    let mut logits = Vec::new();
    for tokens in steps {
        let mut rows: Vec<(&mut SequenceMemory, u32)> =
            kvs.iter_mut().zip(tokens.iter().copied()).collect();
        logits.extend(block_on(model.feed_batch(&mut rows)).unwrap());
    }
    logits
}

/// The same, one sequence at a time.
fn alone(model: &mut Transformer, kvs: &mut [SequenceMemory], steps: &[Vec<u32>]) -> Vec<Vec<f32>> {
    let mut logits = Vec::new();
    for tokens in steps {
        for (kv, token) in kvs.iter_mut().zip(tokens) {
            logits.push(block_on(model.feed(kv, &[*token])).unwrap());
        }
    }
    logits
}

#[test]
fn a_batch_equals_single_feeds_bit_for_bit() {
    let Some(folder) = shared_models::folder() else {
        return;
    };
    for (file, reference) in MODELS {
        let story = ids(&json(&folder.join(reference).join("ref.json"))["greedy_ids"]);
        for (device, compute) in computes_of_every_tiling() {
            let mut model = model(&compute, &folder.join(file));
            let prompt = &story[..10];
            let mut kv = sequence(&model);
            let greedy = block_on(model.feed_greedy(&mut kv, prompt, 6)).unwrap();
            // Each sequence has a page, and a history of different length and start.
            for sequences in [1, 2, 3, 8] {
                let what = format!("{sequences} sequences of {file} on the {device}");
                let mut kvs = Vec::new();
                for i in 0..sequences {
                    let mut kv = SequenceMemory::new(vec![i as u32]);
                    let history = &story[i..i * 5 + 1];
                    block_on(model.prefill(&mut kv, Input::tokens(history))).unwrap();
                    kvs.push(kv);
                }
                let steps: Vec<Vec<u32>> = (0..3)
                    .map(|step| (0..sequences).map(|i| story[i * 7 + step]).collect())
                    .collect();
                let (mut first, mut second) = (kvs.clone(), kvs.clone());
                let single = alone(&mut model, &mut first, &steps);
                // The batch starts from the same memory and writes the same places again.
                let batch = batched(&mut model, &mut second, &steps);
                assert_eq!(first, second, "{what}");
                assert!(single[0].iter().all(|logit| logit.is_finite()), "{what}");
                for (i, (a, b)) in batch.iter().zip(&single).enumerate() {
                    let differing = a
                        .iter()
                        .zip(b)
                        .position(|(a, b)| a.to_bits() != b.to_bits());
                    assert_eq!(differing, None, "{what}: row {i}");
                }
            }
            // Batches leave nothing behind that steps of a single sequence read.
            let mut kv = sequence(&model);
            let again = block_on(model.feed_greedy(&mut kv, prompt, 6)).unwrap();
            assert_eq!(again, greedy, "{file} on the {device}");
        }
    }
}

/// Two sequences share a full page and diverge in a copied page.
#[test]
fn sequences_share_pages_and_diverge_in_copies() {
    let Some(folder) = shared_models::folder() else {
        return;
    };
    let (file, reference) = MODELS[0];
    let story = ids(&json(&folder.join(reference).join("ref.json"))["greedy_ids"]);
    assert!(story.len() >= 70);
    for (device, compute) in computes() {
        let mut model = model(&compute, &folder.join(file));
        let mut kv = SequenceMemory::new(vec![5, 3]);
        block_on(model.prefill(&mut kv, Input::tokens(&story[..70]))).unwrap();
        let mut copied = SequenceMemory {
            pages: vec![5, 1],
            ..kv.clone()
        };
        model.copy(MemoryCopy::Page { from: 3, to: 1 }).unwrap();
        let ways = [[story[1], story[2]], [story[3], story[4]]];
        let expected = ways.map(|way| {
            let mut alone = kv.clone();
            way.map(|token| block_on(model.feed(&mut alone, &[token])).unwrap())
        });
        assert_ne!(expected[0], expected[1], "on the {device}");
        for step in 0..2 {
            let mut rows = [(&mut kv, ways[0][step]), (&mut copied, ways[1][step])];
            let logits = block_on(model.feed_batch(&mut rows)).unwrap();
            assert_eq!(logits[0], expected[0][step], "original on the {device}");
            assert_eq!(logits[1], expected[1][step], "copy on the {device}");
        }
        let to = model.limits().page_count as u32;
        assert!(model.copy(MemoryCopy::Page { from: 0, to }).is_err());
        let (from, to) = (0, 1);
        assert!(model.copy(MemoryCopy::State { from, to }).is_err());
    }
}

#[test]
fn empty_and_oversized_batches_are_refused() {
    let Some(folder) = shared_models::folder() else {
        return;
    };
    let (_, compute) = computes().remove(0);
    let mut model = model(&compute, &folder.join(MODELS[0].0));
    assert!(block_on(model.feed_batch(&mut [])).is_err());
    let mut kvs = vec![sequence(&model); model.limits().max_batch + 1];
    let mut rows: Vec<_> = kvs.iter_mut().map(|kv| (kv, 1)).collect();
    assert!(block_on(model.feed_batch(&mut rows)).is_err());
    assert!(kvs.iter().all(|kv| kv.len_tokens == 0));
}

/// A model on the GPU, and the dispatches of a step of one token without the choice of the next. The step is not replayed
/// from a graph, so each of its launches is counted.
fn counted(file: &Path) -> (usize, Transformer) {
    let (_, compute) = computes().remove(1);
    let mut model = model(&compute, file);
    let mut kv = sequence(&model);
    let before = launches();
    block_on(model.feed_all(&mut kv, &[1])).unwrap();
    ((launches() - before) as usize, model)
}

/// Six dispatches per layer and three per step, as docs/performance.md says.
#[test]
fn a_greedy_step_takes_six_dispatches_per_layer() {
    let Some(folder) = shared_models::folder() else {
        return;
    };
    let (counted, mut model) = counted(&folder.join(MODELS[0].0));
    assert_eq!(counted, 6 * model.config().layers.len() + 2);
    let mut kv = sequence(&model);
    block_on(model.feed_greedy(&mut kv, &[1], 2)).unwrap();
    assert_eq!(model.decode_dispatches(), counted + 1);
}

/// As docs/performance.md says. A recurrent layer of Qwen3.5 takes projections, convolution, recurrence, gated norm, output, and
/// two dispatches of the feed-forward layer: no copy of a state is among them. Its layers of attention have products for
/// queries, gates, keys and values, and a dispatch for the gates.
///
/// A layer of Gemma 4 takes six, one more for each of the two norms after products, and four for its inputs.
#[test]
fn layers_of_newer_models_take_few_dispatches() {
    let Some(folder) = shared_models::folder().map(|folder| folder.join("2026")) else {
        return;
    };
    if !folder.is_dir() {
        println!("skipped: no models at {}", folder.display());
        return;
    }
    let (found, model) = counted(&folder.join("qwen35-Q4_0.gguf"));
    let layers = &model.config().layers;
    let recurrent = layers.iter().filter(|layer| layer.mixing.recurs()).count();
    let of_layers = 7 * recurrent + 10 * (layers.len() - recurrent);
    assert_eq!(found, of_layers + 2, "Qwen3.5");
    let (found, model) = counted(&folder.join("gemma4-Q4_0.gguf"));
    assert_eq!(found, 12 * model.config().layers.len() + 4, "Gemma 4");
}
