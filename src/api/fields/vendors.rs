//! Fields of vendors that are known and do nothing here (specification 4.6): harmless ones are accepted with any value;
//! those that would change the answer are refused unless their value changes nothing.

use serde_json::Value;

use super::declare::{Field, fields};
use super::kinds::{Shape, unused};
use super::reader::{Fields, describe};
use crate::api::error::fault;
use crate::{RequestFault, Result};

fields! {
    /// Accepted and not used.
    #[allow(dead_code)]
    VendorFields {
        /// Not used.
        cache_prompt: Field<Shape> = unused().of("llama.cpp"),
        /// Not used.
        cache_salt: Field<Shape> = unused().of("vLLM"),
        /// Not used.
        early_stopping: Field<Shape> = unused().of("vLLM"),
        /// Not used.
        id_slot: Field<Shape> = unused().of("llama.cpp"),
        /// Not used.
        metadata: Field<Shape> = unused(),
        /// Not used.
        n_discard: Field<Shape> = unused().of("llama.cpp"),
        /// Not used.
        n_keep: Field<Shape> = unused().of("llama.cpp"),
        /// Not used.
        priority: Field<Shape> = unused().of("vLLM"),
        /// Not used.
        prompt_cache_isolation_key: Field<Shape> = unused().of("Fireworks"),
        /// Not used.
        prompt_cache_key: Field<Shape> = unused(),
        /// Not used.
        prompt_cache_max_len: Field<Shape> = unused().of("Fireworks"),
        /// Not used.
        prompt_cache_retention: Field<Shape> = unused(),
        /// Not used.
        request_id: Field<Shape> = unused().of("vLLM"),
        /// Not used.
        safety_identifier: Field<Shape> = unused(),
        /// Not used.
        service_tier: Field<Shape> = unused(),
        /// Not used.
        spaces_between_special_tokens: Field<Shape> = unused().of("vLLM"),
        /// Not used: how many tokens are guessed follows from how often guesses were right.
        p_min("speculative.p_min"): Field<Shape> = unused().of("llama.cpp"),
        /// Not used.
        store: Field<Shape> = unused(),
        /// Not used.
        timings_per_token: Field<Shape> = unused().of("llama.cpp"),
    }
}

/// Whether a value of a [`Refused`] field changes nothing.
type IsNeutral = fn(&Fields, &Value) -> bool;

/// A field that would change the answer.
pub(in crate::api) struct Refused {
    pub name: &'static str,
    is_neutral: IsNeutral,
    /// The values that change nothing, in words.
    pub accepted: &'static str,
}

const fn refused(name: &'static str, is_neutral: IsNeutral, accepted: &'static str) -> Refused {
    Refused {
        name,
        is_neutral,
        accepted,
    }
}

const fn off(name: &'static str) -> Refused {
    refused(name, |_, value| *value == Value::Bool(false), "false")
}

const fn zero(name: &'static str) -> Refused {
    refused(name, |_, value| value.as_f64() == Some(0.0), "0")
}

const fn at_most_zero(name: &'static str) -> Refused {
    let is_neutral = |_: &Fields, value: &Value| value.as_f64().is_some_and(|it| it <= 0.0);
    refused(name, is_neutral, "at most 0")
}

const fn empty(name: &'static str) -> Refused {
    let is_neutral = |_: &Fields, value: &Value| value.as_array().is_some_and(Vec::is_empty);
    refused(name, is_neutral, "`[]`")
}

/// A parameter of llama.cpp's mirostat. It has no effect unless mirostat is on, and the versions that turn it on are refused.
const fn of_mirostat(name: &'static str) -> Refused {
    refused(name, |_, value| value.is_number(), "any number")
}

