//! The sampling fields (specification 4.5), validated and converted to the sampler's parameters. What
//! the parameters do is documented in `crate::sample`.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use serde_json::Value;

use super::breakers;
use super::declare::fields;
use super::reader::{
    Fields, check_text_bytes, describe, integer, invalid_type, invalid_value, out_of_range,
};
use crate::api::error::fault;
use crate::api::switches::{MirostatTargetUnit, SamplingBounds, Switches};
use crate::engine::generation::SamplingDefaults;
use crate::engine::generation::{DryParams, MirostatParams, SamplingParams};
use crate::text::Tokenizer;
use crate::{Error, RequestFault, Result};

fields! {
    SamplingFields {
        /// 0 (greedy) to 2.
        temperature: Option<f64>,
        /// Keep the most likely tokens whose probabilities add up to this.
        top_p: Option<f64>,
        /// Keep the tokens whose surprise is closest to the expected one, up to this probability mass; 1 is off.
        typical_p: Option<f64>,
        /// Keep this many of the most likely tokens; -1 and 0 are off.
        top_k: Option<i64>,
        /// Keep tokens at least this fraction as likely as the most likely one.
        min_p: Option<f64>,
        /// A 64-bit integer: a `bigint` keeps what a `number` cannot hold.
        #[ts(optional, type = "number | bigint | null")]
        seed: Option<i64>,
        /// Subtracted from a token's logit per earlier occurrence in the completion.
        frequency_penalty: Option<f64>,
        /// Subtracted once from the logit of every token of the completion.
        presence_penalty: Option<f64>,
        /// Makes tokens of prompt and completion less likely if above 1.
        repetition_penalty: Option<f64>,
        /// The same as `repetition_penalty`.
        repeat_penalty: Option<f64>,
        /// Token ids, and what is added to their logits; or pairs of an id or a text and a number or false, which forbids
        /// the token.
        #[ts(
            optional,
            type = "Record<string, number> | [number | string, number | false][] | null"
        )]
        logit_bias: Option<()>,
        /// Mirostat 2.0: the surprise to aim at; replaces `top_k`, `top_p` and `min_p`.
        mirostat_target: Option<f64>,
        /// Mirostat's learning rate.
        mirostat_lr: Option<f64>,
        /// DRY: above 0 penalizes tokens that continue a repetition.
        dry_multiplier: Option<f64>,
        /// DRY: growth of the penalty per repeated token.
        dry_base: Option<f64>,
        /// DRY: repetitions shorter than this are not penalized.
        dry_allowed_length: Option<usize>,
        /// DRY: texts that no repetition extends across.
        dry_sequence_breakers: Option<Vec<String>>,
    }
}

const MAX_LOGIT_BIASES: usize = 1024;

/// Smaller repetition penalties have the same effect as this one; dividing by them could overflow f32.
const MIN_REPETITION_PENALTY: f32 = 1e-20;

const DEFAULT_DRY_BREAKERS: [&str; 4] = ["\n", ":", "\"", "*"];

/// The sampling fields as the request gives them.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::api) struct Sampling {
    given: SamplingDefaults,
    seed: Option<i64>,
    typical_p: f32,
    frequency_penalty: f32,
    presence_penalty: f32,
    /// Ids and what is added to their logits, including zeros.
    logit_bias: Vec<(u32, f32)>,
    /// Texts and what is added to the logits of their tokens; `None` forbids them.
    text_bias: Vec<(String, Option<f32>)>,
    /// Ids that are never generated.
    banned: Vec<u32>,
    mirostat: Option<MirostatParams>,
    dry: Option<Dry>,
}

/// DRY parameters with sequence breakers as text: their ids depend on the model.
#[derive(Debug, Clone, PartialEq)]
struct Dry {
    multiplier: f32,
    base: f32,
    allowed_length: usize,
    breakers: Vec<String>,
}

impl Sampling {
    /// Checks what needs the model: the ids of `logit_bias`.
    ///
    /// # Errors
    /// `out_of_range` for an id that is not below `vocab_size`.
    pub(in crate::api) fn check_vocabulary(&self, vocab_size: usize) -> Result<()> {
        match self
            .logit_bias
            .iter()
            .map(|(id, _)| id)
            .chain(&self.banned)
            .find(|id| **id as usize >= vocab_size)
        {
            None => Ok(()),
            Some(id) => {
                let bounds = format!("keyed by ids below the vocabulary size {vocab_size}");
                Err(out_of_range("logit_bias", &bounds, id))
            }
        }
    }

