//! Models with recurrent layers against their references, and their states: copied, restored and in batches.

use std::path::Path;
use std::pin::pin;
use std::rc::Rc;

use futures_util::{
    StreamExt,
    future::{Either, join_all, select},
};
use inpage::{
    api::SystemHost,
    engine::{
        CausalModel, Engine, EngineLimits, Input, MemoryCopy, SequenceMemory,
        event::Event,
        generation::{DraftRules, Generation, SamplingParams},
    },
    model::Transformer,
    text::Tokenizer,
    weights::{FileSource, Gguf},
};
use pollster::block_on;
use serde_json::Value;

use crate::{
    adapters::made,
    arithmetic::{MAX_DIVERGENCE, divergence},
    fixture::{Compute, Feed, computes, ids, json, model, npy, sequence},
    references::{assert_greedy, assert_parity},
    shared_models,
};

/// Files of a family: the name of the reference, the quantization, and the tolerance.
pub type Files = &'static [(&'static str, &'static str, f32)];

pub const LFM2: Files = &[
    ("lfm2", "F16", 0.02),
    ("lfm2", "Q4_0", 0.05),
    ("lfm2-k", "Q4_K_M", 0.05),
    ("lfm2moe", "Q8_0", 0.02),
];
pub const QWEN35: Files = &[
    ("qwen35", "F16", 0.02),
    ("qwen35", "Q4_0", 0.05),
    ("qwen35-k", "Q4_K_M", 0.05),
    ("qwen35-mtp", "Q4_0", 0.05),
    ("qwen35moe", "Q8_0", 0.02),
];
pub const GRANITE: Files = &[
    ("granite4", "F16", 0.02),
    ("granite4", "Q4_0", 0.05),
    ("granite4-k", "Q4_K_M", 0.05),
    ("granite4-moe", "Q8_0", 0.02),
];

/// A file of each kind of recurrence.
const FIRST: Files = &[LFM2[0], QWEN35[0], GRANITE[0]];

/// A file and what is known of it.
struct Case {
    what: String,
    model: Transformer,
    prompt: Vec<u32>,
    last: Vec<f32>,
    reference: Value,
    tolerance: f32,
}

fn case(folder: &Path, device: &str, compute: &Compute, file: (&str, &str, f32)) -> Case {
    let (name, quant, tolerance) = file;
    let reference = json(&folder.join(format!("refs/{name}.json")));
    Case {
        what: format!("{name}-{quant} on the {device}"),
        model: model(compute, &folder.join(format!("{name}-{quant}.gguf"))),
        prompt: ids(&reference["ids"]),
        last: npy(&folder.join(format!("refs/{name}-{quant}.last_logits.npy"))),
        reference: reference["quants"][quant].clone(),
        tolerance,
    }
}

fn folder() -> Option<std::path::PathBuf> {
    let folder = shared_models::folder()?.join("2026");
    if folder.is_dir() {
        return Some(folder);
    }
    println!("skipped: no models at {}", folder.display());
    None
}

fn on_each(files: Files, check: impl Fn(Case)) {
    let Some(folder) = folder() else {
        return;
    };
    for (device, compute) in computes() {
        for &file in files {
            check(case(&folder, device, &compute, file));
        }
    }
}

