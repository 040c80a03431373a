//! Steps that verify drafts have the bits of single tokens, and requests with drafts their tokens and scores.

use std::cell::Cell;
use std::path::PathBuf;
use std::pin::pin;
use std::rc::Rc;

use futures_util::{
    StreamExt,
    future::{Either, join_all, select},
};
use inpage::{
    Result,
    api::SystemHost,
    engine::{
        CausalModel, Chooser, Engine, EngineLimits, Input, MemoryCopy, ModelLimits, Row,
        SequenceMemory, Speculation, StepOutput,
        event::Event,
        generation::{DraftRules, Generation, SamplingParams, ScoreRequest, TokenScore},
    },
    model::Transformer,
    sample::DryParams,
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

/// A model that counts the steps that verify drafts.
struct Counted {
    model: Transformer,
    verified: Rc<Cell<usize>>,
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
        self.model.step(rows, chooser).await
    }

    fn verified_rows(&self) -> usize {
        self.model.verified_rows()
    }

    async fn verify(&mut self, row: Row<'_>, chooser: Chooser<'_>) -> Result<StepOutput> {
        self.verified.set(self.verified.get() + 1);
        self.model.verify(row, chooser).await
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
    let (engine, handle) = Engine::new(model.take().unwrap(), limits, Rc::new(SystemHost));
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
            Some(Counted { model, verified })
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