    /// The ids that are never generated.
    pub(in crate::api) fn banned(&self, tokenizer: &Tokenizer) -> Result<Vec<u32>> {
        let mut banned = self.banned.clone();
        for (text, _) in self.text_bias.iter().filter(|(_, bias)| bias.is_none()) {
            banned.extend(tokenizer.encode(text, false)?);
        }
        Ok(banned)
    }

    /// What is added to logits. Several biases of a token add up.
    fn biases(&self, tokenizer: &Tokenizer) -> Result<Vec<(u32, f32)>> {
        let mut biases: Vec<(u32, f32)> = Vec::with_capacity(self.logit_bias.len());
        let mut places = HashMap::new();
        let mut add = |id: u32, bias: f32| match places.entry(id) {
            Entry::Occupied(place) => {
                let (_, sum): &mut (u32, f32) = &mut biases[*place.get()];
                *sum += bias;
            }
            Entry::Vacant(place) => {
                place.insert(biases.len());
                biases.push((id, bias));
            }
        };
        for (id, bias) in &self.logit_bias {
            add(*id, *bias);
        }
        for (text, bias) in &self.text_bias {
            let Some(bias) = bias else { continue };
            for id in tokenizer.encode(text, false)? {
                add(id, *bias);
            }
        }
        if biases.len() > MAX_LOGIT_BIASES {
            let bounds = format!("at most {MAX_LOGIT_BIASES} tokens");
            return Err(out_of_range("logit_bias", &bounds, biases.len()));
        }
        biases.retain(|(_, bias)| *bias != 0.0);
        Ok(biases)
    }

    /// The sampler's parameters, with [`Self::seed`]. `model` supplies what the request leaves out.
    /// With DRY this reads the whole vocabulary of `tokenizer`: call it once and clone the result for
    /// further prompts.
    pub(in crate::api) fn params(
        &self,
        model: &SamplingDefaults,
        tokenizer: &Tokenizer,
    ) -> Result<SamplingParams> {
        let given = &self.given;
        let repetition_penalty = given.repetition_penalty.or(model.repetition_penalty);
        let dry = self.dry.as_ref().map(|dry| {
            Ok::<_, Error>(DryParams {
                multiplier: dry.multiplier,
                base: dry.base,
                allowed_length: dry.allowed_length,
                breakers: breakers::ids(&dry.breakers, tokenizer)?,
            })
        });
        Ok(SamplingParams {
            logit_bias: self.biases(tokenizer)?,
            repetition_penalty: repetition_penalty
                .unwrap_or(1.0)
                .max(MIN_REPETITION_PENALTY),
            frequency_penalty: self.frequency_penalty,
            presence_penalty: self.presence_penalty,
            dry: dry.transpose()?,
            temperature: given.temperature.or(model.temperature).unwrap_or(1.0),
            mirostat: self.mirostat,
            top_k: given
                .top_k
                .or(model.top_k)
                .filter(|top_k| *top_k > 0)
                .map(|top_k| usize::try_from(top_k).unwrap_or(usize::MAX)),
            typical_p: self.typical_p,
            top_p: given.top_p.or(model.top_p).unwrap_or(1.0),
            min_p: given.min_p.or(model.min_p).unwrap_or(0.0),
            seed: self.seed()?,
        })
    }

    /// The request's seed, or 64 random bits, different at every call.
    pub(in crate::api) fn seed(&self) -> Result<i64> {
        if let Some(seed) = self.seed {
            return Ok(seed);
        }
        let mut bytes = [0; 8];
        getrandom_04::fill(&mut bytes)
            .map_err(|error| Error::Internal(format!("no random seed: {error}")))?;
        Ok(i64::from_le_bytes(bytes))
    }
}