/// Fields that would change the answer and are not supported.
pub(in crate::api) const REFUSED: &[Refused] = &[
    off("use_beam_search"),
    off("post_sampling_probs"),
    off("return_progress"),
    off("return_tokens"),
    off("safe_tokenization"),
    off("sampling_mask"),
    zero("xtc_probability"),
    zero("dynatemp_range"),
    zero("mirostat"),
    zero("min_keep"),
    zero("n_indent"),
    zero("n_probs"),
    refused(
        "xtc_threshold",
        // XTC removes only candidates above the threshold if there are two of them, so above one half none.
        |fields, value| {
            is_number(fields, "xtc_probability", 0.0) || value.as_f64().is_some_and(|it| it > 0.5)
        },
        "above 0.5, or any value beside `xtc_probability: 0`",
    ),
    refused(
        "dynatemp_exponent",
        |fields, value| is_number(fields, "dynatemp_range", 0.0) || value.as_f64() == Some(1.0),
        "1, or any value beside `dynatemp_range: 0`",
    ),
    refused(
        "length_penalty",
        |_, value| value.as_f64() == Some(1.0),
        "1",
    ),
    of_mirostat("mirostat_tau"),
    of_mirostat("mirostat_eta"),
    at_most_zero("top_n_sigma"),
    at_most_zero("t_max_predict_ms"),
    refused(
        "repeat_last_n",
        |fields, value| value.as_f64() == Some(-1.0) || (value.is_number() && !has_penalty(fields)),
        "−1, or any number if no repetition, frequency or presence penalty is on",
    ),
    refused(
        "dry_penalty_last_n",
        |fields, value| value.as_f64() == Some(-1.0) || (value.is_number() && !is_dry_on(fields)),
        "−1, or any number without `dry_multiplier`",
    ),
    empty("samplers"),
    empty("lora"),
    empty("logits_processors"),
    empty("prompt_embeds"),
    empty("response_fields"),
];

/// Fields that are known and refused in chat besides [`REFUSED`]: they are of other routes or ask for more than text.
pub(in crate::api) const REFUSED_IN_CHAT: &[Refused] = &[
    off("raw_output"),
    off("perf_metrics_in_response"),
    // The chat template writes the special tokens.
    off("add_special_tokens"),
    zero("echo_last"),
    empty("images"),
    refused("suffix", |_, value| value == "", "`\"\"`"),
    refused(
        "modalities",
        |_, value| *value == serde_json::json!(["text"]),
        "`[\"text\"]`",
    ),
    refused("audio", |_, _| false, "null"),
    refused("web_search_options", |_, _| false, "null"),
];

/// A table of refused fields in `docs/api.md`.
#[cfg(test)]
pub(in crate::api) fn table(refused: &[Refused]) -> String {
    let mut table = String::from("| field | accepted |\n|---|---|\n");
    for fields in refused.chunk_by(|one, other| one.accepted == other.accepted) {
        let names = fields.iter().map(|field| format!("`{}`", field.name));
        let names = names.collect::<Vec<_>>().join(", ");
        table.push_str(&format!("| {names} | {} |\n", fields[0].accepted));
    }
    table
}

/// The names of the fields that are known and refused.
pub(in crate::api) fn refused_names() -> impl Iterator<Item = &'static str> {
    REFUSED.iter().map(|field| field.name)
}

fn is_number(fields: &Fields, name: &str, expected: f64) -> bool {
    fields.get(name).and_then(Value::as_f64) == Some(expected)
}

/// Whether a penalty of llama.cpp that counts tokens is on.
fn has_penalty(fields: &Fields) -> bool {
    let differs = |name: &str, off: f64| {
        let value = fields.get(name).and_then(Value::as_f64);
        value.is_some_and(|value| value != off)
    };
    [
        ("repeat_penalty", 1.0),
        ("repetition_penalty", 1.0),
        ("frequency_penalty", 0.0),
        ("presence_penalty", 0.0),
    ]
    .into_iter()
    .any(|(name, off)| differs(name, off))
}

fn is_dry_on(fields: &Fields) -> bool {
    let multiplier = fields.get("dry_multiplier").and_then(Value::as_f64);
    multiplier.is_some_and(|multiplier| multiplier > 0.0)
}

/// Refuses fields that would change the answer.
pub(in crate::api) fn check(fields: &Fields) -> Result<()> {
    check_those(REFUSED, fields)
}

/// Refuses fields of [`REFUSED_IN_CHAT`].
pub(in crate::api) fn check_in_chat(fields: &Fields) -> Result<()> {
    check_those(REFUSED_IN_CHAT, fields)
}

fn check_those(refused: &[Refused], fields: &Fields) -> Result<()> {
    for field in refused {
        let name = field.name;
        if let Some(value) = fields.get(name)
            && !(field.is_neutral)(fields, value)
        {
            let (value, accepted) = (describe(value), field.accepted);
            let message = format!(
                "{name} is not supported: {value} would change the answer; accepted: {accepted}"
            );
            return Err(fault(RequestFault::UnsupportedParameter, name, message));
        }
    }
    Ok(())
}