/// Whole prompts, chunks and single tokens; then the tokens that the device chooses.
fn meets_its_references(mut case: Case) {
    let Case {
        what,
        model,
        prompt,
        last,
        reference,
        tolerance,
    } = &mut case;
    let tolerance = *tolerance;
    let mut kv = sequence(model);
    let all = block_on(model.feed_all(&mut kv, prompt)).unwrap();
    let vocab = all.len() / prompt.len();
    last.truncate(vocab);
    let row = &all[all.len() - vocab..];
    assert_parity(&format!("{what}, prefill"), row, last, tolerance);
    // Two files have no other references than their last logits.
    if !reference.is_null() {
        let next = ids(&reference["greedy_next"]);
        assert_greedy(what, &all, &next, tolerance);
    }
    for tokens in [prompt.len(), 7, 1] {
        let mut kv = sequence(model);
        let mut row = Vec::new();
        for chunk in prompt.chunks(tokens) {
            row = block_on(model.feed(&mut kv, chunk)).unwrap();
        }
        let what = format!("{what}, {tokens} at a time");
        assert_parity(&what, &row, last, tolerance);
    }
    if reference.is_null() {
        return;
    }
    let mut kv = sequence(model);
    let chosen = block_on(model.feed_greedy(&mut kv, prompt, 40)).unwrap();
    let sure = sure_tokens(reference, tolerance);
    let greedy = ids(&reference["greedy"]);
    assert_eq!(chosen[..sure], greedy[..sure], "{what}, greedy");
}

/// Greedy tokens before the first that is chosen by less than `tolerance`.
fn sure_tokens(reference: &Value, tolerance: f32) -> usize {
    let margins = reference["greedy_margins"].as_array().unwrap();
    let unsure = margins
        .iter()
        .position(|it| it.as_f64().unwrap() < f64::from(tolerance));
    unsure.unwrap_or(margins.len())
}

#[test]
fn lfm2_meets_its_references() {
    on_each(LFM2, meets_its_references);
}

/// The rows of an adapter have no place among queries that lie between output gates.
#[test]
fn adapters_of_gated_queries_are_refused() {
    let Some(folder) = folder() else {
        return;
    };
    let path = folder.join("qwen35-F16.gguf");
    let mut model = model(&Compute::reference(), &path);
    for (tensor, cols, rows) in [("blk.3.attn_q", 160, 512), ("blk.3.attn_q", 160, 256)] {
        let adapter = made("qwen35", &format!("{tensor}.weight"), cols, rows);
        let error = block_on(model.set_adapters(&[(&adapter, 1.0)])).unwrap_err();
        let message = error.to_string();
        let expected = format!("the tensor \"{tensor}.weight\", which cannot be adapted");
        assert!(message.contains(&expected), "{message}");
    }
}

#[test]
fn qwen35_meets_its_references() {
    on_each(QWEN35, meets_its_references);
}

#[test]
fn granitehybrid_meets_its_references() {
    on_each(GRANITE, meets_its_references);
}

/// Its products are of bytes: the divergence of the distribution after the prompt, fed in several ways.
#[test]
fn the_cpu_device_diverges_little() {
    let Some(folder) = folder() else {
        return;
    };
    for file in [LFM2, QWEN35, GRANITE].concat() {
        let Case {
            what,
            mut model,
            prompt,
            last,
            ..
        } = case(&folder, "CPU", &Compute::cpu(), file);
        for tokens in [prompt.len(), 7, 1] {
            let mut kv = sequence(&model);
            let mut row = Vec::new();
            for chunk in prompt.chunks(tokens) {
                row = block_on(model.feed(&mut kv, chunk)).unwrap();
            }
            let nats = divergence(&last[..row.len()], &row);
            assert!(
                nats <= MAX_DIVERGENCE,
                "{what}, {tokens} at a time: {nats} nats"
            );
        }
    }
}

#[test]
fn prompts_become_the_tokens_of_their_references() {
    let Some(folder) = folder() else {
        return;
    };
    for (name, quant, _) in [LFM2, QWEN35, GRANITE].concat() {
        let reference = json(&folder.join(format!("refs/{name}.json")));
        let source = FileSource::open(folder.join(format!("{name}-{quant}.gguf"))).unwrap();
        let gguf = block_on(Gguf::read(&source)).unwrap();
        let tokenizer = Tokenizer::from_gguf(&gguf.metadata).unwrap();
        let prompt = reference["prompt"].as_str().unwrap();
        let found = tokenizer.encode(prompt, true).unwrap();
        assert_eq!(found, ids(&reference["ids"]), "{name}-{quant}");
    }
}

