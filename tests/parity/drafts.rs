//! Steps that verify drafts have the bits of single tokens, and requests with drafts their tokens and scores.

use std::cell::Cell;
use std::future::{Future, pending};
use std::path::PathBuf;
use std::pin::{Pin, pin};
use std::rc::Rc;

use futures_util::{
    StreamExt,
    future::{Either, join_all, select},
};
use inpage::{
    Result,
    engine::{
        CausalModel, Chooser, Clock, Engine, EngineLimits, Input, KnownText, MemoryCopy,
        ModelLimits, Row, SequenceMemory, Speculation, StepOutput,
        event::Event,
        generation::{DraftRules, Generation, SamplingParams, ScoreRequest, TokenScore},
    },
    model::{DraftModel, LoadOptions, Transformer, inspect},
    sample::DryParams,
    weights::{FileSource, Gguf},
};
use pollster::block_on;

use crate::{
    fixture::{Feed, all_computes, ids, json, model, sequence},
    shared_models,
};

/// Files, the JSON with ids of a text, and whether a GPU runs them too: one of plain attention, and the others, of each
/// kind of recurrence, of keys that layers share, of experts, of one bit.
const FILES: [(&str, &str, bool); 7] = [
    ("ts4m/ts4m-Q4_0.gguf", "ts4m-hf/ref.json", true),
    ("2026/qwen35-F16.gguf", "2026/refs/qwen35.json", true),
    ("2026/lfm2-Q4_0.gguf", "2026/refs/lfm2.json", false),
    ("2026/granite4-Q4_0.gguf", "2026/refs/granite4.json", false),
    ("2026/gemma4-Q4_0.gguf", "2026/refs/gemma4.json", false),
    ("2026/gpt-oss-MXFP4.gguf", "2026/refs/gpt-oss.json", false),
    ("2026/bonsai1-Q1_0.gguf", "2026/refs/bonsai1.json", false),
];

/// A loaded file with a text, for each device that runs it.
fn on_each(check: impl Fn(&str, &dyn Fn() -> Transformer, &[u32])) {
    let Some(folder) = shared_models::folder() else {
        return;
    };
    for (device, compute) in all_computes() {
        for (file, text, on_gpu) in FILES {
            let path: PathBuf = folder.join(file);
            if !path.exists() || (device == "GPU" && !on_gpu) {
                continue;
            }
            let text = ids(&json(&folder.join(text))["ids"]);
            let text: Vec<u32> = text.into_iter().cycle().take(100).collect();
            let what = format!("{file} on the {device}");
            check(&what, &|| model(&compute, &path), &text);
        }
    }
}

fn bits(logits: &[f32]) -> Vec<u32> {
    logits.iter().map(|logit| logit.to_bits()).collect()
}

#[test]
fn rows_of_a_draft_are_those_of_single_tokens() {
    on_each(|what, load, text| {
        let model = &mut load();
        let (prompt, rest) = text.split_at(60);
        let start = |model: &mut Transformer| {
            let mut memory = sequence(model);
            block_on(model.prefill(&mut memory, Input::tokens(prompt))).unwrap();
            memory
        };
        let mut memory = start(model);
        let singles: Vec<Vec<u32>> = (rest[..17].iter())
            .map(|id| bits(&block_on(model.feed(&mut memory, &[*id])).unwrap()))
            .collect();
        // Eight rows cross the end of a page.
        for rows in [2, 3, 8] {
            let mut memory = start(model);
            for (tokens, singles) in rest.chunks(rows).zip(singles.chunks(rows)).take(2) {
                let row = Row {
                    memory: &mut memory,
                    input: Input::tokens(tokens),
                };
                let output = block_on(model.verify(row, Chooser::Host)).unwrap();
                let logits = output.into_logits().unwrap();
                let found: Vec<Vec<u32>> = logits.iter().map(|row| bits(row)).collect();
                assert!(found == singles, "{rows} rows of {what}");
            }
            // The step after it, too.
            let next = block_on(model.feed(&mut memory, &rest[2 * rows..=2 * rows])).unwrap();
            assert!(bits(&next) == singles[2 * rows], "after {rows} of {what}");
        }
    });
}

/// A clock that steps move by fixed times. The engine drafts only where measured times say that it pays, so with the times of
/// a machine the number of drafts would depend on what else that machine does.
#[derive(Default)]
struct StepClock {
    ms: Cell<f64>,
}

impl StepClock {
    /// A token chosen by itself.
    const TOKEN_MS: f64 = 10.0;
    /// A row of a step that verifies, after the first.
    const ROW_MS: f64 = 3.0;
    /// A drafted token.
    const DRAFT_MS: f64 = 2.0;

