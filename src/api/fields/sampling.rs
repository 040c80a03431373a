//! The sampling fields (specification 4.5), validated and converted to the sampler's parameters. What
//! the parameters do is documented in `crate::sample`.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use super::breakers;
use super::declare::{Field, Or, Setting, fields};
use super::kinds::{
    Biases as BiasField, Count, Integer, Number, Shape, Strings, biases, count, integer, number,
    number_from, shape, share, strings,
};
use super::logit_bias::{self, Biases, moderate};
use super::reader::{Fields, out_of_range};
use crate::api::error::fault;
use crate::api::switches::{MirostatTargetUnit, SamplingBounds, Switches};
use crate::engine::generation::SamplingDefaults;
use crate::engine::generation::{DryParams, MirostatParams, SamplingParams};
use crate::text::Tokenizer;
use crate::{Error, RequestFault, Result};

/// The switch that lifts upper bounds, and a bound without it.
const fn open(most: fn(&Switches) -> f64) -> Setting<f64> {
    Setting::Switch("samplingBounds", most)
}

const fn bound(switches: &Switches, standard: f64) -> f64 {
    match switches.sampling_bounds {
        SamplingBounds::Standard => standard,
        SamplingBounds::Open => f64::INFINITY,
    }
}

const UP_TO_2: Setting<f64> = open(|it| bound(it, 2.0));
const REPETITION_PENALTY: Field<Number> = number(Number::Positive(UP_TO_2));

fields! {
    SamplingFields {
        /// Below 1e-5 the most likely token is taken.
        temperature: Or<Number> = number(Number::Within(0.0, UP_TO_2)).or(1.0),
        /// Keep the most likely tokens whose probabilities add up to this; 0 keeps only the most likely one.
        top_p: Or<Number> = share().or(1.0),
        /// Keep the tokens whose surprise is closest to the expected one, up to this probability mass; 1 is off.
        typical_p: Or<Number> = share().or(1.0).of("llama.cpp, Fireworks"),
        /// Keep this many of the most likely tokens; -1 and 0 are off.
        top_k: Field<Integer> = integer(-1).default_is("off").of("vLLM, llama.cpp, Fireworks"),
        /// Keep tokens at least this fraction as likely as the most likely one.
        min_p: Or<Number> = share().or(0.0).of("vLLM, llama.cpp, Fireworks"),
        /// The same seed gives the same output; -1 is an ordinary one. A `bigint` keeps what a `number` cannot hold.
        seed: Field<Integer> = integer(i64::MIN as i128).at_most(i64::MAX as i128).default_is("random"),
        /// The number that is subtracted from a token's logit per earlier occurrence in the completion.
        frequency_penalty: Or<Number> = number(Number::Around(UP_TO_2)).or(0.0),
        /// The number that is subtracted once from the logit of every token of the completion.
        presence_penalty: Or<Number> = number(Number::Around(UP_TO_2)).or(0.0),
        /// Makes tokens of prompt and completion less likely if above 1.
        repetition_penalty: Or<Number> = REPETITION_PENALTY.or(1.0).of("vLLM, Fireworks"),
        /// The same as `repetition_penalty`.
        repeat_penalty: Field<Number> = REPETITION_PENALTY.of("llama.cpp"),
        /// Token ids or strings, and what is added to their logits; or pairs of an id or a string and a number or false, which forbids
        /// the token.
        logit_bias: Field<BiasField> = biases(1024, open(|it| bound(it, 100.0))),
        /// Mirostat 2.0: the surprise to aim at; replaces `top_k`, `typical_p`, `top_p` and `min_p`.
        mirostat_target: Field<Shape> = shape("number", "number")
            .default_is("off")
            .range("a perplexity ≥ 1, or bits above 0 (`mirostatTargetUnit`)")
            .of("Fireworks"),
        /// Mirostat's learning rate; no effect without a target.
        mirostat_lr: Or<Number> = number(Number::Positive(Setting::Fixed(1.0))).or(0.1).of("Fireworks"),
        /// DRY: above 0 penalizes tokens that continue a repetition.
        dry_multiplier: Field<Number> = number_from(0.0).default_is("off").of("llama.cpp"),
        /// DRY: growth of the penalty per repeated token.
        dry_base: Or<Number> = number_from(1.0).or(1.75).of("llama.cpp"),
        /// DRY: repetitions shorter than this are not penalized.
        dry_allowed_length: Or<Count> = count(0).or(2).of("llama.cpp"),
        /// DRY: strings that no repetition extends across.
        dry_sequence_breakers: Field<Strings> =
            strings().short().otherwise(&["\n", ":", "\"", "*"]).of("llama.cpp"),
    }
}

const MAX_LOGIT_BIASES: usize = SamplingFields::logit_bias.kind.most_entries;

