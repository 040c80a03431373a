//! Measures what guessed tokens gain: the same requests with guesses and without, in turn. The ratio of their rates is the
//! result, so that a busy machine disturbs it little.

use std::{path::Path, pin::pin, rc::Rc, time::Instant};

use futures_util::{
    StreamExt,
    future::{Either, join, select},
};
use inpage::{
    api::SystemHost,
    engine::{
        Engine, EngineLimits, Speculation,
        event::Event,
        generation::{DraftRules, Generation, SamplingParams},
    },
    model::{Checkpoint, DraftModel, LoadOptions, Transformer},
    runtime::{Tuning, start},
    text::Tokenizer,
    weights::LocalFiles,
};
use serde_json::json;

use crate::{
    Outcome,
    machine::{Machine, round},
    options::Options,
    timing::{median, seconds},
};

const ROUNDS: usize = 3;

const STORY: &str = "The harbour master keeps a book of every ship that enters the bay. On the first page he writes \
the name of the ship, where it comes from, and what it carries. On the second page he writes how long it will stay and \
who pays for the berth. A ship that stays longer than seven days pays twice. Nobody knows why it is seven days and not \
ten, but the rule is older than the harbour wall, and the wall is older than the town.\n";

/// A prompt, the sampling temperature, and the text that the request expects.
struct Task {
    name: &'static str,
    prompt: String,
    temperature: f32,
    prediction: Option<String>,
}

fn tasks() -> [Task; 4] {
    let changed = STORY.replace("harbour", "station").replace("ship", "train");
    [
        Task {
            name: "repeat",
            prompt: format!("{STORY}\nThe same text once more:\n\n{}", &STORY[..60]),
            temperature: 0.0,
            prediction: None,
        },
        Task {
            name: "edit",
            prompt: format!("{STORY}\n{changed}\n{STORY}\n{}", &changed[..60]),
            temperature: 0.0,
            prediction: Some(STORY.to_owned()),
        },
        Task {
            name: "new, greedy",
            prompt: "Here is a list of facts about the oceans and the animals that live there."
                .to_owned(),
            temperature: 0.0,
            prediction: None,
        },
        Task {
            name: "new, sampled",
            prompt: "A letter from a traveller to her sister, written on the way to the mountains."
                .to_owned(),
            temperature: 1.0,
            prediction: None,
        },
    ]
}

/// Measures the model at `path`.
pub async fn run(machine: &Machine, path: &Path, options: &Options) -> Outcome<()> {
    let load = LoadOptions {
        context_tokens: Some(1024 + options.tokens),
        ..options.load
    };
    let (model, tokenizer) = open(machine, path, load).await?;
    let (mut other, _) = open(machine, path, load).await?;
    if let Some(path) = &options.draft {
        let (draft, _) = open(machine, path, load).await?;
        other.set_draft_model(DraftModel::new(draft));
    }
    let engine = |model, speculation| {
        let limits = EngineLimits {
            speculation,
            ..EngineLimits::default()
        };
        Engine::new(model, limits, Rc::new(SystemHost))
    };
    let (plain, plain_handle) = engine(model, Speculation::Off);
    let (guessing, guessing_handle) = engine(other, Speculation::All);
    let measure = async {
        for task in tasks() {
            let generation = generation(&task, &tokenizer, options.tokens)?;
            let (mut plain_s, mut guessing_s) = (Vec::new(), Vec::new());
            let mut tokens = 0;
            // The first round feeds the prompt, measures steps and does not count.
            for round in 0..=ROUNDS {
                let (expected, one) = answer(&plain_handle, &generation).await?;
                let (found, other) = answer(&guessing_handle, &generation).await?;
                if found != expected {
                    return Err(format!("{}: guesses changed the tokens", task.name).into());
                }
                tokens = found.len();
                if round > 0 {
                    plain_s.push(one);
                    guessing_s.push(other);
                }
            }
            let both = plain_s.iter().zip(&guessing_s);
            let ratios: Vec<f64> = both.map(|(one, other)| one / other).collect();
            let range = [f64::min, f64::max].map(|of| ratios.iter().copied().reduce(of));
            let ratio = median(ratios.clone());
            let values = json!({
                "tokens": tokens,
                "plain_ms_per_token": round(1e3 * median(plain_s) / tokens as f64),
                "ms_per_token": round(1e3 * median(guessing_s) / tokens as f64),
                "times_as_fast": round(ratio),
                "times_as_fast_range": range.map(|it| it.map(round)),
            });
            machine.print("guesses", task.name, values);
        }
        Outcome::Ok(())
    };
    let engines = join(plain.run(), guessing.run());
    match select(pin!(measure), pin!(engines)).await {
        Either::Left((measured, _)) => measured,
        Either::Right(_) => Err("an engine ended".into()),
    }
}

async fn open(
    machine: &Machine,
    path: &Path,
    options: LoadOptions,
) -> Outcome<(Transformer, Tokenizer)> {
    let files = LocalFiles::at(path)?;
    let Checkpoint { gguf, source } = Checkpoint::open(&files, &options).await?;
    let tokenizer = Tokenizer::from_gguf(&gguf.metadata)?;
    let device = &machine.device;
    let (mut model, _) = start(device, Tuning::Best, &gguf, &source, options, |_, _| ()).await?;
    model.warm_up().await?;
    Ok((model, tokenizer))
}

fn generation(task: &Task, tokenizer: &Tokenizer, max_tokens: usize) -> Outcome<Generation> {
    let prediction = task
        .prediction
        .as_ref()
        .map(|text| tokenizer.encode(text, false));
    Ok(Generation {
        prompt: tokenizer.encode(&task.prompt, true)?.into(),
        max_tokens,
        candidates: 1,
        sampling: SamplingParams {
            temperature: task.temperature,
            seed: 1,
            ..SamplingParams::default()
        },
        constraint: None,
        rules: None,
        scores: None,
        prompt_scores: None,
        stop_ids: Vec::new(),
        drafts: DraftRules {
            prediction: prediction.transpose()?.map(Rc::from),
            ..DraftRules::default()
        },
    })
}

/// The tokens of an answer, and the seconds that they took.
async fn answer(
    handle: &inpage::engine::EngineHandle,
    generation: &Generation,
) -> Outcome<(Vec<u32>, f64)> {
    let begun = Instant::now();
    let mut events = handle.submit(vec![generation.clone()])?.remove(0).remove(0);
    let mut tokens = Vec::new();
    while let Some(event) = events.next().await {
        match event {
            Event::Token { id, .. } => tokens.push(id),
            Event::Failed(error) => return Err(error.into()),
            Event::Prompt { .. } | Event::Finished { .. } => {}
        }
    }
    Ok((tokens, seconds(begun)))
}