/// A memory with pages and a slot of its own. Prompts have up to 124 tokens, and 9 are added to them.
fn memory(number: u32) -> SequenceMemory {
    SequenceMemory {
        state: Some(number),
        ..SequenceMemory::new((3 * number..3 * number + 3).collect())
    }
}

fn bits(logits: &[f32]) -> Vec<u32> {
    logits.iter().map(|logit| logit.to_bits()).collect()
}

fn states_follow_their_sequences(mut case: Case) {
    let Case {
        what,
        model,
        prompt,
        last,
        tolerance,
        ..
    } = &mut case;
    let tolerance = *tolerance;
    let copy = |model: &mut Transformer, from, to| {
        model.copy(MemoryCopy::State { from, to }).unwrap();
    };
    // A prefix of a page, whose state is kept in slot 2.
    let mut kv = memory(0);
    block_on(model.prefill(&mut kv, Input::tokens(&prompt[..64]))).unwrap();
    copy(model, 0, 2);
    let at_page = kv.clone();
    let whole = block_on(model.feed(&mut kv, &prompt[64..])).unwrap();
    last.truncate(whole.len());
    assert_parity(what, &whole, last, tolerance);
    copy(model, 0, 3);
    let ahead = block_on(model.feed_greedy(&mut kv.clone(), &prompt[..1], 8)).unwrap();
    // Run-ahead is rolled back: the slot gets its state again.
    copy(model, 3, 0);
    let again = block_on(model.feed_greedy(&mut kv.clone(), &prompt[..1], 8)).unwrap();
    assert_eq!(again, ahead, "{what}, after a roll-back");
    // Another sequence hits the prefix.
    let mut hit = SequenceMemory {
        pages: vec![at_page.pages[0], 12, 13],
        state: Some(1),
        len_tokens: 64,
    };
    copy(model, 2, 1);
    let after_hit = block_on(model.feed(&mut hit, &prompt[64..])).unwrap();
    assert_eq!(bits(&after_hit), bits(&whole), "{what}, after a prefix hit");
    batches_equal_single_feeds(what, model, prompt);
    let slots = model.limits().state_slots as u32;
    assert!(
        model
            .copy(MemoryCopy::State { from: 0, to: slots })
            .is_err()
    );
    let unplaced = SequenceMemory {
        state: None,
        ..memory(0)
    };
    assert!(block_on(model.feed(&mut unplaced.clone(), &prompt[..1])).is_err());
}

/// Four sequences of different lengths, one of which starts with the batch.
fn batches_equal_single_feeds(what: &str, model: &mut Transformer, prompt: &[u32]) {
    let mut kvs: Vec<SequenceMemory> = (0..4).map(memory).collect();
    for (i, kv) in kvs.iter_mut().enumerate().skip(1) {
        block_on(model.prefill(kv, Input::tokens(&prompt[i..i * 11]))).unwrap();
    }
    for from in 0..4 {
        let to = from + 4;
        model.copy(MemoryCopy::State { from, to }).unwrap();
    }
    let steps: Vec<Vec<u32>> = (0..3)
        .map(|step| prompt[step * 4..][..4].to_vec())
        .collect();
    let mut alone = Vec::new();
    let mut single = kvs.clone();
    for tokens in &steps {
        for (kv, token) in single.iter_mut().zip(tokens) {
            alone.push(block_on(model.feed(kv, &[*token])).unwrap());
        }
    }
    for kv in &mut kvs {
        kv.state = kv.state.map(|slot| slot + 4);
    }
    for (step, tokens) in steps.iter().enumerate() {
        let rows = kvs.iter_mut().zip(tokens.iter().copied());
        let mut rows: Vec<_> = rows.collect();
        let logits = block_on(model.feed_batch(&mut rows)).unwrap();
        for (i, row) in logits.iter().enumerate() {
            let single = &alone[step * 4 + i];
            assert_eq!(bits(row), bits(single), "{what}, row {i} of batch {step}");
        }
    }
}

