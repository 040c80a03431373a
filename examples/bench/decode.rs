//! Times decoding in each way that requests use. Rates and bounds are computed elsewhere.

use std::time::Instant;

use inpage::{
    engine::{CausalModel, Chooser, Input, Row, RowSampler, SequenceMemory},
    model::Transformer,
    sample::{Sampler, SamplingParams},
};

use crate::{
    Outcome,
    timing::{median, seconds},
};

/// Rounds after a warm-up round.
const ROUNDS: usize = 3;
/// The most steps that the engine requests at once.
const RUN_AHEAD_STEPS: usize = 16;
/// Prompt tokens of each sequence of a batch.
const BATCH_PROMPT_TOKENS: usize = 16;

/// A sequence that may use all of the model's pages.
pub fn only_sequence(model: &Transformer) -> SequenceMemory {
    SequenceMemory::new((0..model.limits().page_count as u32).collect())
}

/// Greedy requests: tokens are chosen on the device and many are read at a time. Decoding starts after
/// the tokens that are already in `kv`.
pub async fn greedy_seconds(
    model: &mut Transformer,
    kv: &mut SequenceMemory,
    tokens: usize,
) -> Outcome<f64> {
    let start_tokens = kv.len_tokens;
    let mut rounds = Vec::new();
    for _ in 0..=ROUNDS {
        kv.len_tokens = start_tokens;
        let start = Instant::now();
        let mut rows = [Row {
            memory: kv,
            input: Input::tokens(&[0]),
        }];
        let chooser = Chooser::Greedy { steps: tokens };
        model.step(&mut rows, chooser).await?;
        rounds.push(seconds(start));
    }
    kv.len_tokens = start_tokens;
    Ok(median(rounds.split_off(1)))
}

/// A batch of `sequences` sampled requests: tokens are chosen on the device where that is faster, else
/// from logits that are read back.
pub async fn sampled_seconds(
    model: &mut Transformer,
    sequences: usize,
    tokens: usize,
) -> Outcome<f64> {
    let params = SamplingParams {
        seed: 1,
        ..SamplingParams::default()
    };
    let prompt = [0; BATCH_PROMPT_TOKENS];
    let mut pages = (0..model.limits().page_count as u32).collect::<Vec<_>>();
    let pages_each = pages.len() / sequences;
    let mut sequences: Vec<(SequenceMemory, Sampler)> = (0..sequences)
        .map(|i| {
            let kv = SequenceMemory::new(pages.split_off(pages.len() - pages_each));
            (kv, Sampler::new(&params, i as u32, &prompt))
        })
        .collect();
    let on_device = model.samples(&params, None);
    let ahead = match on_device {
        true => model.run_ahead_steps().clamp(1, RUN_AHEAD_STEPS),
        false => 1,
    };
    let mut rounds = Vec::new();
    for _ in 0..=ROUNDS {
        for (kv, _) in &mut sequences {
            kv.len_tokens = 0;
            model.prefill(kv, Input::tokens(&prompt)).await?;
        }
        model.device().sync().await?;
        let start = Instant::now();
        let mut last = vec![0; sequences.len()];
        let mut left = tokens;
        while left > 0 {
            let steps = left.min(ahead);
            left -= steps;
            let (mut rows, mut samplers) = (Vec::new(), Vec::new());
            for ((memory, sampler), token) in sequences.iter_mut().zip(&last) {
                let input = Input::tokens(std::slice::from_ref(token));
                rows.push(Row { memory, input });
                samplers.push(sampler);
            }
            last = match on_device {
                true => sample_on_device(model, &mut rows, samplers, steps).await?,
                false => sample_on_host(model, &mut rows, samplers).await?,
            };
        }
        rounds.push(seconds(start));
    }
    Ok(median(rounds.split_off(1)))
}

/// The last of `steps` tokens of each row.
async fn sample_on_device(
    model: &mut Transformer,
    rows: &mut [Row<'_>],
    samplers: Vec<&mut Sampler>,
    steps: usize,
) -> Outcome<Vec<u32>> {
    let samplers = samplers.into_iter().map(|sampler| RowSampler {
        sampler,
        score: None,
    });
    let chooser = Chooser::Samplers {
        steps,
        samplers: samplers.collect(),
        masks: Box::new(Vec::new),
    };
    let mut last = Vec::new();
    for chosen in model.step(rows, chooser).await?.into_chosen()? {
        let newest = chosen.into_iter().next_back().ok_or("no token chosen")?;
        last.push(newest?.id);
    }
    Ok(last)
}

/// The next token of each row.
async fn sample_on_host(
    model: &mut Transformer,
    rows: &mut [Row<'_>],
    samplers: Vec<&mut Sampler>,
) -> Outcome<Vec<u32>> {
    let logits = model.step(rows, Chooser::Host).await?.into_logits()?;
    let mut last = Vec::new();
    for (sampler, mut logits) in samplers.into_iter().zip(logits) {
        last.push(sampler.sample(&mut logits, None, None)?.id);
    }
    Ok(last)
}

/// Seconds of each round until `tokens` steps are submitted. Natively the runtime has its own thread. On
/// a busy machine, the time includes waiting for that thread, and the browser's number is more accurate.
pub async fn enqueue_seconds(
    model: &mut Transformer,
    kv: &mut SequenceMemory,
    tokens: usize,
) -> Outcome<Vec<f64>> {
    let mut rounds = Vec::new();
    for _ in 0..=ROUNDS {
        kv.len_tokens = 0;
        model.device().sync().await?;
        let start = Instant::now();
        model.enqueue_greedy(kv, 0, tokens).await?;
        model.device().flush()?;
        rounds.push(seconds(start));
    }
    model.device().sync().await?;
    Ok(rounds.split_off(1))
}
