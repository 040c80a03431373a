//! Fields of vendors that are known and do nothing here (specification 4.6): harmless ones are accepted with any value;
//! those that would change the answer are refused unless their value changes nothing.

use serde_json::Value;

use super::declare::fields;
use super::reader::{Fields, describe};
use crate::api::error::fault;
use crate::{RequestFault, Result};

fields! {
    /// Accepted and not used.
    VendorFields {
        /// Not used.
        #[ts(optional, type = "unknown")]
        cache_prompt: Option<()>,
        /// Not used.
        #[ts(optional, type = "unknown")]
        cache_salt: Option<()>,
        /// Not used.
        #[ts(optional, type = "unknown")]
        early_stopping: Option<()>,
        /// Not used.
        #[ts(optional, type = "unknown")]
        id_slot: Option<()>,
        /// Not used.
        #[ts(optional, type = "unknown")]
        metadata: Option<()>,
        /// Not used.
        #[ts(optional, type = "unknown")]
        n_discard: Option<()>,
        /// Not used.
        #[ts(optional, type = "unknown")]
        n_keep: Option<()>,
        /// Not used.
        #[ts(optional, type = "unknown")]
        prediction: Option<()>,
        /// Not used.
        #[ts(optional, type = "unknown")]
        priority: Option<()>,
        /// Not used.
        #[ts(optional, type = "unknown")]
        prompt_cache_isolation_key: Option<()>,
        /// Not used.
        #[ts(optional, type = "unknown")]
        prompt_cache_key: Option<()>,
        /// Not used.
        #[ts(optional, type = "unknown")]
        prompt_cache_max_len: Option<()>,
        /// Not used.
        #[ts(optional, type = "unknown")]
        prompt_cache_retention: Option<()>,
        /// Not used.
        #[ts(optional, type = "unknown")]
        request_id: Option<()>,
        /// Not used.
        #[ts(optional, type = "unknown")]
        safety_identifier: Option<()>,
        /// Not used.
        #[ts(optional, type = "unknown")]
        service_tier: Option<()>,
        /// Not used.
        #[ts(optional, type = "unknown")]
        spaces_between_special_tokens: Option<()>,
        /// Not used.
        #[ts(optional, type = "unknown")]
        speculation: Option<()>,
        /// Not used.
        #[ts(optional, type = "unknown")]
        store: Option<()>,
        /// Not used.
        #[ts(optional, type = "unknown")]
        timings_per_token: Option<()>,
    }
}

/// What a field of [`UNSUPPORTED`] may be.
type IsNeutral = fn(&Fields, &Value) -> bool;

/// Fields that would change the answer.
pub(in crate::api) const UNSUPPORTED: &[&str] = &[
    "dry_penalty_last_n",
    "dynatemp_exponent",
    "dynatemp_range",
    "length_penalty",
    "logits_processors",
    "lora",
    "min_keep",
    "mirostat",
    "mirostat_eta",
    "mirostat_tau",
    "n_indent",
    "n_probs",
    "post_sampling_probs",
    "prompt_embeds",
    "repeat_last_n",
    "response_fields",
    "return_progress",
    "return_tokens",
    "safe_tokenization",
    "samplers",
    "sampling_mask",
    "t_max_predict_ms",
    "top_n_sigma",
    "use_beam_search",
    "xtc_probability",
    "xtc_threshold",
];

/// The test of a field of [`UNSUPPORTED`].
fn neutral(name: &str) -> IsNeutral {
    match name {
        "use_beam_search"
        | "post_sampling_probs"
        | "return_progress"
        | "return_tokens"
        | "safe_tokenization"
        | "sampling_mask" => |_, value| *value == Value::Bool(false),
        "xtc_probability" | "dynatemp_range" | "min_keep" | "mirostat" | "n_indent" | "n_probs" => {
            |_, value| value.as_f64() == Some(0.0)
        }
        "length_penalty" => |_, value| value.as_f64() == Some(1.0),
        // XTC removes only candidates above the threshold if there are two of them, so above one half none.
        "xtc_threshold" => |fields, value| {
            is_number(fields, "xtc_probability", 0.0) || value.as_f64().is_some_and(|it| it > 0.5)
        },
        "dynatemp_exponent" => {
            |fields, value| is_number(fields, "dynatemp_range", 0.0) || value.as_f64() == Some(1.0)
        }
        // Without version 1 or 2, which are refused, they have no effect.
        "mirostat_eta" | "mirostat_tau" => |_, value| value.is_number(),
        "top_n_sigma" | "t_max_predict_ms" => |_, value| value.as_f64().is_some_and(|it| it <= 0.0),
        "repeat_last_n" => |fields, value| {
            value.as_f64() == Some(-1.0) || (value.is_number() && !has_penalty(fields))
        },
        "dry_penalty_last_n" => |fields, value| {
            value.as_f64() == Some(-1.0) || (value.is_number() && !is_dry_on(fields))
        },
        _ => |_, value| value.as_array().is_some_and(Vec::is_empty),
    }
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
    for name in UNSUPPORTED {
        if let Some(value) = fields.get(name)
            && !neutral(name)(fields, value)
        {
            let value = describe(value);
            let message = format!("{name} is not supported: {value} would change the answer");
            return Err(fault(RequestFault::UnsupportedParameter, name, message));
        }
    }
    Ok(())
}
