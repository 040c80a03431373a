//! The files of a Hugging Face folder that describe a tokenizer, and the errors about them.

use crate::Error;

/// The bytes of the files that describe a tokenizer; all but the first may be missing.
#[derive(Debug, Clone, Copy, Default)]
pub struct HuggingFaceFiles<'f> {
    /// `tokenizer.json`.
    pub tokenizer: &'f [u8],
    /// `tokenizer_config.json`: which tokens start and end a text, the chat template.
    pub tokenizer_config: Option<&'f [u8]>,
    /// `special_tokens_map.json`: the same tokens, in older folders.
    pub special_tokens_map: Option<&'f [u8]>,
    /// `generation_config.json`: all ids that end a generation.
    pub generation_config: Option<&'f [u8]>,
    /// `chat_template.jinja`: the chat template, in newer folders.
    pub chat_template: Option<&'f [u8]>,
    /// `chat_template.json`: the chat template in folders of models that also take images.
    pub chat_template_json: Option<&'f [u8]>,
}

/// The part `part` of `tokenizer.json` is of a kind `name` that is not supported.
pub fn unsupported(part: &str, name: &str) -> Error {
    let name: String = name.chars().take(64).collect();
    Error::UnsupportedModel(format!("{part} {name:?} (tokenizer.json)"))
}

/// `tokenizer.json` is wrong.
pub fn invalid(fault: impl std::fmt::Display) -> Error {
    Error::InvalidModelFile(format!("tokenizer.json: {fault}"))
}