/// Smaller repetition penalties have the same effect as this one; dividing by them could overflow f32.
const MIN_REPETITION_PENALTY: f32 = 1e-20;

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
    /// Strings and the numbers that are added to the logits of their tokens; `None` forbids them.
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

    /// Numbers that are added to logits. Several biases of a token add up.
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

    /// An upper bound of the biases that are added up for one token: a string has at most a token per byte.
    #[cfg(test)]
    pub(in crate::api) fn most_biases_of_a_token(&self) -> usize {
        let bytes = self.text_bias.iter().map(|(text, _)| text.len());
        self.logit_bias.len() + bytes.sum::<usize>()
    }

    /// The sampler's parameters, with [`Self::seed`]. `model` supplies what the request leaves out.
    /// With DRY this reads the whole vocabulary of `tokenizer`: call it once and clone the result for
    /// further prompts.
    pub(in crate::api) fn params(
        &self,
        model: &SamplingDefaults,
        tokenizer: &Tokenizer,
    ) -> Result<SamplingParams> {
        const TEMPERATURE: f32 = SamplingFields::temperature.fixed_default() as f32;
        const TOP_P: f32 = SamplingFields::top_p.fixed_default() as f32;
        const MIN_P: f32 = SamplingFields::min_p.fixed_default() as f32;
        const REPETITION: f32 = SamplingFields::repetition_penalty.fixed_default() as f32;
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
                .unwrap_or(REPETITION)
                .max(MIN_REPETITION_PENALTY),
            frequency_penalty: self.frequency_penalty,
            presence_penalty: self.presence_penalty,
            dry: dry.transpose()?,
            temperature: given
                .temperature
                .or(model.temperature)
                .unwrap_or(TEMPERATURE),
            mirostat: self.mirostat,
            top_k: given
                .top_k
                .or(model.top_k)
                .filter(|top_k| *top_k > 0)
                .map(|top_k| usize::try_from(top_k).unwrap_or(usize::MAX)),
            typical_p: self.typical_p,
            top_p: given.top_p.or(model.top_p).unwrap_or(TOP_P),
            min_p: given.min_p.or(model.min_p).unwrap_or(MIN_P),
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
    let top_k = SamplingFields::top_k.read(fields, switches)?;
    let seed = SamplingFields::seed.read(fields, switches)?;
    let read = |field: Or<Number>| Ok::<_, Error>(moderate(field.read(fields, switches)?));
    let share = |field: Or<Number>| Ok::<_, Error>(field.given(fields, switches)?.map(narrow));
    let Biases {
        ids: logit_bias,
        strings: text_bias,
        banned,
    } = logit_bias::read(fields, SamplingFields::logit_bias, switches)?;
    Ok(Sampling {
        given: SamplingDefaults {
            temperature: SamplingFields::temperature
                .given(fields, switches)?
                .map(moderate),
            top_p: share(SamplingFields::top_p)?,
            top_k: top_k.map(|top_k| i64::try_from(top_k).unwrap_or(i64::MAX)),
            min_p: share(SamplingFields::min_p)?,
            repetition_penalty: repetition_penalty(fields, switches)?,
            // `max_tokens` belongs to another group of fields.
            max_tokens: None,
        },
        seed: seed.and_then(|seed| i64::try_from(seed).ok()),
        typical_p: narrow(SamplingFields::typical_p.read(fields, switches)?),
        frequency_penalty: read(SamplingFields::frequency_penalty)?,
        presence_penalty: read(SamplingFields::presence_penalty)?,
        logit_bias,
        text_bias,
        banned,
        mirostat: mirostat(fields, switches)?,
        dry: dry(fields, switches)?,
    })
}

/// Converts to an f32; huge numbers become the largest finite one.
fn narrow(number: f64) -> f32 {
    (number as f32).clamp(-f32::MAX, f32::MAX)
}

/// Same as [`narrow`], but a positive number never becomes zero.
fn narrow_positive(number: f64) -> f32 {
    narrow(number).max(f32::MIN_POSITIVE)
}

fn repetition_penalty(fields: &Fields, switches: &Switches) -> Result<Option<f32>> {
    let penalty = SamplingFields::repetition_penalty.given(fields, switches)?;
    let alias = SamplingFields::repeat_penalty.read(fields, switches)?;
    match (penalty, alias) {
        (Some(one), Some(other)) if one != other => Err(fault(
            RequestFault::ConflictingParameters,
            SamplingFields::repeat_penalty.name,
            format!("repeat_penalty is {other}, but repetition_penalty is {one}"),
        )),
        (one, other) => Ok(one.or(other).map(moderate)),
    }
}

fn mirostat(fields: &Fields, switches: &Switches) -> Result<Option<MirostatParams>> {
    let name = SamplingFields::mirostat_target.name;
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
    let learning_rate = SamplingFields::mirostat_lr.read(fields, switches)?;
    Ok(target_bits.map(|target_bits| MirostatParams {
        target_bits,
        learning_rate: narrow_positive(learning_rate),
    }))
}

fn dry(fields: &Fields, switches: &Switches) -> Result<Option<Dry>> {
    let multiplier = SamplingFields::dry_multiplier.read(fields, switches)?;
    // Without a multiplier the others have no effect, but must be valid.
    let base = SamplingFields::dry_base.read(fields, switches)?;
    let allowed_length = SamplingFields::dry_allowed_length.read(fields, switches)?;
    let breakers = SamplingFields::dry_sequence_breakers.read(fields, switches)?;
    Ok(multiplier
        .filter(|multiplier| *multiplier > 0.0)
        .map(|multiplier| Dry {
            multiplier: narrow_positive(multiplier),
            base: narrow(base),
            allowed_length,
            breakers: breakers.unwrap_or_default(),
        }))
}
