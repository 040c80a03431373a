//! Fields that are refused by name, unless their value changes nothing (specification 4.6): those that no route supports, and
//! those of other routes. A field that a route declares is not refused here.

use serde_json::{Value, json};

use super::reader::{Fields, describe};
use crate::api::error::fault;
use crate::{RequestFault, Result};

/// Whether a value of a [`Refused`] field changes nothing.
type IsNeutral = fn(&Fields, &Value) -> bool;

/// A field that would change the answer.
pub(in crate::api) struct Refused {
    pub name: &'static str,
    is_neutral: IsNeutral,
    /// The values that change nothing, in words.
    pub accepted: &'static str,
    /// What to send instead, or why it is refused.
    pub instead: &'static str,
}

impl Refused {
    const fn new(name: &'static str, is_neutral: IsNeutral, accepted: &'static str) -> Refused {
        Refused {
            name,
            is_neutral,
            accepted,
            instead: "",
        }
    }

    pub(in crate::api) const fn instead(mut self, instead: &'static str) -> Refused {
        self.instead = instead;
        self
    }
}

const fn refused(name: &'static str, is_neutral: IsNeutral, accepted: &'static str) -> Refused {
    Refused::new(name, is_neutral, accepted)
}

/// A field of which only null changes nothing.
const fn always(name: &'static str) -> Refused {
    refused(name, |_, _| false, "null")
}

pub(in crate::api) const fn off(name: &'static str) -> Refused {
    refused(name, |_, value| *value == Value::Bool(false), "false")
}

const fn on(name: &'static str) -> Refused {
    refused(name, |_, value| *value == Value::Bool(true), "true")
}

const fn zero(name: &'static str) -> Refused {
    refused(name, |_, value| value.as_f64() == Some(0.0), "0")
}

const fn one(name: &'static str) -> Refused {
    refused(name, |_, value| value.as_f64() == Some(1.0), "1")
}

const fn at_most_zero(name: &'static str) -> Refused {
    let is_neutral = |_: &Fields, value: &Value| value.as_f64().is_some_and(|it| it <= 0.0);
    refused(name, is_neutral, "at most 0")
}

const fn empty(name: &'static str) -> Refused {
    let is_neutral = |_: &Fields, value: &Value| value.as_array().is_some_and(Vec::is_empty);
    refused(name, is_neutral, "`[]`")
}

const fn empty_object(name: &'static str) -> Refused {
    let is_neutral =
        |_: &Fields, value: &Value| value.as_object().is_some_and(serde_json::Map::is_empty);
    refused(name, is_neutral, "`{}`")
}

/// A parameter of llama.cpp's mirostat. It has no effect unless mirostat is on, and the versions that turn it on are refused.
const fn of_mirostat(name: &'static str) -> Refused {
    refused(name, |_, value| value.is_number(), "any number")
}

