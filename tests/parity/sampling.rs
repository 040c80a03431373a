//! The tokens that the device samples and feeds itself equal those that the CPU's sampler samples from logits
//! that are read back.

use inpage::{
    Error, Result,
    engine::{self, CausalModel, Chooser, Input, RowSampler, SequenceMemory},
    model::Transformer,
    sample::{
        DryParams, MirostatParams, Sampled, Sampler, SamplingParams, ScoreRequest, TokenMask,
    },
};
use pollster::block_on;

use crate::{
    fixture::{Feed, computes, ids, json, model},
    shared_models,
};

/// The file for a device, and the folder of its reference. The CPU gets the smaller model.
fn file(device: &str) -> [&'static str; 2] {
    match device {
        "CPU" => ["stories260K/stories260K-F32.gguf", "stories260K"],
        _ => ["ts4m/ts4m-F16.gguf", "ts4m-hf"],
    }
}

/// Samplers that a batch may mix: one that draws, one that is greedy, and others.
fn kinds() -> Vec<SamplingParams> {
    let plain = SamplingParams {
        seed: 42,
        ..SamplingParams::default()
    };
    let dry = Some(DryParams {
        multiplier: 0.8,
        base: 1.75,
        allowed_length: 2,
        breakers: [13, 199].into(),
    });
    let mirostat = Some(MirostatParams {
        target_bits: 3.0,
        learning_rate: 0.1,
    });
    vec![
        SamplingParams {
            top_p: 0.95,
            temperature: 0.9,
            ..plain.clone()
        },
        SamplingParams {
            temperature: 0.0,
            frequency_penalty: 0.3,
            ..plain.clone()
        },
        SamplingParams {
            dry,
            top_k: Some(40),
            repetition_penalty: 1.1,
            ..plain.clone()
        },
        SamplingParams {
            mirostat,
            ..plain.clone()
        },
        SamplingParams {
            min_p: 0.05,
            logit_bias: vec![(13, 1.5), (7, -2.0)],
            presence_penalty: 0.5,
            ..plain
        },
    ]
}

struct Row {
    kv: SequenceMemory,
    sampler: Sampler,
    score: Option<ScoreRequest>,
    token: u32,
}

/// A row per sampler, with its prompt fed up to the last token.
fn rows(model: &mut Transformer, story: &[u32], kinds: &[SamplingParams]) -> Vec<Row> {
    let start = |(i, params): (usize, &SamplingParams)| {
        // With 60 more tokens, they fill a page.
        let prompt = &story[i..i + 3 + i % 2];
        let mut kv = SequenceMemory::new(vec![i as u32]);
        let (&token, fed) = prompt.split_last().unwrap();
        block_on(model.prefill(&mut kv, Input::tokens(fed))).unwrap();
        Row {
            kv,
            sampler: Sampler::new(params, i as u32, prompt),
            score: (i % 2 == 1).then_some(ScoreRequest {
                top: i,
                ..ScoreRequest::default()
            }),
            token,
        }
    };
    kinds.iter().enumerate().map(start).collect()
}

/// Samples `steps` tokens for each row on the device.
fn on_device(
    model: &mut Transformer,
    rows: &mut [Row],
    steps: usize,
    masks: Vec<Option<TokenMask>>,
) -> Vec<Vec<Result<Sampled>>> {
    let (mut inputs, mut samplers) = (Vec::new(), Vec::new());
    for row in rows.iter_mut() {
        inputs.push(engine::Row {
            memory: &mut row.kv,
            input: Input::tokens(std::slice::from_ref(&row.token)),
        });
        samplers.push(RowSampler {
            sampler: &mut row.sampler,
            score: row.score,
        });
    }
    let chooser = Chooser::Samplers {
        steps,
        samplers,
        masks: Box::new(|| masks),
    };
    let chosen = block_on(model.step(&mut inputs, chooser)).unwrap();
    let chosen = chosen.into_chosen().unwrap();
    for (row, chosen) in rows.iter_mut().zip(&chosen) {
        if let Some(Ok(last)) = chosen.last() {
            row.token = last.id;
        }
    }
    chosen
}

/// Samples on the host, from logits that are read back.
fn on_host(model: &mut Transformer, rows: &mut [Row], steps: usize) -> Vec<Vec<Sampled>> {
    let mut chosen = vec![Vec::new(); rows.len()];
    for _ in 0..steps {
        let inputs = rows.iter_mut().map(|row| (&mut row.kv, row.token));
        let mut inputs: Vec<(&mut SequenceMemory, u32)> = inputs.collect();
        let logits = block_on(model.feed_batch(&mut inputs)).unwrap();
        for ((row, mut logits), chosen) in rows.iter_mut().zip(logits).zip(&mut chosen) {
            let sampled = row.sampler.sample(&mut logits, None, row.score).unwrap();
            row.token = sampled.id;
            chosen.push(sampled);
        }
    }
    chosen
}

