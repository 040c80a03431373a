//! A model from its file to its tokens, and how near decoding comes to the floor that reading its
//! weights sets. What it says is noise: the prompt is random.

use std::{path::Path, time::Instant};

use inpage::{
    engine::{CausalModel, Chooser, Row, SequenceMemory},
    model::{Checkpoint, LoadOptions, Transformer},
    ops::{launches, step::PAGE_TOKENS},
    runtime::{Tuning, start},
    weights::{Gguf, LocalFiles},
};
use serde_json::{Value, json};

use crate::{
    Outcome,
    decode::{enqueue_seconds, greedy_seconds, only_sequence, sampled_seconds},
    machine::{Machine, Yardsticks, round},
    options::{Options, Size},
    timing::{median, seconds},
};

const PROMPT_TOKENS: usize = 128;
const ROUNDS: usize = 3;
/// Room for each sequence of a batch, in tokens.
const BATCH_TOKENS: usize = 128;

pub async fn run(
    machine: &Machine,
    path: &Path,
    options: &Options,
    yardsticks: Yardsticks,
) -> Outcome<()> {
    let name = path.file_name().unwrap_or(path.as_os_str());
    let name = name.to_string_lossy().into_owned();
    let print = |measure: &str, values: Value| {
        let mut line = json!({ "model": name });
        if let (Value::Object(line), Value::Object(values)) = (&mut line, values) {
            line.extend(values);
        }
        machine.print("model", measure, line);
    };
    let wanted = match (&options.contexts[..], machine.size) {
        ([], Size::Small) => vec![128],
        ([], Size::Large) => vec![128, 1024, 4096],
        (given, _) => given.to_vec(),
    };
    let longest = wanted.iter().copied().max().unwrap_or(0).max(PROMPT_TOKENS) + options.tokens;
    let together = options.batches.iter().copied().max().unwrap_or(0) * BATCH_TOKENS;
    let load_options = LoadOptions {
        context_tokens: Some(longest),
        kv_pool_tokens: Some(together),
        ..options.load
    };
    let begun = Instant::now();
    let files = LocalFiles::at(path)?;
    let Checkpoint { gguf, source } = Checkpoint::open(&files, &load_options).await?;
    let (device, tuning) = (&machine.device, Tuning::Best);
    let (mut model, _) = start(device, tuning, &gguf, &source, load_options, |_, _| ()).await?;
    let load_ms = seconds(begun) * 1e3;
    let begun = Instant::now();
    model.warm_up().await?;
    model.device().sync().await?;
    let warm_up_ms = seconds(begun) * 1e3;
    let loaded = json!({
        "load_ms": round(load_ms),
        "warm_up_ms": round(warm_up_ms),
        "kv_format": model.kv_format().name(),
    });
    print("load", loaded);

    // A model made for less gets shorter ones.
    let tokens = options.tokens.min(model.limits().context_tokens / 2);
    let fits = |length: usize| length.min(model.limits().context_tokens - tokens);
    let contexts: Vec<usize> = wanted.into_iter().map(fits).collect();
    let prompt_tokens = fits(PROMPT_TOKENS);
    let dispatches = count_dispatches(machine, &mut model).await?;
    let floor =
        |model: &Transformer, position| Floor::of(&gguf, model, position, yardsticks.bytes_per_s);

    let mut kv = only_sequence(&model);
    // The pipelines and graphs of all sizes of chunks.
    feed(&mut model, &mut kv, prompt_tokens).await?;
    for context in contexts {
        let mut rounds = Vec::new();
        for _ in 0..ROUNDS {
            rounds.push(feed(&mut model, &mut kv, context).await?);
        }
        let prefill = json!({
            "prompt_tokens": context,
            "tokens_per_s": round(context as f64 / median(rounds)),
        });
        print("prefill", prefill);
        let greedy = greedy_seconds(&mut model, &mut kv, tokens).await?;
        let floor = floor(&model, context + tokens / 2);
        print(
            "decode_greedy",
            floor.compare(&model, tokens, greedy, dispatches),
        );
    }
    let sampled = sampled_seconds(&mut model, 1, tokens).await?;
    let floor = floor(&model, tokens / 2);
    print(
        "decode_sampled",
        floor.compare(&model, tokens, sampled, dispatches),
    );
    for &sequences in &options.batches {
        if sequences > model.limits().max_batch || model.limits().page_count < sequences {
            eprintln!("{sequences} sequences: more than this model's memory takes");
            continue;
        }
        let pages_each = model.limits().page_count / sequences;
        let tokens = tokens.min(pages_each * model.limits().page_tokens / 2);
        let taken = sampled_seconds(&mut model, sequences, tokens).await?;
        let values = json!({
            "sequences": sequences,
            "tokens": tokens,
            "tokens_per_s": round((sequences * tokens) as f64 / taken),
        });
        print("batch", values);
    }

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

/// Fills an empty sequence with a random prompt; seconds until its logits are there.
async fn feed(model: &mut Transformer, memory: &mut SequenceMemory, tokens: usize) -> Outcome<f64> {
    let prompt = random_ids(tokens, model.limits().vocab_size);
    memory.len_tokens = 0;
    let start = Instant::now();
    let tokens = &prompt;
    let mut rows = [Row { memory, tokens }];
    model.step(&mut rows, Chooser::Host).await?;
    Ok(seconds(start))
}

/// What memory alone allows.
struct Floor {
    position: usize,
    bytes: f64,
    bytes_per_s: f64,
}

impl Floor {
    /// A step reads every weight once, of the embedding a row; and the keys and values of the
    /// `position` tokens before.
    fn of(gguf: &Gguf, model: &Transformer, position: usize, bytes_per_s: f64) -> Floor {
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
        let kv = config.layers.len() * page_bytes * position / PAGE_TOKENS;
        Floor {
            bytes: (weights.sum::<u64>() + kv as u64) as f64,
            position,
            bytes_per_s,
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
        let floor_ms = self.bytes / self.bytes_per_s * 1e3;
        let layers = model.config().layers.len() as f64;
        json!({
            "context_tokens": self.position,
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
    let mut kv = SequenceMemory::new(vec![0]);
    let before = launches();
    model.feed_all(&mut kv, &[0]).await?;
    Ok(Some(launches() - before + 1))
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
