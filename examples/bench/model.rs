//! Measures loading, prefill and decode of a model, and how close decode comes to the bound that reading
//! the weights sets. The prompt is random, and so is the text.

use std::{path::Path, time::Instant};

use inpage::{
    engine::{CausalModel, Chooser, Input, Row, SequenceMemory},
    model::{Checkpoint, LoadOptions, Transformer},
    ops::launches,
    runtime::{Tuning, start},
    weights::{Gguf, LocalFiles},
};
use serde_json::{Value, json};

use crate::{
    Outcome,
    decode::{enqueue_seconds, greedy_seconds, only_sequence, sampled_seconds},
    floor::Floor,
    machine::{Machine, Yardsticks, round},
    options::{Options, Size},
    timing::{median, seconds},
};

const PROMPT_TOKENS: usize = 128;
const ROUNDS: usize = 3;
/// KV cache for each sequence of a batch, in tokens.
const BATCH_TOKENS: usize = 128;

/// Measures the model at `path`.
pub async fn run(
    machine: &Machine,
    path: &Path,
    options: &Options,
    yardsticks: Yardsticks,
) -> Outcome<()> {
    let wanted = match (&options.contexts[..], machine.size) {
        ([], Size::Small) => vec![128],
        ([], Size::Large) => vec![128, 1024, 4096],
        (given, _) => given.to_vec(),
    };
    let longest = wanted.iter().copied().max().unwrap_or(0).max(PROMPT_TOKENS) + options.tokens;
    let load = LoadOptions {
        context_tokens: Some(longest),
        kv_pool_tokens: Some(options.batches.iter().copied().max().unwrap_or(0) * BATCH_TOKENS),
        ..options.load
    };
    let mut bench = ModelBench::load(machine, path, load, options.tokens, yardsticks).await?;

    let mut sequence = only_sequence(&bench.model);
    // Compiles the pipelines and records the graphs of all chunk sizes.
    let prompt_tokens = bench.fitting(PROMPT_TOKENS);
    feed(&mut bench.model, &mut sequence, prompt_tokens).await?;
    for context in wanted {
        bench.context(&mut sequence, context).await?;
    }
    bench.sampled().await?;
    for &sequences in &options.batches {
        bench.batch(sequences).await?;
    }
    bench.replay(&mut sequence).await
}

/// A loaded model and how to measure it.
struct ModelBench<'m> {
    machine: &'m Machine,
    name: String,
    gguf: Gguf,
    model: Transformer,
    /// Tokens to decode.
    tokens: usize,
    /// Dispatches of a decode step; `None` on the reference device, which has none.
    dispatches: Option<u64>,
    bytes_per_s: f64,
}

impl<'m> ModelBench<'m> {
    async fn load(
        machine: &'m Machine,
        path: &Path,
        options: LoadOptions,
        tokens: usize,
        yardsticks: Yardsticks,
    ) -> Outcome<Self> {
        let begun = Instant::now();
        let files = LocalFiles::at(path)?;
        let Checkpoint { gguf, source } = Checkpoint::open(&files, &options).await?;
        let (device, tuning) = (&machine.device, Tuning::Best);
        let (mut model, _) = start(device, tuning, &gguf, &source, options, |_, _| ()).await?;
        let load_ms = seconds(begun) * 1e3;
        let begun = Instant::now();
        model.warm_up().await?;
        device.sync().await?;
        let warm_up_ms = seconds(begun) * 1e3;
        let name = path.file_name().unwrap_or(path.as_os_str());
        let bench = ModelBench {
            machine,
            name: name.to_string_lossy().into_owned(),
            gguf,
            tokens: tokens.min(model.limits().context_tokens / 2),
            dispatches: count_dispatches(machine, &mut model).await?,
            model,
            bytes_per_s: yardsticks.bytes_per_s,
        };
        let loaded = json!({
            "load_ms": round(load_ms),
            "warm_up_ms": round(warm_up_ms),
            "kv_format": bench.model.kv_format().name(),
        });
        bench.print("load", loaded);
        Ok(bench)
    }