    fn advance(&self, ms: f64) {
        self.ms.set(self.ms.get() + ms);
    }
}

impl Clock for StepClock {
    fn now_ms(&self) -> u64 {
        self.ms.get() as u64
    }

    fn monotonic_ms(&self) -> f64 {
        self.ms.get()
    }

    fn sleep_ms(&self, _duration_ms: u32) -> Pin<Box<dyn Future<Output = ()>>> {
        Box::pin(pending())
    }
}

/// A model that counts its drafts and the steps that verify drafts, and moves a clock.
struct Counted {
    model: Transformer,
    clock: Rc<StepClock>,
    verified: Rc<Cell<usize>>,
    drafted: Rc<Cell<usize>>,
}

impl CausalModel for Counted {
    fn limits(&self) -> ModelLimits {
        self.model.limits()
    }

    fn samples(&self, params: &SamplingParams, score: Option<ScoreRequest>) -> bool {
        self.model.samples(params, score)
    }

    async fn prefill(&mut self, memory: &mut SequenceMemory, input: Input<'_>) -> Result<()> {
        self.model.prefill(memory, input).await
    }

    async fn step(&mut self, rows: &mut [Row<'_>], chooser: Chooser<'_>) -> Result<StepOutput> {
        let steps = chooser.steps() as f64;
        self.clock.advance(StepClock::TOKEN_MS * steps);
        self.model.step(rows, chooser).await
    }

    fn verified_rows(&self) -> usize {
        self.model.verified_rows()
    }

    async fn verify(&mut self, row: Row<'_>, chooser: Chooser<'_>) -> Result<StepOutput> {
        self.verified.set(self.verified.get() + 1);
        let more_rows = (row.input.ids().len() - 1) as f64;
        self.clock
            .advance(StepClock::TOKEN_MS + StepClock::ROW_MS * more_rows);
        self.model.verify(row, chooser).await
    }

    fn drafts(&self) -> bool {
        self.model.drafts()
    }

    async fn prepare_draft(&mut self, text: KnownText<'_>) -> Result<()> {
        self.model.prepare_draft(text).await
    }

    async fn draft(
        &mut self,
        memory: &SequenceMemory,
        text: KnownText<'_>,
        count: usize,
    ) -> Result<Vec<u32>> {
        self.drafted.set(self.drafted.get() + 1);
        self.clock.advance(StepClock::DRAFT_MS * count as f64);
        self.model.draft(memory, text, count).await
    }

    async fn score(
        &mut self,
        memory: &mut SequenceMemory,
        tokens: &[u32],
        next: &[u32],
        top: usize,
    ) -> Result<Vec<TokenScore>> {
        self.model.score(memory, tokens, next, top).await
    }

    fn copy(&mut self, copy: MemoryCopy) -> Result<()> {
        self.model.copy(copy)
    }
}

/// The events of the requests, one request after the other.
fn run(
    model: &mut Option<Counted>,
    speculation: Speculation,
    requests: &[Generation],
) -> Vec<Vec<Vec<Event>>> {
    let limits = EngineLimits {
        speculation,
        max_cached_pages: 0,
        ..EngineLimits::default()
    };
    let model = model.take().unwrap();
    let clock = model.clock.clone();
    let (engine, handle) = Engine::new(model, limits, clock);
    let all = async {
        let mut answers = vec![];
        for request in requests {
            let candidates = handle.submit(vec![request.clone()]).unwrap().remove(0);
            let events = candidates.into_iter().map(StreamExt::collect::<Vec<Event>>);
            answers.push(join_all(events).await);
        }
        answers
    };
    match block_on(select(pin!(all), pin!(engine.run()))) {
        Either::Left((answers, _)) => answers,
        Either::Right((ended, _)) => panic!("the engine ended: {ended:?}"),
    }
}

fn requests(prompt: &[u32]) -> Vec<Generation> {
    let plain = Generation {
        prompt: prompt.to_vec().into(),
        max_tokens: 30,
        candidates: 1,
        sampling: SamplingParams {
            temperature: 0.0,
            ..SamplingParams::default()
        },
        constraint: None,
        scores: None,
        prompt_scores: None,
        rules: None,
        stop_ids: vec![],
        drafts: DraftRules::default(),
    };
    let drawn = SamplingParams {
        temperature: 0.9,
        top_p: 0.95,
        seed: 7,
        ..SamplingParams::default()
    };
    let adjusted = SamplingParams {
        repetition_penalty: 1.1,
        presence_penalty: 0.3,
        frequency_penalty: 0.2,
        logit_bias: vec![(13, 1.5), (7, -2.0)],
        dry: Some(DryParams {
            multiplier: 0.8,
            base: 1.75,
            allowed_length: 2,
            breakers: [13, 199].into(),
        }),
        ..drawn.clone()
    };
    let with = |sampling: SamplingParams| Generation {
        sampling,
        ..plain.clone()
    };
    let scores = Some(ScoreRequest {
        top: 3,
        ..ScoreRequest::default()
    });
    vec![
        plain.clone(),
        with(drawn.clone()),
        Generation {
            scores,
            ..with(adjusted.clone())
        },
        Generation {
            candidates: 2,
            ..with(drawn)
        },
        with(SamplingParams {
            temperature: 0.0,
            ..adjusted
        }),
    ]
}

/// The ids of a candidate, of which each seventh is another.
fn guess(events: &[Event]) -> Rc<[u32]> {
    let id = |event: &Event| match event {
        Event::Token { id, .. } => Some(*id),
        _ => None,
    };
    let ids = events.iter().filter_map(id).enumerate();
    ids.map(|(at, id)| if at % 7 == 6 { id / 2 } else { id })
        .collect()
}

/// Draft models with the vocabulary of their model: attention, and the same model, all of whose guesses are right.
#[test]
fn drafts_of_a_smaller_model_do_not_change_tokens() {
    let small = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/parity/models/llama.gguf");
    let Some(folder) = shared_models::folder() else {
        return;
    };
    let recurrent = folder.join("2026/qwen35-F16.gguf");
    for (device, compute) in all_computes() {
        for file in [&small, &recurrent] {
            // A GPU may be software, which is slow.
            if !file.exists() || (device == "GPU" && file == &recurrent) {
                continue;
            }
            let counted = || {
                let mut target = model(&compute, file);
                target.set_draft_model(DraftModel::new(model(&compute, file)));
                let (verified, drafted, clock) = Default::default();
                Counted {
                    model: target,
                    verified,
                    drafted,
                    clock,
                }
            };
            let prompt: Vec<u32> = (0..70).map(|at| at * at % 90 + 3).collect();
            let requests = &requests(&prompt)[..3];
            let what = format!("{} on the {device}", file.display());
            let alone = run(&mut Some(counted()), Speculation::Off, requests);
            let counted = counted();
            let (verified, drafted) = (counted.verified.clone(), counted.drafted.clone());
            let guessed = run(&mut Some(counted), Speculation::Model, requests);
            assert_eq!(guessed, alone, "{what}");
            let tokens: usize = guessed.iter().flatten().map(Vec::len).sum();
            assert!(drafted.get() > 5, "{} drafts of {what}", drafted.get());
            assert!(
                verified.get() < tokens / 4,
                "{} of {tokens}, {what}",
                verified.get()
            );
        }
    }
}

const MTP: &str = "2026/qwen35-mtp-Q4_0.gguf";

/// The drafts of the head after the prompt and the first tokens of its reference: computed with NumPy in f64 from the
/// formulas of llama.cpp's graph, with a decoder that gave the reference's tokens at all positions. The margins of the
/// logits are at least 0.13, on the CPU device, which rounds inputs to eight bits, at least 0.28.
const DRAFTS: [(usize, &[u32], usize); 3] = [
    (1, &[254, 0, 245, 587, 211, 523, 428], 0),
    (3, &[427, 782, 325], 3),
    (4, &[192, 694, 241], 0),
];

#[test]
fn a_head_drafts_what_its_reference_does() {
    let Some(folder) = shared_models::folder().filter(|it| it.join(MTP).exists()) else {
        return;
    };
    let reference = json(&folder.join("2026/refs/qwen35-mtp.json"));
    let prompt = ids(&reference["ids"]);
    let next = ids(&reference["quants"]["Q4_0"]["greedy"]);
    for (device, compute) in all_computes() {
        let model = &mut model(&compute, &folder.join(MTP));
        let mut memory = sequence(model);
        let draft = |model: &mut Transformer, memory: &SequenceMemory, at: usize| {
            let (known, expected, on_cpu) = DRAFTS[at];
            let text = KnownText {
                prompt: &prompt,
                chosen: &next[..known],
            };
            let found = block_on(model.draft(memory, text, expected.len())).unwrap();
            let count = if device == "CPU" {
                on_cpu
            } else {
                expected.len()
            };
            assert_eq!(found[..count], expected[..count], "{known} on the {device}");
        };
        // The prompt in two parts.
        block_on(model.prefill(&mut memory, Input::tokens(&prompt[..70]))).unwrap();
        block_on(model.feed(&mut memory, &prompt[70..])).unwrap();
        draft(model, &memory, 0);
        // Two right tokens and two wrong ones, after which the state passes through the right ones again.
        let state = memory.state.unwrap();
        let other = u32::from(state == 0);
        let copy = |model: &mut Transformer, from, to| {
            model.copy(MemoryCopy::State { from, to }).unwrap();
        };
        copy(model, state, other);
        let fed = [next[0], next[1], 5, 6];
        let row = Row {
            memory: &mut memory,
            input: Input::tokens(&fed),
        };
        block_on(model.verify(row, Chooser::Host)).unwrap();
        copy(model, other, state);
        memory.len_tokens = prompt.len();
        block_on(model.prefill(&mut memory, Input::tokens(&next[..2]))).unwrap();
        draft(model, &memory, 1);
        // A token by itself.
        block_on(model.feed(&mut memory, &next[2..3])).unwrap();
        draft(model, &memory, 2);
    }
}

/// K and V of the only layer with attention and of the head, for 64 pages of 64 tokens and 2 heads of 32 as f16.
#[test]
fn inspection_counts_the_head() {
    let Some(folder) = shared_models::folder().filter(|it| it.join(MTP).exists()) else {
        return;
    };
    let source = FileSource::open(folder.join(MTP)).unwrap();
    let gguf = block_on(Gguf::read(&source)).unwrap();
    let tensor_bytes: u64 = gguf.tensors.iter().map(|it| it.size_bytes).sum();
    let memory = inspect(&gguf, LoadOptions::default()).memory.unwrap();
    assert_eq!(memory.kv_bytes, 2 * 64 * 2 * 64 * 64 * 2);
    assert!(memory.weight_bytes > tensor_bytes * 9 / 10, "{memory:?}");
}

/// A head's drafts; on each device. The head of the file has random weights, so that they are seldom right.
#[test]
fn drafts_of_a_head_do_not_change_tokens() {
    let Some(folder) = shared_models::folder().filter(|it| it.join(MTP).exists()) else {
        return;
    };
    let text = ids(&json(&folder.join("2026/refs/qwen35-mtp.json"))["ids"]);
    for (device, compute) in all_computes() {
        let counted = || {
            let model = model(&compute, &folder.join(MTP));
            assert!(model.drafts(), "{device}");
            let (verified, drafted, clock) = Default::default();
            Counted {
                model,
                verified,
                drafted,
                clock,
            }
        };
        let alone = run(
            &mut Some(counted()),
            Speculation::Off,
            &requests(&text[..70]),
        );
        let counted = counted();
        let (verified, drafted) = (counted.verified.clone(), counted.drafted.clone());
        let guessed = run(
            &mut Some(counted),
            Speculation::Model,
            &requests(&text[..70]),
        );
        assert_eq!(guessed, alone, "{device}");
        assert!(
            drafted.get() > 5,
            "{} drafts on the {device}",
            drafted.get()
        );
        assert_eq!(drafted, verified, "{device}");
    }
}

/// Attention and a recurrence; on a GPU, which may be software, attention only.
#[test]
fn drafts_do_not_change_tokens() {
    on_each(|what, load, text| {
        let is_attention = what.starts_with(FILES[0].0);
        if !is_attention && (what.ends_with("GPU") || !what.starts_with(FILES[1].0)) {
            return;
        }
        // Twice, so that there is something to look up.
        let prompt: Vec<u32> = text[..40].iter().chain(&text[..20]).copied().collect();
        let mut requests = requests(&prompt);
        let verified = Rc::new(Cell::new(0));
        let counted = || {
            let mut model = load();
            if what.ends_with("GPU") {
                block_on(model.choose_on_device()).unwrap();
            }
            let verified = verified.clone();
            let (drafted, clock) = Default::default();
            Some(Counted {
                model,
                verified,
                drafted,
                clock,
            })
        };
        let alone = run(&mut counted(), Speculation::Off, &requests);
        assert_eq!(verified.get(), 0);
        for (request, events) in requests.iter_mut().zip(&alone) {
            request.drafts.prediction = Some(guess(&events[0]));
        }
        for speculation in [Speculation::Predictions, Speculation::All] {
            let guessed = run(&mut counted(), speculation, &requests);
            for (at, (guessed, alone)) in guessed.iter().zip(&alone).enumerate() {
                assert_eq!(guessed, alone, "request {at}, {speculation:?}, {what}");
            }
        }
        assert!(verified.get() > 5, "{} of {what}", verified.get());
    });
}
