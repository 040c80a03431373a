//! How tokens are chosen (API.md section 4.5): ranges of the sampling fields. Their meaning is
//! the sampler's.

use serde_json::Value;

use super::fields::{Fields, describe, invalid_type, invalid_value, out_of_range};
use crate::api::switches::{MirostatTargetUnit, Switches};
use crate::engine::generation::SamplingParams;
use crate::{Error, Result};

pub(super) const FIELDS: &[&str] = &[
    "temperature",
    "top_p",
    "top_k",
    "min_p",
    "seed",
    "frequency_penalty",
    "presence_penalty",
    "repetition_penalty",
    "logit_bias",
    "mirostat_target",
    "mirostat_lr",
    "dry_multiplier",
    "dry_base",
    "dry_allowed_length",
    "dry_sequence_breakers",
];

const MAX_LOGIT_BIASES: usize = 1024;

/// The sampling fields as the request gives them.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::api) struct Sampling {
    given: SamplingDefaults,
    seed: Option<i64>,
}

/// Values for sampling fields; `None` leaves a field at the endpoint's own default.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct SamplingDefaults {
    /// 0 to 2.
    pub temperature: Option<f32>,
    /// 0 to 1.
    pub top_p: Option<f32>,
    /// −1 and 0 are off.
    pub top_k: Option<i64>,
    /// 0 to 1.
    pub min_p: Option<f32>,
}

impl Sampling {
    /// The parameters for the sampler; `model` fills what the request leaves out. A request
    /// without a seed gets a random one.
    pub(in crate::api) fn params(&self, model: &SamplingDefaults) -> Result<SamplingParams> {
        let seed = match self.seed {
            Some(seed) => seed,
            None => random_seed()?,
        };
        let given = &self.given;
        Ok(SamplingParams {
            temperature: given.temperature.or(model.temperature).unwrap_or(1.0),
            top_p: given.top_p.or(model.top_p).unwrap_or(1.0),
            top_k: given
                .top_k
                .or(model.top_k)
                .filter(|top_k| *top_k > 0)
                .map(|top_k| usize::try_from(top_k).unwrap_or(usize::MAX)),
            min_p: given.min_p.or(model.min_p).unwrap_or(0.0),
            seed,
            ..SamplingParams::default()
        })
    }
}

fn random_seed() -> Result<i64> {
    let mut bytes = [0; 8];
    getrandom_04::fill(&mut bytes)
        .map_err(|error| Error::Internal(format!("no random seed: {error}")))?;
    Ok(i64::from_le_bytes(bytes))
}

pub(super) fn read(fields: &Fields, switches: &Switches) -> Result<Sampling> {
    let narrow = |number: Option<f64>| number.map(|number| number as f32);
    let top_k = fields.integer("top_k", -1..=i128::MAX)?;
    let int64 = i128::from(i64::MIN)..=i128::from(i64::MAX);
    let sampling = Sampling {
        given: SamplingDefaults {
            temperature: narrow(fields.number_in("temperature", 0.0..=2.0)?),
            top_p: narrow(fields.number_in("top_p", 0.0..=1.0)?),
            top_k: top_k.map(|top_k| i64::try_from(top_k).unwrap_or(i64::MAX)),
            min_p: narrow(fields.number_in("min_p", 0.0..=1.0)?),
        },
        seed: fields
            .integer("seed", int64)?
            .and_then(|seed| i64::try_from(seed).ok()),
    };
    check_penalties(fields)?;
    check_logit_bias(fields)?;
    check_mirostat(fields, switches)?;
    check_dry(fields)?;
    Ok(sampling)
}

fn check_penalties(fields: &Fields) -> Result<()> {
    for name in ["frequency_penalty", "presence_penalty"] {
        let penalty = fields.number_in(name, -2.0..=2.0)?;
        if penalty.is_some_and(|penalty| penalty != 0.0) {
            fields.refuse(name);
        }
    }
    let penalty = fields.positive_number("repetition_penalty", 2.0)?;
    if penalty.is_some_and(|penalty| penalty != 1.0) {
        fields.refuse("repetition_penalty");
    }
    Ok(())
}

fn check_logit_bias(fields: &Fields) -> Result<()> {
    let name = "logit_bias";
    let Some(biases) = fields.object(name)? else {
        return Ok(());
    };
    if biases.len() > MAX_LOGIT_BIASES {
        let bounds = format!("at most {MAX_LOGIT_BIASES} entries");
        return Err(out_of_range(name, &bounds, biases.len()));
    }
    for (key, value) in biases {
        let digits = !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_digit());
        if !digits || (key.len() > 1 && key.starts_with('0')) {
            let given = describe(&Value::String(key.clone()));
            return Err(out_of_range(name, "keyed by token ids", given));
        }
        match value.as_f64() {
            None => return Err(invalid_type(name, "made of numbers", value)),
            Some(bias) if !(-100.0..=100.0).contains(&bias) => {
                return Err(out_of_range(name, "made of numbers from -100 to 100", bias));
            }
            Some(_) => fields.refuse(name),
        }
    }
    Ok(())
}

fn check_mirostat(fields: &Fields, switches: &Switches) -> Result<()> {
    let name = "mirostat_target";
    let target = match switches.mirostat_target_unit {
        MirostatTargetUnit::Perplexity => fields.number_in(name, 1.0..=f64::INFINITY)?,
        MirostatTargetUnit::Bits => fields.positive_number(name, f64::INFINITY)?,
    };
    if target.is_some() {
        fields.refuse(name);
    }
    // Without a target the rate has no effect.
    fields.positive_number("mirostat_lr", 1.0)?;
    Ok(())
}

fn check_dry(fields: &Fields) -> Result<()> {
    let multiplier = fields.number_in("dry_multiplier", 0.0..=f64::INFINITY)?;
    if multiplier.is_some_and(|multiplier| multiplier > 0.0) {
        fields.refuse("dry_multiplier");
    }
    // Without a multiplier the others have no effect, but must be right.
    fields.number_in("dry_base", 1.0..=f64::INFINITY)?;
    fields.count("dry_allowed_length")?;
    let name = "dry_sequence_breakers";
    for breaker in fields.array(name)?.unwrap_or_default() {
        match breaker.as_str() {
            None => return Err(invalid_type(name, "made of strings", breaker)),
            Some("") => return Err(invalid_value(name, "a sequence breaker must not be empty")),
            Some(_) => {}
        }
    }
    Ok(())
}
