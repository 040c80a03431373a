//! Generates texts with the trained network for inspection: temperature sampling over the whole
//! vocabulary. It is slow and simple; applications use the library's engine.

use burn::tensor::{Device, Tensor, TensorData};

use super::bpe::{Bpe, SEPARATOR_ID};
use super::corpus::random::Random;
use super::model::{Llama, Positions, Shape};

/// Windows grow in steps of this many tokens, so that little padding is computed.
const GROWTH_TOKENS: usize = 16;

/// Continues every prompt until a separator or `max_tokens`. The texts include the prompts.
pub fn continue_texts(
    model: &Llama,
    shape: &Shape,
    bpe: &Bpe,
    prompts: &[&str],
    [temperature, max_tokens]: [f32; 2],
    device: &Device,
) -> Vec<String> {
    let mut random = Random::new(7);
    let mut rows: Vec<Vec<u32>> = prompts
        .iter()
        .map(|prompt| [vec![SEPARATOR_ID], bpe.encode(prompt)].concat())
        .collect();
    let limit = rows.iter().map(Vec::len).max().unwrap_or(0) + max_tokens as usize;
    loop {
        let open = |row: &Vec<u32>| {
            row.len() < limit && (row.len() == 1 || row.last() != Some(&SEPARATOR_ID))
        };
        if !rows.iter().any(open) {
            break;
        }
        let longest = rows.iter().map(Vec::len).max().unwrap_or(0);
        let tokens = longest.next_multiple_of(GROWTH_TOKENS);
        // After a row's end there is padding, which its last token does not attend to.
        let ids: Vec<i32> = rows
            .iter()
            .flat_map(|row| (0..tokens).map(|at| row.get(at).map_or(0, |&id| id as i32)))
            .collect();
        let ids = Tensor::from_data(TensorData::new(ids, [rows.len() * tokens]), device);
        let logits = model.forward(ids, shape, &Positions::new(shape, tokens, device));
        let logits: Vec<f32> = logits
            .try_into_vec_as()
            .expect("logits are f32 on the device they came from");
        for (at, row) in rows.iter_mut().enumerate() {
            if open(row) {
                let from = (at * tokens + row.len() - 1) * shape.vocab;
                row.push(pick(
                    &logits[from..from + shape.vocab],
                    temperature,
                    &mut random,
                ));
            }
        }
    }
    rows.iter().map(|row| bpe.decode(row)).collect()
}

fn pick(logits: &[f32], temperature: f32, random: &mut Random) -> u32 {
    let highest = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let weights: Vec<f32> = logits
        .iter()
        .map(|logit| ((logit - highest) / temperature).exp())
        .collect();
    let mut rest = random.unit() as f32 * weights.iter().sum::<f32>();
    for (id, weight) in weights.iter().enumerate() {
        rest -= weight;
        if rest < 0.0 {
            return id as u32;
        }
    }
    (logits.len() - 1) as u32
}
