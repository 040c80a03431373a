//! `post_processor` of a `tokenizer.json`: which tokens every text begins and ends with. Knows
//! nothing of the rest.

use serde_json::Value;

use super::{invalid, unsupported};
use crate::Result;

/// The automatic tokens of a text.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Ends {
    pub first: Option<u32>,
    pub last: Option<u32>,
}

/// Reads the field; `id_of` finds tokens by their text. Whether other ids exist is not checked.
///
/// # Errors
/// [`crate::Error::UnsupportedModel`] naming a processor that is not known here, or for more than
/// one token at an end.
pub fn ends(processor: &Value, id_of: impl Fn(&str) -> Option<u32> + Copy) -> Result<Ends> {
    if processor.is_null() {
        return Ok(Ends::default());
    }
    match processor["type"].as_str().unwrap_or("none") {
        // Only trims offsets, which are not used here.
        "ByteLevel" => Ok(Ends::default()),
        "Sequence" => {
            let mut joined = Ends::default();
            for part in processor["processors"].as_array().into_iter().flatten() {
                let part = ends(part, id_of)?;
                if (part.first.is_some() && joined.first.is_some())
                    || (part.last.is_some() && joined.last.is_some())
                {
                    return Err(unsupported("post_processor", "two templates"));
                }
                joined.first = part.first.or(joined.first);
                joined.last = part.last.or(joined.last);
            }
            Ok(joined)
        }
        "TemplateProcessing" => template(processor, id_of),
        "RobertaProcessing" | "BertProcessing" => Ok(Ends {
            first: processor["cls"][0].as_str().and_then(id_of),
            last: processor["sep"][0].as_str().and_then(id_of),
        }),
        other => Err(unsupported("post_processor", other)),
    }
}

fn template(processor: &Value, id_of: impl Fn(&str) -> Option<u32>) -> Result<Ends> {
    let parts = processor["single"]
        .as_array()
        .ok_or_else(|| invalid("TemplateProcessing has no template of one text"))?;
    let mut ends = Ends::default();
    let mut after_text = false;
    for part in parts {
        if part.get("Sequence").is_some() {
            after_text = true;
            continue;
        }
        let name = part["SpecialToken"]["id"].as_str().unwrap_or_default();
        let ids = &processor["special_tokens"][name]["ids"];
        let id = match ids.as_array().map(Vec::as_slice) {
            Some([id]) => id.as_u64().and_then(|id| u32::try_from(id).ok()),
            Some(_) => return Err(unsupported("post_processor", "several tokens at one end")),
            None => id_of(name),
        };
        // The token itself decides; its id in the template may be outdated.
        let id = id_of(name).or(id);
        let end = match after_text {
            false => &mut ends.first,
            true => &mut ends.last,
        };
        if end.is_some() {
            return Err(unsupported("post_processor", "several tokens at one end"));
        }
        *end = Some(id.ok_or_else(|| invalid(format_args!("no token {name:?}")))?);
    }
    Ok(ends)
}
