//! `logit_bias`, in OpenAI's form and in that of llama.cpp (specification 4.5).

use serde_json::Value;

use super::declare::Field;
use super::kinds::Biases as BiasField;
use super::reader::{
    Fields, MAX_TEXT_BYTES, check_text_bytes, describe, integer as integer_of, invalid_type,
    invalid_value, out_of_range,
};
use crate::Result;
use crate::api::switches::Switches;

/// The biases of a request.
#[derive(Debug, Default)]
pub(super) struct Biases {
    /// Token ids and the numbers that are added to their logits.
    pub ids: Vec<(u32, f32)>,
    /// Strings and the numbers that are added to the logits of their tokens; `None` forbids them.
    pub strings: Vec<(String, Option<f32>)>,
    /// Token ids that are forbidden.
    pub banned: Vec<u32>,
}

/// Reads the field that is declared as `declared`.
pub(super) fn read(
    fields: &Fields,
    declared: Field<BiasField>,
    switches: &Switches,
) -> Result<Biases> {
    let name = declared.name;
    let limits = Limits {
        entries: declared.kind.most_entries,
        bias: declared.kind.most.of(switches),
    };
    match fields.get(name) {
        Some(Value::Array(pairs)) => bias_pairs(name, pairs, limits),
        _ => bias_map(fields, name, limits),
    }
}

#[derive(Clone, Copy)]
struct Limits {
    /// The most entries.
    entries: usize,
    /// The largest magnitude of a bias.
    bias: f64,
}

impl Limits {
    fn check_entries(self, name: &str, entries: usize) -> Result<()> {
        if entries > self.entries {
            let bounds = format!("at most {} entries", self.entries);
            return Err(out_of_range(name, &bounds, entries));
        }
        Ok(())
    }
}

/// llama.cpp's form: pairs of an id or a string and a number or false.
fn bias_pairs(name: &str, pairs: &[Value], limits: Limits) -> Result<Biases> {
    limits.check_entries(name, pairs.len())?;
    let mut biases = Biases::default();
    for pair in pairs {
        let wrong = || {
            let expected = "made of pairs of an id or a string and a number or false";
            invalid_type(name, expected, pair)
        };
        let [token, bias] = pair.as_array().map(Vec::as_slice).unwrap_or_default() else {
            return Err(wrong());
        };
        let bias = match bias {
            Value::Bool(false) => None,
            other => Some(bias_in(
                name,
                other.as_f64().ok_or_else(wrong)?,
                limits.bias,
            )?),
        };
        match (token, bias) {
            (Value::String(text), bias) if !text.is_empty() => {
                biases.strings.push((text.clone(), bias));
            }
            (Value::String(_), _) => {
                return Err(invalid_value(name, "a string of it must not be empty"));
            }
            (id, bias) => {
                let id = integer_of(id).ok_or_else(wrong)?;
                let id = u32::try_from(id)
                    .map_err(|_| out_of_range(name, "made of the vocabulary's token ids", id))?;
                match bias {
                    Some(bias) => biases.ids.push((id, bias)),
                    None => biases.banned.push(id),
                }
            }
        }
    }
    let bytes = biases.strings.iter().map(|(text, _)| text.len()).sum();
    check_text_bytes(name, bytes, MAX_TEXT_BYTES)?;
    Ok(biases)
}

fn bias_in(name: &str, bias: f64, most: f64) -> Result<f32> {
    if bias.abs() > most {
        let bounds = format!("made of numbers from -{most} to {most}");
        return Err(out_of_range(name, &bounds, bias));
    }
    Ok(moderate(bias))
}

/// OpenAI's form: an object with ids as names. A name that is no number is a string, as in llama.cpp.
fn bias_map(fields: &Fields, name: &str, limits: Limits) -> Result<Biases> {
    let mut biases = Biases::default();
    let Some(map) = fields.object(name)? else {
        return Ok(biases);
    };
    limits.check_entries(name, map.len())?;
    for (key, value) in map {
        let bias = value.as_f64();
        let bias = bias.ok_or_else(|| invalid_type(name, "made of numbers", value))?;
        let bias = bias_in(name, bias, limits.bias)?;
        let is_digits = key.bytes().all(|byte| byte.is_ascii_digit());
        let is_canonical = is_digits && (key.len() == 1 || !key.starts_with('0'));
        match key.parse::<u32>().ok().filter(|_| is_canonical) {
            Some(id) => biases.ids.push((id, bias)),
            None if key.is_empty() => {
                return Err(invalid_value(name, "a string of it must not be empty"));
            }
            None if looks_like_a_number(key) => {
                let given = describe(&Value::String(key.clone()));
                return Err(out_of_range(name, "keyed by token ids or strings", given));
            }
            None => biases.strings.push((key.clone(), Some(bias))),
        }
    }
    let bytes = biases.strings.iter().map(|(text, _)| text.len()).sum();
    check_text_bytes(name, bytes, MAX_TEXT_BYTES)?;
    Ok(biases)
}

/// Whether someone who wrote `text` may have meant an id.
fn looks_like_a_number(text: &str) -> bool {
    let is_of_number = |byte: u8| byte.is_ascii_digit() || b"+-.".contains(&byte);
    text.bytes().all(is_of_number) && text.bytes().any(|byte| byte.is_ascii_digit())
}

/// Converts to an f32 of at most a million, so that finite logits stay finite. Larger values act alike: they exceed all
/// differences between logits.
pub(super) fn moderate(number: f64) -> f32 {
    const MOST: f32 = 1e6;
    (number as f32).clamp(-MOST, MOST)
}
