//! A model from its file to its tokens, and how near decoding comes to the floor that reading its
//! weights sets. What it says is noise: the prompt is random.

use std::{path::Path, time::Instant};

use inpage::{
    model::{CausalModel, LoadOptions, SequenceKv, Transformer, load},
    ops::{launches, step::PAGE_TOKENS},
    sample::{Sampler, SamplingParams},
    weights::{FileSource, Gguf},
};
use serde_json::{Value, json};

use crate::{
    Outcome,
    machine::{Machine, round},
    timing::{median, seconds},
};

const PROMPT_TOKENS: usize = 128;
const ROUNDS: usize = 3;

/// `bandwidth` is what a copy reaches, in bytes per second.
pub async fn run(machine: &Machine, path: &Path, tokens: usize, bandwidth: f64) -> Outcome<()> {
    let start = Instant::now();
    let source = FileSource::open(path)?;
    let gguf = Gguf::read(&source).await?;
    let options = LoadOptions {
        context_tokens: Some(PROMPT_TOKENS + tokens),
        kv_format: machine.kv_format,
        kv_pool_tokens: Some(PROMPT_TOKENS + tokens),
    };
    let compute = machine.compute.clone();
    let mut model = load(compute, &gguf, &source, options, |_, _| ()).await?;
    let load_ms = seconds(start) * 1e3;
    let start = Instant::now();
    model.warm_up().await?;
    model.compute().sync().await?;
    let warm_up_ms = seconds(start) * 1e3;

    // A model made for less gets a shorter prompt.
    let tokens = tokens.min(model.context_tokens() / 2);
    let prompt = random_ids(
        PROMPT_TOKENS.min(model.context_tokens() - tokens),
        model.vocab_size(),
    );
    let name = path
        .file_name()
        .unwrap_or(path.as_os_str())
        .to_string_lossy()
        .into_owned();
    let print = |measure: &str, values: Value| {
        let mut line = json!({ "model": name });
        if let (Value::Object(line), Value::Object(values)) = (&mut line, values) {
            line.extend(values);
        }
        machine.print("model", measure, line);
    };
    let loaded = json!({
        "load_ms": round(load_ms),
        "warm_up_ms": round(warm_up_ms),
        "kv_format": model.kv_format().name(),
    });
    print("load", loaded);

    let mut kv = SequenceKv {
        pages: (0..model.page_count() as u32).collect(),
        len_tokens: 0,
    };
    let mut rounds = Vec::new();
    for _ in 0..=ROUNDS {
        kv.len_tokens = 0;
        let start = Instant::now();
        model.feed(&mut kv, &prompt).await?;
        rounds.push(seconds(start));
    }
    let taken = median(rounds.split_off(1));
    let values = json!({
        "prompt_tokens": prompt.len(),
        "tokens_per_s": round(prompt.len() as f64 / taken),
    });
    print("prefill", values);

    let floor = Floor::of(&gguf, &model, prompt.len() + tokens / 2, bandwidth);
    let dispatches = count_dispatches(machine, &mut model).await?;
    let greedy = greedy_seconds(&mut model, &mut kv, &prompt, tokens).await?;
    print(
        "decode_greedy",
        floor.compare(&model, tokens, greedy, dispatches),
    );
    let sampled = sampled_seconds(&mut model, &mut kv, &prompt, tokens).await?;
    print(
        "decode_sampled",
        floor.compare(&model, tokens, sampled, dispatches),
    );

    if let Some(dispatches) = dispatches {
        let rounds = enqueue_seconds(&mut model, &mut kv, tokens).await?;
        let least = rounds.iter().copied().fold(f64::INFINITY, f64::min);
        let per_dispatch =
            |seconds: f64| round(seconds * 1e6 / (tokens as u64 * dispatches) as f64);
        let values = json!({
            "least_us_per_dispatch": per_dispatch(least),
            "us_per_dispatch": per_dispatch(median(rounds)),
        });
        print("replay", values);
    }
    Ok(())
}

/// What memory alone allows.
struct Floor {
    bytes: f64,
    bandwidth: f64,
}

