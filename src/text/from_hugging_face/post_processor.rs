//! `post_processor` of a `tokenizer.json`: the tokens that every text begins and ends with.

use serde_json::Value;

use super::files::{invalid, unsupported};
use crate::Result;

/// The tokens that are added to a text.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct AddedEnds {
    pub first: Option<u32>,
    pub last: Option<u32>,
}

/// Reads the field. `id_of` finds tokens by their text; ids in the file are not checked.
///
/// # Errors
/// [`crate::Error::UnsupportedModel`] naming a processor that is not supported, or for more than
/// one token at an end.
pub fn ends(processor: &Value, id_of: impl Fn(&str) -> Option<u32> + Copy) -> Result<AddedEnds> {
    if processor.is_null() {
        return Ok(AddedEnds::default());
    }
    match processor["type"].as_str().unwrap_or("none") {
        // Only trims offsets, which are not used here.
        "ByteLevel" => Ok(AddedEnds::default()),
        "Sequence" => {
            let mut joined = AddedEnds::default();
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
        "RobertaProcessing" | "BertProcessing" => Ok(AddedEnds {
            first: processor["cls"][0].as_str().and_then(id_of),
            last: processor["sep"][0].as_str().and_then(id_of),
        }),
        other => Err(unsupported("post_processor", other)),
    }
}

fn template(processor: &Value, id_of: impl Fn(&str) -> Option<u32>) -> Result<AddedEnds> {
    let parts = processor["single"]
        .as_array()
        .ok_or_else(|| invalid("TemplateProcessing has no template for a single text"))?;
    let mut ends = AddedEnds::default();
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
        // The token's own id takes precedence: the one in the template may be outdated.
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
