//! What goes in (API.md section 4.2): model, prompt, suffix, images, user. Does not tokenise.

use serde_json::Value;

use super::fields::{Fields, describe, integer, invalid_type, invalid_value, out_of_range};
use crate::api::error::fault;
use crate::api::switches::Switches;
use crate::{RequestFault, Result};

pub(super) const FIELDS: &[&str] = &["model", "prompt", "suffix", "suffix_mode", "images", "user"];

/// One prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::api) enum Prompt {
    /// To be tokenised; may be empty.
    Text(String),
    /// At least one id; whether the vocabulary has them is checked once the model is known.
    Tokens(Vec<u32>),
}

/// What `suffix` and `suffix_mode` come to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::api) enum Suffix {
    /// Nothing.
    None,
    /// Goes after the text of every choice, as it is.
    Append(String),
    /// What the model writes goes between the prompt and this.
    FillInMiddle(String),
}

pub(super) fn model(fields: &Fields, switches: &Switches) -> Result<String> {
    match fields.string("model")? {
        Some(model) if !model.is_empty() => Ok(model.to_owned()),
        _ if switches.allow_missing_model => Ok("default".to_owned()),
        _ => Err(missing("model")),
    }
}

fn missing(name: &str) -> crate::Error {
    fault(
        RequestFault::MissingRequiredParameter,
        name,
        format!("{name} is required"),
    )
}

/// The four shapes of `prompt`, as a list of prompts with at least one element.
pub(super) fn prompts(fields: &mut Fields, switches: &Switches) -> Result<Vec<Prompt>> {
    if !fields.contains("prompt") {
        return Err(missing("prompt"));
    }
    let prompts = match fields.take("prompt") {
        // Like OpenAI's omitted prompt: the start of a document.
        Value::Null => vec![Prompt::Text(String::new())],
        Value::String(text) => vec![Prompt::Text(text)],
        Value::Array(elements) => prompt_array(elements, switches)?,
        other => return Err(invalid_type("prompt", "a string or an array", &other)),
    };
    if prompts.len() > switches.max_prompts {
        let bounds = format!("at most {} prompts", switches.max_prompts);
        return Err(out_of_range("prompt", &bounds, prompts.len()));
    }
    Ok(prompts)
}

fn prompt_array(elements: Vec<Value>, switches: &Switches) -> Result<Vec<Prompt>> {
    match elements.first() {
        None => Err(invalid_value("prompt", "must not be an empty array")),
        Some(Value::Number(_)) => Ok(vec![Prompt::Tokens(token_ids(&elements)?)]),
        Some(Value::String(_) | Value::Array(_)) if elements.len() > switches.max_prompts => {
            let bounds = format!("at most {} prompts", switches.max_prompts);
            Err(out_of_range("prompt", &bounds, elements.len()))
        }
        Some(Value::String(_)) => elements
            .into_iter()
            .map(|element| match element {
                Value::String(text) => Ok(Prompt::Text(text)),
                other => Err(mixed("a string", &other)),
            })
            .collect(),
        Some(Value::Array(_)) => elements
            .iter()
            .map(|element| match element {
                Value::Array(ids) if ids.is_empty() => {
                    let message = "must not hold an empty array";
                    Err(invalid_value("prompt", message))
                }
                Value::Array(ids) => Ok(Prompt::Tokens(token_ids(ids)?)),
                other => Err(mixed("an array of token ids", other)),
            })
            .collect(),
        Some(other) => Err(invalid_type(
            "prompt",
            "a string, token ids, or an array of either",
            other,
        )),
    }
}

fn token_ids(elements: &[Value]) -> Result<Vec<u32>> {
    elements
        .iter()
        .map(|element| match element {
            Value::Number(number) => integer(element)
                .and_then(|id| u32::try_from(id).ok())
                .ok_or_else(|| {
                    out_of_range("prompt", "made of the vocabulary's token ids", number)
                }),
            other => Err(mixed("a token id", other)),
        })
        .collect()
}

fn mixed(expected: &str, found: &Value) -> crate::Error {
    let found = describe(found);
    let message = format!("its elements must be of one kind: {expected} expected, not {found}");
    invalid_value("prompt", message)
}

/// Validates the input fields that are not built yet, and `user`, which is never used.
pub(super) fn check_unused(fields: &Fields) -> Result<()> {
    fields.string("user")?;
    if fields
        .string("suffix")?
        .is_some_and(|suffix| !suffix.is_empty())
    {
        fields.refuse("suffix");
    }
    // Says how to treat a suffix; without one it has nothing to say.
    fields.word("suffix_mode", &["append", "fim", "reject"])?;
    check_images(fields)
}

fn check_images(fields: &Fields) -> Result<()> {
    for element in fields.array("images")?.unwrap_or_default() {
        match element {
            Value::String(_) => fields.refuse("images"),
            Value::Array(inner) => {
                for image in inner {
                    if !image.is_string() {
                        return Err(invalid_type("images", "made of strings", image));
                    }
                    fields.refuse("images");
                }
            }
            other => return Err(invalid_type("images", "made of strings", other)),
        }
    }
    Ok(())
}