impl Floor {
    /// A step reads every weight once, of the embedding a row; and the keys and values of the
    /// `position` tokens before.
    fn of(gguf: &Gguf, model: &Transformer, position: usize, bandwidth: f64) -> Floor {
        let tied = gguf.tensor("output.weight").is_none();
        let weights =
            gguf.tensors
                .iter()
                .map(|tensor| match tensor.name == "token_embd.weight" && !tied {
                    true => tensor.row_bytes(),
                    false => tensor.size_bytes,
                });
        let config = model.config();
        let page_bytes = 4 * model.kv_format().page_words(config.kv_dim());
        let kv = config.layers * page_bytes * position / PAGE_TOKENS;
        Floor {
            bytes: (weights.sum::<u64>() + kv as u64) as f64,
            bandwidth,
        }
    }

    /// `seconds` is what `tokens` steps took.
    fn compare(
        &self,
        model: &Transformer,
        tokens: usize,
        seconds: f64,
        dispatches: Option<u64>,
    ) -> Value {
        let ms = seconds * 1e3 / tokens as f64;
        let floor_ms = self.bytes / self.bandwidth * 1e3;
        let layers = model.config().layers as f64;
        json!({
            "tokens": tokens,
            "tokens_per_s": round(1e3 / ms),
            "ms_per_token": round(ms),
            "bytes_per_step": self.bytes,
            "floor_ms_per_token": round(floor_ms),
            "share_of_floor": round(floor_ms / ms),
            "dispatches_per_step": dispatches,
            "dispatches_per_layer": dispatches.map(|count| round(count as f64 / layers)),
        })
    }
}

/// Counted on a step that is launched, not replayed; the choice of the token is one more. `None`
/// on the CPU, which has no dispatches.
async fn count_dispatches(machine: &Machine, model: &mut Transformer) -> Outcome<Option<u64>> {
    if machine.gpu().is_none() {
        return Ok(None);
    }
    let mut kv = SequenceKv {
        pages: vec![0],
        len_tokens: 0,
    };
    let before = launches();
    model.feed_all(&mut kv, &[0]).await?;
    Ok(Some(launches() - before + 1))
}

/// The way of greedy requests: chosen on the device, read many at a time.
async fn greedy_seconds(
    model: &mut Transformer,
    kv: &mut SequenceKv,
    prompt: &[u32],
    tokens: usize,
) -> Outcome<f64> {
    let mut rounds = Vec::new();
    for _ in 0..=ROUNDS {
        kv.len_tokens = 0;
        let first = model.feed_greedy(kv, prompt, 1).await?;
        let start = Instant::now();
        let chosen = model.feed_greedy(kv, &first, tokens).await?;
        rounds.push(seconds(start));
        debug_assert_eq!(chosen.len(), tokens);
    }
    Ok(median(rounds.split_off(1)))
}

/// The way of sampled requests: logits read, a token drawn and fed, one at a time.
async fn sampled_seconds(
    model: &mut Transformer,
    kv: &mut SequenceKv,
    prompt: &[u32],
    tokens: usize,
) -> Outcome<f64> {
    let params = SamplingParams {
        seed: 1,
        ..SamplingParams::default()
    };
    let mut rounds = Vec::new();
    for _ in 0..=ROUNDS {
        kv.len_tokens = 0;
        let mut sampler = Sampler::new(&params, 0, prompt);
        let mut logits = model.feed(kv, prompt).await?;
        let start = Instant::now();
        for _ in 0..tokens {
            let token = sampler.sample(&mut logits, None, None)?.id;
            logits = model.feed(kv, &[token]).await?;
        }
        rounds.push(seconds(start));
    }
    Ok(median(rounds.split_off(1)))
}

/// Seconds of each round until `tokens` steps are submitted. Natively the runtime has a thread of its own, and on
/// a busy machine this waits for it to get its turn: then the browser's number is the better one.
async fn enqueue_seconds(
    model: &mut Transformer,
    kv: &mut SequenceKv,
    tokens: usize,
) -> Outcome<Vec<f64>> {
    let mut rounds = Vec::new();
    for _ in 0..=ROUNDS {
        kv.len_tokens = 0;
        model.compute().sync().await?;
        let start = Instant::now();
        model.enqueue_greedy(kv, 0, tokens).await?;
        model.compute().flush()?;
        rounds.push(seconds(start));
    }
    model.compute().sync().await?;
    Ok(rounds.split_off(1))
}

fn random_ids(count: usize, vocab: usize) -> Vec<u32> {
    let mut state = 1u64;
    let ids = std::iter::repeat_with(|| {
        // Knuth's linear congruential generator; its high bits are good enough.
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        ((state >> 33) % vocab as u64) as u32
    });
    ids.take(count).collect()
}
