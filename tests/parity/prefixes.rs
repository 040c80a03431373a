//! Prompts that are cut in several ways, start from pages of earlier prompts, or run beside other requests
//! give the same bits and the same tokens.

use futures_util::{
    StreamExt,
    future::{join_all, select},
};
use inpage::{
    api::SystemHost,
    engine::{
        CausalModel, Engine, EngineLimits, Input, SequenceMemory,
        event::Event,
        generation::{DraftRules, Generation, SamplingParams},
    },
    model::Transformer,
};
use pollster::block_on;
use std::{path::Path, pin::pin, rc::Rc};

use crate::{
    fixture::{Compute, Feed, all_computes, ids, json, model, sequence},
    shared_models,
};

const FILE: &str = "ts4m/ts4m-Q4_0.gguf";

/// Tokens of a story, repeated to be long enough.
fn story(folder: &Path, tokens: usize) -> Vec<u32> {
    let reference = json(&folder.join("ts4m-hf/ref.json"));
    let ids = [ids(&reference["ids"]), ids(&reference["greedy_ids"])].concat();
    ids.into_iter().cycle().take(tokens).collect()
}

fn bits(logits: &[f32]) -> Vec<u32> {
    logits.iter().map(|logit| logit.to_bits()).collect()
}

/// Feeds a prompt in chunks that end at `cuts`. Returns the bits of the logits after it.
fn fed_in(
    model: &mut Transformer,
    kv: &mut SequenceMemory,
    prompt: &[u32],
    cuts: &[usize],
) -> Vec<u32> {
    for cut in cuts {
        let chunk = &prompt[kv.len_tokens..*cut];
        block_on(model.prefill(kv, Input::tokens(chunk))).unwrap();
    }
    let rest = &prompt[kv.len_tokens..];
    bits(&block_on(model.feed(kv, rest)).unwrap())
}

/// The guarantee of [`CausalModel::few_tokens`].
#[test]
fn steps_of_more_than_a_few_tokens_round_in_the_same_way() {
    let Some(folder) = shared_models::folder() else {
        return;
    };
    for (device, compute) in all_computes() {
        let mut model = model(&compute, &folder.join(FILE));
        // The contents that another sequence leaves in the pages are not read.
        let mut kv = sequence(&model);
        fed_in(&mut model, &mut kv, &story(&folder, 310)[7..], &[]);
        for (tokens, ways) in [
            (270, &[&[64][..], &[9, 18, 100], &[128, 192, 250]][..]),
            (261, &[&[128]]),
        ] {
            let prompt = story(&folder, tokens);
            let mut kv = sequence(&model);
            let whole = fed_in(&mut model, &mut kv, &prompt, &[]);
            for cuts in ways {
                let mut kv = sequence(&model);
                let cut = fed_in(&mut model, &mut kv, &prompt, cuts);
                assert_eq!(
                    cut, whole,
                    "{tokens} tokens cut at {cuts:?} on the {device}"
                );
            }
        }
    }
}

fn generation(prompt: Vec<u32>, seed: Option<i64>) -> Generation {
    Generation {
        prompt: prompt.into(),
        max_tokens: 40,
        candidates: 1,
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

/// The tokens of each request and the number of cached tokens of its prompt. Requests run all at once, or one
/// after the other.
fn run(
    compute: &Compute,
    folder: &Path,
    limits: EngineLimits,
    requests: &[Generation],
    at_once: bool,
) -> Vec<(Vec<u32>, usize)> {
    let model = model(compute, &folder.join(FILE));
    let (engine, handle) = Engine::new(model, limits, Rc::new(SystemHost));
    let answer = async |request: &Generation| {
        let mut events = handle.submit(vec![request.clone()]).unwrap();
        let mut events = events.remove(0).remove(0);
        let cached = events.cached_prompt_tokens();
        let mut tokens = vec![];
        while let Some(event) = events.next().await {
            match event {
                Event::Token { id, .. } => tokens.push(id),
                Event::Finished { .. } => {}
                other => panic!("{other:?}"),
            }
        }
        (tokens, cached.get())
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
        futures_util::future::Either::Left((answers, _)) => answers,
        futures_util::future::Either::Right((ended, _)) => panic!("the engine ended: {ended:?}"),
    }
}

#[test]
fn caching_and_concurrent_requests_do_not_change_tokens() {
    let Some(folder) = shared_models::folder() else {
        return;
    };
    let uncached = EngineLimits {
        max_cached_pages: 0,
        ..EngineLimits::default()
    };
    for (device, compute) in all_computes() {
        // They begin alike; behind the last whole page come 3, 60, 8 and 9 tokens.
        let requests: Vec<Generation> = [131, 188, 136, 73]
            .into_iter()
            .zip([None, Some(3), Some(4), None])
            .map(|(tokens, seed)| {
                let mut prompt = story(&folder, tokens);
                prompt[tokens - 2] = tokens as u32;
                generation(prompt, seed)
            })
            .collect();
        let alone = run(&compute, &folder, uncached.clone(), &requests, false);
        assert!(alone.iter().all(|(tokens, _)| tokens.len() == 40));
        assert!(alone.iter().all(|(_, cached)| *cached == 0));
        let tokens = |answers: &[(Vec<u32>, usize)]| {
            answers
                .iter()
                .map(|(tokens, _)| tokens.clone())
                .collect::<Vec<_>>()
        };
        for at_once in [false, true] {
            let limits = EngineLimits::default();
            let kept = run(&compute, &folder, limits, &requests, at_once);
            assert_eq!(tokens(&kept), tokens(&alone), "on the {device}");
            let cached: Vec<_> = kept.iter().map(|(_, cached)| *cached).collect();
            assert_eq!(cached, [0, 128, 128, 64], "on the {device}");
        }
    }
}
