//! From the body of `POST /embeddings` to what is wanted.

use crate::Result;
use crate::api::fields::{
    Body, Prompt, PromptReader, UnknownFieldPolicy, fields, missing, model, wire_types,
};
use crate::api::switches::Switches;

/// Most inputs of a request, as at OpenAI.
const MAX_INPUTS: usize = 2048;

fields! {
    OwnFields {
        /// One text or several, each as text or as token ids.
        #[ts(type = "string | string[] | ArrayLike<number> | ArrayLike<number>[]")]
        input: (),
        /// How vectors are written: `float` or, as little-endian 32-bit floats, `base64`.
        #[ts(optional, type = "\"float\" | \"base64\" | null")]
        encoding_format: Option<String>,
        /// Keep this many elements of each vector, and normalize it again.
        dimensions: Option<u32>,
    }
}

wire_types! {
    /// A request for embeddings; `docs/api.md` says what each field means.
    pub(in crate::api) struct EmbeddingFields {
        #[ts(flatten)]
        model: model::ModelFields,
        #[ts(flatten)]
        own: OwnFields,
    }
}

/// How vectors are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Encoding {
    /// An array of numbers.
    Float,
    /// Little-endian 32-bit floats in base64.
    Base64,
}

/// A valid request.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Plan {
    /// A model's id or the alias `default`.
    pub model: String,
    /// At least one.
    pub inputs: Vec<Prompt>,
    pub encoding: Encoding,
    /// At least 1.
    pub dimensions: Option<usize>,
}

/// Parses and validates a body. `warn_unknown` is called with the name of each ignored field.
pub(super) fn parse(
    body: &[u8],
    switches: &Switches,
    mut warn_unknown: impl FnMut(&str),
) -> Result<Plan> {
    let mut unknown = UnknownFieldPolicy {
        behavior: switches.unknown_fields,
        warn: &mut warn_unknown,
    };
    let input = PromptReader {
        field: "input",
        max_prompts: MAX_INPUTS,
        null_is_text: false,
        is_mixed: false,
        may_be_empty: false,
    };
    let Body { fields, prompts } = Body::parse_with(body, input)?;
    for name in fields.names() {
        if !FIELDS.contains(&name) && !model::FIELDS.contains(&name) {
            unknown.report(name)?;
        }
    }
    let model = model::read(&fields, switches)?;
    let inputs = prompts.ok_or_else(|| missing("input"))??;
    model::check_user(&fields)?;
    let encoding = match fields.word("encoding_format", &["float", "base64"])? {
        Some("base64") => Encoding::Base64,
        _ => Encoding::Float,
    };
    let dimensions = fields.integer("dimensions", 1..=i128::MAX)?;
    Ok(Plan {
        model,
        inputs,
        encoding,
        dimensions: dimensions.map(|it| usize::try_from(it).unwrap_or(usize::MAX)),
    })
}