pub(in crate::api) fn read(fields: &Fields, switches: &Switches) -> Result<Sampling> {
    let top_k = fields.integer("top_k", -1..=i128::MAX)?;
    let int64 = i128::from(i64::MIN)..=i128::from(i64::MAX);
    let bounds = Bounds::of(switches.sampling_bounds);
    let penalty = |name| {
        let range = -bounds.penalty..=bounds.penalty;
        Ok::<_, Error>(fields.number_in(name, range)?.map_or(0.0, moderate))
    };
    let Biases {
        ids: logit_bias,
        texts: text_bias,
        banned,
    } = logit_bias(fields, bounds.bias)?;
    Ok(Sampling {
        given: SamplingDefaults {
            temperature: fields
                .number_in("temperature", 0.0..=bounds.temperature)?
                .map(moderate),
            top_p: fields.number_in("top_p", 0.0..=1.0)?.map(narrow),
            top_k: top_k.map(|top_k| i64::try_from(top_k).unwrap_or(i64::MAX)),
            min_p: fields.number_in("min_p", 0.0..=1.0)?.map(narrow),
            repetition_penalty: repetition_penalty(fields, bounds.repetition_penalty)?,
        },
        seed: fields
            .integer("seed", int64)?
            .and_then(|seed| i64::try_from(seed).ok()),
        typical_p: fields
            .number_in("typical_p", 0.0..=1.0)?
            .map_or(1.0, narrow),
        frequency_penalty: penalty("frequency_penalty")?,
        presence_penalty: penalty("presence_penalty")?,
        logit_bias,
        text_bias,
        banned,
        mirostat: mirostat(fields, switches)?,
        dry: dry(fields)?,
    })
}

/// The largest absolute values of some fields.
struct Bounds {
    temperature: f64,
    penalty: f64,
    repetition_penalty: f64,
    bias: f64,
}

impl Bounds {
    fn of(bounds: SamplingBounds) -> Bounds {
        match bounds {
            SamplingBounds::Standard => Bounds {
                temperature: 2.0,
                penalty: 2.0,
                repetition_penalty: 2.0,
                bias: 100.0,
            },
            SamplingBounds::Open => Bounds {
                temperature: f64::INFINITY,
                penalty: f64::INFINITY,
                repetition_penalty: f64::INFINITY,
                bias: f64::INFINITY,
            },
        }
    }
}

/// As an f32 of at most a million, so that finite logits stay finite. Larger values act alike: they exceed all
/// differences between logits.
fn moderate(number: f64) -> f32 {
    const MOST: f32 = 1e6;
    (number as f32).clamp(-MOST, MOST)
}

/// As an f32, huge numbers as the largest finite one.
fn narrow(number: f64) -> f32 {
    (number as f32).clamp(-f32::MAX, f32::MAX)
}

/// As [`narrow`], but positive numbers stay positive.
fn narrow_positive(number: f64) -> f32 {
    narrow(number).max(f32::MIN_POSITIVE)
}

fn repetition_penalty(fields: &Fields, most: f64) -> Result<Option<f32>> {
    let penalty = fields.positive_number("repetition_penalty", most)?;
    let alias = fields.positive_number("repeat_penalty", most)?;
    match (penalty, alias) {
        (Some(one), Some(other)) if one != other => Err(fault(
            RequestFault::ConflictingParameters,
            "repeat_penalty",
            format!("repeat_penalty is {other}, but repetition_penalty is {one}"),
        )),
        (one, other) => Ok(one.or(other).map(moderate)),
    }
}

/// The forms of a bias.
#[derive(Default)]
struct Biases {
    ids: Vec<(u32, f32)>,
    texts: Vec<(String, Option<f32>)>,
    banned: Vec<u32>,
}

fn logit_bias(fields: &Fields, most: f64) -> Result<Biases> {
    let name = "logit_bias";
    match fields.get(name) {
        Some(Value::Array(pairs)) => bias_pairs(name, pairs, most),
        _ => Ok(Biases {
            ids: bias_map(fields, name, most)?,
            ..Biases::default()
        }),
    }
}

/// llama.cpp's form: pairs of an id or a text and a number or false.
fn bias_pairs(name: &str, pairs: &[Value], most: f64) -> Result<Biases> {
    if pairs.len() > MAX_LOGIT_BIASES {
        let bounds = format!("at most {MAX_LOGIT_BIASES} entries");
        return Err(out_of_range(name, &bounds, pairs.len()));
    }
    let mut biases = Biases::default();
    for pair in pairs {
        let wrong = || {
            let expected = "made of pairs of an id or a text and a number or false";
            invalid_type(name, expected, pair)
        };
        let [token, bias] = pair.as_array().map(Vec::as_slice).unwrap_or_default() else {
            return Err(wrong());
        };
        let bias = match bias {
            Value::Bool(false) => None,
            other => Some(bias_in(name, other.as_f64().ok_or_else(wrong)?, most)?),
        };
        match (token, bias) {
            (Value::String(text), bias) if !text.is_empty() => {
                biases.texts.push((text.clone(), bias));
            }
            (Value::String(_), _) => {
                return Err(invalid_value(name, "a text of it must not be empty"));
            }
            (id, bias) => {
                let id = integer(id).ok_or_else(wrong)?;
                let id = u32::try_from(id)
                    .map_err(|_| out_of_range(name, "made of the vocabulary's token ids", id))?;
                match bias {
                    Some(bias) => biases.ids.push((id, bias)),
                    None => biases.banned.push(id),
                }
            }
        }
    }
    check_text_bytes(name, biases.texts.iter().map(|(text, _)| text.as_str()))?;
    Ok(biases)
}

