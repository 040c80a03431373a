//! From the body of `POST /embeddings` to what is wanted.

use crate::Result;
use crate::api::fields::kinds::{Count, Flag, Shape, Word, count, flag, shape, word};
use crate::api::fields::{
    Body, Field, Or, Prompt, PromptReader, PromptTokens, TruncationSide, UnknownFieldPolicy,
    fields, missing, model, prompt_tokens, request,
};
use crate::api::switches::Switches;

/// The maximum number of inputs of a request, as at OpenAI.
const MAX_INPUTS: usize = 2048;

fields! {
    EmbeddingOwnFields {
        /// One text or several, each as a string or as token ids; none empty, and at most 2048. Both may be mixed with the
        /// switch `mixedPrompts`.
        input: Field<Shape> = shape(
            "string, string[], int[], int[][]",
            "string | string[] | ArrayLike<number> | ArrayLike<number>[] | (string | number | (string | number)[])[]",
        )
        .required(),
        /// The form of vectors: numbers, or little-endian 32-bit floats in base64.
        encoding_format: Or<Word<Encoding>> =
            word(&[("float", Encoding::Float), ("base64", Encoding::Base64)]).or(Encoding::Float),
        /// Keep this many elements of each vector, and normalize it again.
        dimensions: Field<Count> = count(1).default_is("the model's").range("at most the model's"),
        /// Whether the tokenizer adds its tokens to texts.
        add_special_tokens: Or<Flag> = flag().or(true).of("vLLM"),
    }
}

request! {
    /// A request for embeddings; `docs/api.md` says what each field means.
    EmbeddingFields:
        model::ModelFields,
        EmbeddingOwnFields,
        prompt_tokens::TruncationFields,
}

/// The form of vectors.
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
    /// The inputs, at least one.
    pub inputs: Vec<Prompt>,
    pub encoding: Encoding,
    /// The length of vectors, at least 1.
    pub dimensions: Option<usize>,
    pub tokens: PromptTokens,
}

/// Parses and validates a body. `warn_unknown` is called with the name of each ignored field.
pub(super) fn parse(
    body: &[u8],
    switches: &Switches,
    mut warn_unknown: impl FnMut(&str),
) -> Result<Plan> {
    let mut unknown = UnknownFieldPolicy::new(switches, &mut warn_unknown);
    let input = PromptReader {
        field: EmbeddingOwnFields::input.name,
        max_prompts: MAX_INPUTS,
        null_is_text: false,
        is_mixed: switches.mixed_prompts,
        may_be_empty: false,
    };
    let Body { fields, prompts } = Body::parse_with(body, input)?;
    unknown.check(fields.names(), EmbeddingFields::names)?;
    let model = model::read(&fields, switches)?;
    let inputs = prompts.ok_or_else(|| missing(EmbeddingOwnFields::input.name))??;
    model::check_user(&fields)?;
    Ok(Plan {
        model,
        inputs,
        encoding: EmbeddingOwnFields::encoding_format.read(&fields, switches)?,
        dimensions: EmbeddingOwnFields::dimensions.read(&fields, switches)?,
        tokens: PromptTokens {
            add_special: EmbeddingOwnFields::add_special_tokens.read(&fields, switches)?,
            kept: prompt_tokens::read_kept(&fields, switches, TruncationSide::Right)?,
        },
    })
}
