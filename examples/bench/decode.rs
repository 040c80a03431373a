//! Seconds of decoding by the ways that requests take. Knows neither rates nor floors.

use std::time::Instant;

use inpage::{
    model::{CausalModel, SampledRow, SequenceKv, Transformer},
    sample::{Sampler, SamplingParams},
};

use crate::{
    Outcome,
    timing::{median, seconds},
};

/// Rounds after one that warms up.
const ROUNDS: usize = 3;
/// Steps that the engine asks for at once at most.
const RUN_AHEAD_STEPS: usize = 16;
/// Tokens that sequences of a batch start with.
const BATCH_PROMPT_TOKENS: usize = 16;

/// A sequence that may use all of the model's pages.
pub fn only_sequence(model: &Transformer) -> SequenceKv {
    SequenceKv {
        pages: (0..model.page_count() as u32).collect(),
        len_tokens: 0,
    }
}

/// Greedy requests: chosen on the device, read many at a time; after what `kv` holds already.
pub async fn greedy_seconds(
    model: &mut Transformer,
    kv: &mut SequenceKv,
    tokens: usize,
) -> Outcome<f64> {
    let start_tokens = kv.len_tokens;
    let mut rounds = Vec::new();
    for _ in 0..=ROUNDS {
        kv.len_tokens = start_tokens;
        let start = Instant::now();
        let chosen = model.feed_greedy(kv, &[0], tokens).await?;
        rounds.push(seconds(start));
        debug_assert_eq!(chosen.len(), tokens);
    }
    kv.len_tokens = start_tokens;
    Ok(median(rounds.split_off(1)))
}

/// Sampled requests, `sequences` together: chosen on the device where that is quicker, else from
/// logits that are read.
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
    let mut pages = (0..model.page_count() as u32).collect::<Vec<_>>();
    let pages_each = pages.len() / sequences;
    let mut sequences: Vec<(SequenceKv, Sampler)> = (0..sequences)
        .map(|i| {
            let kv = SequenceKv {
                pages: pages.split_off(pages.len() - pages_each),
                len_tokens: 0,
            };
            (kv, Sampler::new(&params, i as u32, &prompt))
        })
        .collect();
    let ahead = match model.chooses(&params, None) {
        true => model.run_ahead_steps().clamp(1, RUN_AHEAD_STEPS),
        false => 1,
    };
    let mut rounds = Vec::new();
    for _ in 0..=ROUNDS {
        for (kv, _) in &mut sequences {
            kv.len_tokens = 0;
            model.prefill(kv, &prompt).await?;
        }
        model.compute().sync().await?;
        let start = Instant::now();
        let mut last = vec![0; sequences.len()];
        let mut left = tokens;
        while left > 0 {
            let steps = left.min(ahead);
            left -= steps;
            let rows = sequences.iter_mut().zip(&last);
            let mut rows: Vec<SampledRow> = rows
                .map(|((kv, sampler), &token)| SampledRow {
                    kv,
                    token,
                    sampler,
                    score: None,
                })
                .collect();
            let chosen = model.feed_sampled(&mut rows, steps, Vec::new).await?;
            for (last, chosen) in last.iter_mut().zip(chosen) {
                let newest = chosen.into_iter().next_back().ok_or("no token chosen")?;
                *last = newest?.id;
            }
        }
        rounds.push(seconds(start));
    }
    Ok(median(rounds.split_off(1)))
}

/// Seconds of each round until `tokens` steps are submitted. Natively the runtime has a thread of its own, and on
/// a busy machine this waits for it to get its turn: then the browser's number is the better one.
pub async fn enqueue_seconds(
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