fn bias_in(name: &str, bias: f64, most: f64) -> Result<f32> {
    if bias.abs() > most {
        let bounds = format!("made of numbers from -{most} to {most}");
        return Err(out_of_range(name, &bounds, bias));
    }
    Ok(moderate(bias))
}

fn bias_map(fields: &Fields, name: &str, most: f64) -> Result<Vec<(u32, f32)>> {
    let Some(biases) = fields.object(name)? else {
        return Ok(Vec::new());
    };
    if biases.len() > MAX_LOGIT_BIASES {
        let bounds = format!("at most {MAX_LOGIT_BIASES} entries");
        return Err(out_of_range(name, &bounds, biases.len()));
    }
    let entry = |(key, value): (&String, &Value)| {
        let is_digits = key.bytes().all(|byte| byte.is_ascii_digit());
        let is_canonical = is_digits && (key.len() == 1 || !key.starts_with('0'));
        let id = key.parse::<u32>().ok().filter(|_| is_canonical);
        let id = id.ok_or_else(|| {
            let given = describe(&Value::String(key.clone()));
            out_of_range(name, "keyed by token ids", given)
        })?;
        match value.as_f64() {
            None => Err(invalid_type(name, "made of numbers", value)),
            Some(bias) => Ok((id, bias_in(name, bias, most)?)),
        }
    };
    biases.iter().map(entry).collect()
}

fn mirostat(fields: &Fields, switches: &Switches) -> Result<Option<MirostatParams>> {
    let name = "mirostat_target";
    let target_bits = match switches.mirostat_target_unit {
        MirostatTargetUnit::Perplexity => {
            let target = fields.number_in(name, 1.0..=f64::INFINITY)?;
            target.map(|perplexity| narrow(perplexity.log2()))
        }
        MirostatTargetUnit::Bits => fields
            .positive_number(name, f64::INFINITY)?
            .map(narrow_positive),
    };
    // Without a target the rate has no effect, but must be valid.
    let learning_rate = fields.positive_number("mirostat_lr", 1.0)?.unwrap_or(0.1);
    Ok(target_bits.map(|target_bits| MirostatParams {
        target_bits,
        learning_rate: narrow_positive(learning_rate),
    }))
}

fn dry(fields: &Fields) -> Result<Option<Dry>> {
    let multiplier = fields.number_in("dry_multiplier", 0.0..=f64::INFINITY)?;
    // Without a multiplier the others have no effect, but must be valid.
    let base = fields.number_in("dry_base", 1.0..=f64::INFINITY)?;
    let allowed_length = fields.count("dry_allowed_length")?;
    let breakers = dry_breakers(fields)?;
    Ok(multiplier
        .filter(|multiplier| *multiplier > 0.0)
        .map(|multiplier| Dry {
            multiplier: narrow_positive(multiplier),
            base: narrow(base.unwrap_or(1.75)),
            allowed_length: allowed_length.unwrap_or(2),
            breakers,
        }))
}

fn dry_breakers(fields: &Fields) -> Result<Vec<String>> {
    let name = "dry_sequence_breakers";
    let Some(breakers) = fields.array(name)? else {
        return Ok(DEFAULT_DRY_BREAKERS.map(str::to_owned).into());
    };
    let breaker = |breaker: &Value| match breaker.as_str() {
        None => Err(invalid_type(name, "made of strings", breaker)),
        Some("") => Err(invalid_value(name, "a sequence breaker must not be empty")),
        Some(text) => Ok(text.to_owned()),
    };
    let breakers: Vec<String> = breakers.iter().map(breaker).collect::<Result<_>>()?;
    check_text_bytes(name, breakers.iter().map(String::as_str))?;
    Ok(breakers)
}