/// Fields of vendors that no route supports.
pub(in crate::api) const OF_VENDORS: &[Refused] = &[
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
    one("length_penalty"),
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

/// Fields of some routes that change what the model reads.
pub(in crate::api) const OF_PROMPTS: &[Refused] = &[
    always("prompt").instead("the conversation is in `messages` or `input`; no prompts are stored"),
    always("messages").instead("completions have `prompt`, responses `input`"),
    always("input").instead("completions have `prompt`, chat and messages `messages`"),
    always("instructions").instead("send a system message; messages have `system`"),
    always("system").instead("send a system message; responses have `instructions`"),
    refused("suffix", |_, value| value == "", "`\"\"`").instead("only completions have it"),
    always("suffix_mode").instead("only completions have it"),
    empty("images").instead("send messages with images in their parts"),
    // Elsewhere the chat template writes the special tokens.
    off("add_special_tokens").instead("the chat template writes the special tokens"),
    always("truncate_prompt_tokens").instead("only completions and chat have it"),
    always("truncation_side").instead("only completions and chat have it"),
    refused("truncation", |_, value| value == "disabled", "`disabled`")
        .instead("completions and chat have `truncate_prompt_tokens`"),
    on("add_generation_prompt").instead("only chat has it"),
    off("continue_final_message").instead("a last message of the assistant is continued"),
    always("reasoning_effort")
        .instead("responses have `reasoning.effort`, messages `output_config.effort`"),
    always("reasoning_history")
        .instead("send `chat_template_kwargs`, if the template has a variable for it"),
    empty_object("reasoning").instead("chat and responses have it, messages `thinking`"),
    always("thinking")
        .instead("send `chat_template_kwargs` with the variable that the template has"),
    always("enable_thinking").instead("messages have `thinking`, responses `chat_template_kwargs`"),
    refused("verbosity", |_, value| value == "medium", "`medium`")
        .instead("responses have `text.verbosity`"),
    empty("functions").instead("send `tools`"),
    refused("function_call", |_, value| value == "none", "`none`").instead("send `tool_choice`"),
    on("parallel_tool_calls").instead("messages have `tool_choice.disable_parallel_tool_use`"),
    always("conversation").instead("no conversations are stored"),
    always("previous_response_id").instead("no answers are stored: send the items"),
    empty("context_management").instead("`POST /responses/compact` compacts a conversation"),
];

/// Fields of some routes, or of none, that change the answer or how it is given.
pub(in crate::api) const OF_ANSWERS: &[Refused] = &[
    one("n").instead("only completions and chat have it"),
    one("best_of").instead("only completions and chat have it"),
    off("echo").instead("only completions and chat have it"),
    zero("echo_last").instead("only completions have it"),
    off("raw_output").instead("only completions have it"),
    off("perf_metrics_in_response").instead("only completions have it"),
    off("logprobs").instead("responses have `include`"),
    zero("top_logprobs").instead("messages have no log-probabilities"),
    always("logprobs_mode").instead("messages have no log-probabilities"),
    always("prompt_logprobs").instead("only completions and chat have it"),
    off("return_token_ids").instead("only completions and chat have it"),
    off("return_tokens_as_token_ids").instead("only completions and chat have it"),
    refused(
        "response_format",
        |_, value| *value == json!({"type": "text"}),
        "`{\"type\": \"text\"}`",
    )
    .instead("responses have `text.format`, messages `output_config.format`"),
    empty_object("text")
        .instead("completions and chat have `response_format`, messages `output_config.format`"),
    empty_object("output_config")
        .instead("completions and chat have `response_format`, responses `text.format`"),
    always("output_format")
        .instead("completions and chat have `response_format`, responses `text.format`"),
    on("include_reasoning").instead("only chat has it"),
    always("reasoning_format").instead("only chat has it"),
    always("thinking_token_budget").instead("messages have `thinking.budget_tokens`"),
    always("max_output_tokens").instead("send `max_tokens`"),
    empty("stop_sequences").instead("send `stop`"),
    empty("include").instead("only responses have it"),
    always("max_tool_calls").instead("only responses have it"),
    off("background").instead("answers are given at once, not later"),
    refused(
        "modalities",
        |_, value| *value == json!(["text"]),
        "`[\"text\"]`",
    )
    .instead("models write text"),
    always("audio").instead("models write text"),
    always("web_search_options").instead("nothing searches"),
    off("moderation").instead("there is no moderation model"),
    always("container").instead("nothing runs code"),
    empty("mcp_servers").instead("no servers are called"),
];

/// A table of refused fields in `docs/api.md`.
#[cfg(test)]
pub(in crate::api) fn table(refused: &[Refused]) -> String {
    let has_instead = refused.iter().any(|field| !field.instead.is_empty());
    let mut table = match has_instead {
        true => String::from("| field | accepted | why, or what to send |\n|---|---|---|\n"),
        false => String::from("| field | accepted |\n|---|---|\n"),
    };
    let row = |field: &Refused| (field.accepted, field.instead);
    for fields in refused.chunk_by(|one, other| row(one) == row(other)) {
        let names = fields.iter().map(|field| format!("`{}`", field.name));
        let names = names.collect::<Vec<_>>().join(", ");
        let (accepted, instead) = row(&fields[0]);
        table.push_str(&match has_instead {
            true => format!("| {names} | {accepted} | {instead} |\n"),
            false => format!("| {names} | {accepted} |\n"),
        });
    }
    table
}

/// The names of the fields that routes with generated text know without declaring them.
pub(in crate::api) fn names() -> impl Iterator<Item = &'static str> {
    let fields = OF_VENDORS.iter().chain(OF_PROMPTS).chain(OF_ANSWERS);
    fields.map(|field| field.name)
}

/// The names of the fields that routes without generated text know without declaring them.
pub(in crate::api) fn prompt_names() -> impl Iterator<Item = &'static str> {
    OF_PROMPTS.iter().map(|field| field.name)
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

/// Refuses fields of a request for text that its route does not declare: `own` are the names of those that it does.
///
/// # Errors
/// `unsupported_parameter`.
pub(in crate::api) fn check<Own: Iterator<Item = &'static str>>(
    fields: &Fields,
    own: fn() -> Own,
) -> Result<()> {
    let others = OF_PROMPTS.iter().chain(OF_ANSWERS);
    let others = others.filter(|field| own().all(|name| name != field.name));
    check_each(fields, OF_VENDORS.iter().chain(others))
}

/// Refuses fields that change what the model reads and that the route does not declare: `own` are the names of those that it
/// does. For routes that generate no text.
///
/// # Errors
/// `unsupported_parameter`.
pub(in crate::api) fn check_prompt<Own: Iterator<Item = &'static str>>(
    fields: &Fields,
    own: fn() -> Own,
) -> Result<()> {
    let others = OF_PROMPTS.iter();
    let others = others.filter(|field| own().all(|name| name != field.name));
    check_each(fields, others)
}

/// Refuses `refused` unless their values change nothing.
///
/// # Errors
/// `unsupported_parameter`.
pub(in crate::api) fn check_each<'a>(
    fields: &Fields,
    refused: impl IntoIterator<Item = &'a Refused>,
) -> Result<()> {
    for field in refused {
        let Refused { name, accepted, .. } = *field;
        let Some(value) = fields.get(name) else {
            continue;
        };
        if !(field.is_neutral)(fields, value) {
            let reason = match field.instead {
                "" => format!("{} would change the answer", describe(value)),
                instead => instead.to_owned(),
            };
            let message = format!("{name} is not supported: {reason}; accepted: {accepted}");
            let message = message.replace('`', "");
            return Err(fault(RequestFault::UnsupportedParameter, name, message));
        }
    }
    Ok(())
}
