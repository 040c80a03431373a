//! The intermediate results of one step of the sampler chain: what specification 16 asks for. Uses the
//! sampler without a model.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::sample::{DryParams, MirostatParams, Sampler, SamplingParams, TokenMask, philox};
use crate::{Error, Result};

/// Logits, and the history of the sampler.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Question {
    logits: Vec<f32>,
    #[serde(default)]
    prompt: Vec<u32>,
    #[serde(default)]
    generated: Vec<u32>,
    /// The allowed ids; all if left out.
    mask: Option<Vec<u32>>,
    #[serde(default)]
    params: Params,
}

/// [`SamplingParams`], each its default if left out.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Params {
    #[serde(default)]
    logit_bias: Vec<(u32, f32)>,
    repetition_penalty: Option<f32>,
    frequency_penalty: Option<f32>,
    presence_penalty: Option<f32>,
    dry: Option<Dry>,
    temperature: Option<f32>,
    mirostat: Option<Mirostat>,
    top_k: Option<usize>,
    top_p: Option<f32>,
    min_p: Option<f32>,
    seed: Option<i64>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Dry {
    multiplier: f32,
    base: f32,
    allowed_length: usize,
    /// Ascending.
    breakers: Vec<u32>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Mirostat {
    target_bits: f32,
    learning_rate: f32,
}

impl Question {
    /// `adjusted`: the logits after stages 1 to 5, `null` for a forbidden token; `survivors`:
    /// `[id, probability]` in draw order; `u`: the number of this position; `sampled`: the id that
    /// it draws; `mirostatMu`: the limit after that.
    pub(super) fn answer(self) -> Result<Value> {
        let vocab_size = self.logits.len();
        let params = self.params.into_sampling();
        let biased = params.logit_bias.iter().map(|(id, _)| id);
        let mut ids = biased
            .chain(&self.prompt)
            .chain(&self.generated)
            .chain(self.mask.iter().flatten());
        if ids.any(|id| *id as usize >= vocab_size) {
            return Err(Error::Internal("an id is outside the logits".into()));
        }
        let mask = self.mask.map(|ids| allow(&ids, vocab_size));
        let mut sampler = Sampler::new(&params, 0, &self.prompt);
        for id in &self.generated {
            sampler.push(*id);
        }
        let mut adjusted = self.logits.clone();
        sampler.adjusted(&mut adjusted, mask.as_ref())?;
        let survivors = sampler.survivors(&mut self.logits.clone(), mask.as_ref())?;
        let u = philox::uniform(params.seed, 0, self.generated.len() as u64);
        let sampled = sampler.sample(&mut self.logits.clone(), mask.as_ref(), None)?;
        Ok(json!({
            "adjusted": adjusted,
            "survivors": survivors,
            "u": u,
            "sampled": sampled.id,
            "mirostatMu": sampler.mirostat_mu(),
        }))
    }
}

/// The mask of a vocabulary in which only `ids` are allowed.
fn allow(ids: &[u32], vocab_size: usize) -> TokenMask {
    let mut words = vec![0; vocab_size.div_ceil(32)];
    for id in ids {
        words[*id as usize / 32] |= 1 << (id % 32);
    }
    TokenMask::from_words(words)
}

impl Params {
    fn into_sampling(self) -> SamplingParams {
        let default = SamplingParams::default();
        SamplingParams {
            logit_bias: self.logit_bias,
            repetition_penalty: self
                .repetition_penalty
                .unwrap_or(default.repetition_penalty),
            frequency_penalty: self.frequency_penalty.unwrap_or(default.frequency_penalty),
            presence_penalty: self.presence_penalty.unwrap_or(default.presence_penalty),
            dry: self.dry.map(|dry| DryParams {
                multiplier: dry.multiplier,
                base: dry.base,
                allowed_length: dry.allowed_length,
                breakers: dry.breakers.into(),
            }),
            temperature: self.temperature.unwrap_or(default.temperature),
            mirostat: self.mirostat.map(|mirostat| MirostatParams {
                target_bits: mirostat.target_bits,
                learning_rate: mirostat.learning_rate,
            }),
            top_k: self.top_k,
            top_p: self.top_p.unwrap_or(default.top_p),
            min_p: self.min_p.unwrap_or(default.min_p),
            seed: self.seed.unwrap_or(default.seed),
        }
    }
}