fn assert_same(found: &[Vec<Result<Sampled>>], expected: &[Vec<Sampled>], what: &str) {
    assert_eq!(found.len(), expected.len());
    for (row, (found, expected)) in found.iter().zip(expected).enumerate() {
        let what = format!("row {row} of {} {what}", expected.len());
        let found: Vec<&Sampled> = found.iter().map(|it| it.as_ref().unwrap()).collect();
        let of = |it: &Sampled| it.id;
        let found_ids: Vec<u32> = found.iter().map(|it| of(it)).collect();
        let expected_ids: Vec<u32> = expected.iter().map(of).collect();
        assert_eq!(found_ids, expected_ids, "{what}");
        for (found, expected) in found.iter().zip(expected) {
            assert_eq!(found.score.is_some(), expected.score.is_some());
            let (Some(a), Some(b)) = (&found.score, &expected.score) else {
                continue;
            };
            let close = |a: f32, b: f32| (a - b).abs() < 1e-4;
            assert!(close(a.logprob, b.logprob), "{what}: {a:?} {b:?}");
            assert_eq!(a.top.len(), b.top.len());
            let mut tops = a.top.iter().zip(&b.top);
            assert!(tops.all(|(a, b)| a.0 == b.0 && close(a.1, b.1)), "{what}");
        }
    }
}

#[test]
fn the_device_samples_the_same_tokens_as_the_cpu() {
    let Some(folder) = shared_models::folder() else {
        return;
    };
    for (device, compute) in computes() {
        let [file, reference] = file(device);
        let story = ids(&json(&folder.join(reference).join("ref.json"))["greedy_ids"]);
        let mut model = model(&compute, &folder.join(file));
        block_on(model.choose_on_device()).expect("kernels that choose");
        for kinds in [&kinds()[..1], &kinds()[..]] {
            let mut host = rows(&mut model, &story, kinds);
            let expected = on_host(&mut model, &mut host, 60);
            let mut rows = rows(&mut model, &story, kinds);
            let mut found: Vec<Vec<Result<Sampled>>> = vec![Vec::new(); kinds.len()];
            // More steps than the ring holds, then single steps, then with a sampler that continued on the host.
            for (round, steps) in [40, 1, 1, 8].into_iter().enumerate() {
                let chosen = on_device(&mut model, &mut rows, steps, vec![]);
                found
                    .iter_mut()
                    .zip(chosen)
                    .for_each(|(all, new)| all.extend(new));
                if round == 1 {
                    let alone = on_host(&mut model, &mut rows, 10);
                    for (found, alone) in found.iter_mut().zip(alone) {
                        found.extend(alone.into_iter().map(Ok));
                    }
                }
            }
            assert_same(&found, &expected, &format!("on the {device}"));
            for (row, host) in rows.iter().zip(&host) {
                assert_eq!(row.kv, host.kv);
                assert_eq!(row.sampler.position(), 60);
            }
        }
    }
}

/// A mask applies to one token. A dead end fails only its row. The host does what the device cannot.
#[test]
fn masks_dead_ends_and_what_the_device_cannot_do() {
    let Some(folder) = shared_models::folder() else {
        return;
    };
    let only = |id: u32| {
        let mut words = vec![0; id as usize / 32 + 1];
        words[id as usize / 32] = 1 << (id % 32);
        Some(TokenMask::from_words(words))
    };
    for (device, compute) in computes() {
        let [file, reference] = file(device);
        let story = ids(&json(&folder.join(reference).join("ref.json"))["greedy_ids"]);
        let mut model = model(&compute, &folder.join(file));
        block_on(model.choose_on_device()).expect("kernels that choose");
        let mut rows = rows(&mut model, &story, &kinds()[..3]);
        let masks = vec![only(77), Some(TokenMask::default())];
        let chosen = on_device(&mut model, &mut rows, 1, masks);
        assert_eq!(chosen[0][0].as_ref().unwrap().id, 77, "on the {device}");
        assert_eq!(chosen[1], [Err(Error::GrammarDeadEnd { position: 0 })]);
        assert!(chosen[2][0].is_ok());
        let positions: Vec<usize> = rows.iter().map(|row| row.sampler.position()).collect();
        assert_eq!(positions, [1, 0, 1]);
        let lengths: Vec<usize> = rows.iter().map(|row| row.kv.len_tokens).collect();
        assert_eq!(lengths, [3, 4, 3]);
        // All rows continue without masks, also the failed one.
        let chosen = on_device(&mut model, &mut rows, 2, vec![]);
        assert!(chosen.iter().flatten().all(Result::is_ok));
        // The device cannot report ten best tokens, so the host samples.
        let score = Some(ScoreRequest {
            top: 10,
            ..ScoreRequest::default()
        });
        assert!(model.samples(rows[0].sampler.params(), None));
        assert!(!model.samples(rows[0].sampler.params(), score));
        rows[0].score = score;
        let chosen = on_host(&mut model, &mut rows, 2);
        let score = chosen[0][1].score.as_ref();
        assert_eq!(score.unwrap().top.len(), 10, "on the {device}");
    }
}