    fn print(&self, measure: &str, values: Value) {
        let mut line = json!({ "model": self.name });
        if let (Value::Object(line), Value::Object(values)) = (&mut line, values) {
            line.extend(values);
        }
        self.machine.print("model", measure, line);
    }

    /// `length`, shortened so that a prompt of it fits the context together with the decoded tokens.
    fn fitting(&self, length: usize) -> usize {
        length.min(self.model.limits().context_tokens - self.tokens)
    }

    fn print_decode(&self, measure: &str, position: usize, seconds: f64) {
        let floor = Floor::of(&self.gguf, &self.model, position, self.bytes_per_s);
        let values = floor.compare(&self.model, self.tokens, seconds, self.dispatches);
        self.print(measure, values);
    }

    /// Prefill of a prompt, and greedy decoding after it.
    async fn context(&mut self, sequence: &mut SequenceMemory, wanted: usize) -> Outcome<()> {
        let context = self.fitting(wanted);
        let mut rounds = Vec::new();
        for _ in 0..ROUNDS {
            rounds.push(feed(&mut self.model, sequence, context).await?);
        }
        let prefill = json!({
            "prompt_tokens": context,
            "tokens_per_s": round(context as f64 / median(rounds)),
        });
        self.print("prefill", prefill);
        let greedy = greedy_seconds(&mut self.model, sequence, self.tokens).await?;
        self.print_decode("decode_greedy", context + self.tokens / 2, greedy);
        Ok(())
    }

    /// Sampled decoding of one sequence.
    async fn sampled(&mut self) -> Outcome<()> {
        let sampled = sampled_seconds(&mut self.model, 1, self.tokens).await?;
        self.print_decode("decode_sampled", self.tokens / 2, sampled);
        Ok(())
    }

    /// Sampled decoding of several sequences together.
    async fn batch(&mut self, sequences: usize) -> Outcome<()> {
        let limits = self.model.limits();
        if sequences > limits.max_batch || limits.page_count < sequences {
            eprintln!("{sequences} sequences do not fit this model's KV cache");
            return Ok(());
        }
        let pages_each = limits.page_count / sequences;
        let tokens = self.tokens.min(pages_each * limits.page_tokens / 2);
        let taken = sampled_seconds(&mut self.model, sequences, tokens).await?;
        let values = json!({
            "sequences": sequences,
            "tokens": tokens,
            "tokens_per_s": round((sequences * tokens) as f64 / taken),
        });
        self.print("batch", values);
        Ok(())
    }

    /// CPU time of replaying decode steps.
    async fn replay(&mut self, sequence: &mut SequenceMemory) -> Outcome<()> {
        let Some(dispatches) = self.dispatches else {
            return Ok(());
        };
        let tokens = self.tokens;
        let rounds = enqueue_seconds(&mut self.model, sequence, tokens).await?;
        let least = rounds.iter().copied().fold(f64::INFINITY, f64::min);
        let per_dispatch =
            |seconds: f64| round(seconds * 1e6 / (tokens as u64 * dispatches) as f64);
        let values = json!({
            "least_us_per_dispatch": per_dispatch(least),
            "us_per_dispatch": per_dispatch(median(rounds)),
        });
        self.print("replay", values);
        Ok(())
    }
}

/// Fills an empty sequence with a random prompt. Returns the seconds until its logits are available.
async fn feed(model: &mut Transformer, memory: &mut SequenceMemory, tokens: usize) -> Outcome<f64> {
    let prompt = random_ids(tokens, model.limits().vocab_size);
    memory.len_tokens = 0;
    let start = Instant::now();
    let input = Input::tokens(&prompt);
    let mut rows = [Row { memory, input }];
    model.step(&mut rows, Chooser::Host).await?;
    Ok(seconds(start))
}

/// Dispatches of a decode step. They are counted on a step that is launched, not replayed. The choice of
/// the token is one more. `None` on the reference device, which has no dispatches.
async fn count_dispatches(machine: &Machine, model: &mut Transformer) -> Outcome<Option<u64>> {
    if machine.gpu().is_none() {
        return Ok(None);
    }
    let mut sequence = SequenceMemory::new(vec![0]);
    let before = launches();
    model.feed_all(&mut sequence, &[0]).await?;
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
