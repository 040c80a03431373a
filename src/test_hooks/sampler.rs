//! One step of the sampler chain with its intermediate results, for the vectors of specification 16.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::sample::{Sampler, SamplingParams, TokenMask, philox};
use crate::{Error, Result};

/// Logits and the tokens before them.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Question {
    logits: Vec<f32>,
    #[serde(default)]
    prompt: Vec<u32>,
    #[serde(default)]
    generated: Vec<u32>,
    /// The allowed ids; all if absent.
    mask: Option<Vec<u32>>,
    /// Absent parameters are off.
    #[serde(default)]
    params: SamplingParams,
}

impl Question {
    /// `adjusted`: the logits after stages 1 to 5, `null` for a forbidden token; `survivors`:
    /// `[id, probability]` in draw order; `u`: the number of this position; `sampled`: the id that
    /// it draws; `mirostatMu`: the limit after that.
    pub(super) fn answer(self) -> Result<Value> {
        let vocab_size = self.logits.len();
        let params = self.params;
        let biased = params.logit_bias.iter().map(|(id, _)| id);
        let mut ids = biased
            .chain(&self.prompt)
            .chain(&self.generated)
            .chain(self.mask.iter().flatten());
        if ids.any(|id| *id as usize >= vocab_size) {
            return Err(Error::Internal("an id lies beyond the logits".into()));
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