#[test]
fn states_of_lfm2_are_copied_restored_and_batched() {
    on_each(LFM2, states_follow_their_sequences);
}

#[test]
fn states_of_qwen35_are_copied_restored_and_batched() {
    on_each(QWEN35, states_follow_their_sequences);
}

#[test]
fn states_of_granitehybrid_are_copied_restored_and_batched() {
    on_each(GRANITE, states_follow_their_sequences);
}

fn generation(prompt: Vec<u32>, candidates: u32, seed: Option<i64>) -> Generation {
    Generation {
        prompt: prompt.into(),
        max_tokens: 24,
        candidates,
        sampling: SamplingParams {
            temperature: if seed.is_some() { 0.9 } else { 0.0 },
            seed: seed.unwrap_or(0),
            ..SamplingParams::default()
        },
        constraint: None,
        scores: None,
        prompt_scores: None,
        rules: None,
        stop_ids: vec![],
        drafts: DraftRules::default(),
    }
}

/// The tokens of each candidate of each request, and the cached tokens of its prompt.
type Answers = Vec<(Vec<Vec<u32>>, usize)>;

fn run(
    model: Transformer,
    limits: EngineLimits,
    requests: &[Generation],
    at_once: bool,
) -> Answers {
    let (engine, handle) = Engine::new(model, limits, Rc::new(SystemHost));
    let answer = async |request: &Generation| {
        let candidates = handle.submit(vec![request.clone()]).unwrap().remove(0);
        let cached = candidates[0].cached_prompt_tokens();
        let tokens = candidates.into_iter().map(async |mut events| {
            let mut tokens = vec![];
            while let Some(event) = events.next().await {
                match event {
                    Event::Token { id, .. } => tokens.push(id),
                    Event::Finished { .. } => {}
                    other => panic!("{other:?}"),
                }
            }
            tokens
        });
        (join_all(tokens).await, cached.get())
    };
    let all = async {
        if at_once {
            return join_all(requests.iter().map(answer)).await;
        }
        let mut answers = vec![];
        for request in requests {
            answers.push(answer(request).await);
        }
        answers
    };
    match block_on(select(pin!(all), pin!(engine.run()))) {
        Either::Left((answers, _)) => answers,
        Either::Right((ended, _)) => panic!("the engine ended: {ended:?}"),
    }
}

/// The engine with a real model: prefixes, candidates, stops inside of run-ahead and batches change no token.
#[test]
fn caching_and_concurrent_requests_do_not_change_tokens() {
    let Some(folder) = folder() else {
        return;
    };
    for (device, compute) in computes() {
        for &(name, quant, _) in FIRST {
            let what = format!("{name} on the {device}");
            let reference = json(&folder.join(format!("refs/{name}.json")));
            let story: Vec<u32> = ids(&reference["ids"])
                .into_iter()
                .cycle()
                .take(200)
                .collect();
            let load = || model(&compute, &folder.join(format!("{name}-{quant}.gguf")));
            let mut requests = vec![
                generation(story[..131].to_vec(), 1, None),
                generation(story[..188].to_vec(), 3, Some(3)),
                generation(story[..136].to_vec(), 1, Some(4)),
            ];
            let uncached = EngineLimits {
                max_cached_pages: 0,
                ..EngineLimits::default()
            };
            let stopped = run(load(), uncached.clone(), &requests[..1], false);
            requests[0].stop_ids = vec![stopped[0].0[0][10]];
            let alone = run(load(), uncached, &requests, false);
            assert!(alone.iter().all(|(_, cached)| *cached == 0), "{what}");
            for at_once in [false, true] {
                let kept = run(load(), EngineLimits::default(), &requests, at_once);
                for (kept, alone) in kept.iter().zip(&alone) {
                    assert_eq!(kept.0, alone.0, "{what}, at once: {at_once}");
                }
                if !at_once {
                    assert!(kept[1].1 >= 64, "{what}: {} cached", kept[1].1);
                }
            }
        }
    }
}
