//! Tests of the whole chain: the vectors of specification 16 (`vectors`), agreement with a direct
//! implementation of specification 5 (`reference`, `chain`), and properties of single stages.

mod chain;
mod determinism;
mod reference;
mod scores;
mod truncation;
mod vectors;

use super::{DryParams, Sampler, SamplingParams, TokenMask};

fn params() -> SamplingParams {
    SamplingParams::default()
}

fn greedy() -> SamplingParams {
    SamplingParams {
        temperature: 0.0,
        ..params()
    }
}

/// A sampler after the tokens `generated`.
fn sampler(params: &SamplingParams, prompt: &[u32], generated: &[u32]) -> Sampler {
    let mut sampler = Sampler::new(params, 0, prompt);
    generated.iter().for_each(|&id| sampler.push(id));
    sampler
}

fn mask(allowed: impl IntoIterator<Item = u32>) -> TokenMask {
    let mut words = Vec::new();
    for id in allowed {
        let word = id as usize / 32;
        if words.len() <= word {
            words.resize(word + 1, 0);
        }
        words[word] |= 1 << (id % 32);
    }
    TokenMask::from_words(words)
}

fn dry(multiplier: f32, base: f32, allowed_length: usize, breakers: &[u32]) -> Option<DryParams> {
    Some(DryParams {
        multiplier,
        base,
        allowed_length,
        breakers: breakers.into(),
    })
}
