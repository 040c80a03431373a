//! Which tokens of a vocabulary frame the prompt of a fill-in-the-middle task (API.md 4.2, suffix).
//! Knows nothing of the prompt itself.

use super::vocabulary::{Vocabulary, token_texts};
use crate::Result;
use crate::weights::Metadata;

/// The tokens before the prefix, before the suffix, and before what is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MiddleTokens {
    pub prefix: u32,
    pub suffix: u32,
    pub middle: u32,
}

/// Names of the three in the metadata: the present ones, then those of older converters.
const KEYS: [[&str; 3]; 2] = [
    [
        "tokenizer.ggml.fim_pre_token_id",
        "tokenizer.ggml.fim_suf_token_id",
        "tokenizer.ggml.fim_mid_token_id",
    ],
    [
        "tokenizer.ggml.prefix_token_id",
        "tokenizer.ggml.suffix_token_id",
        "tokenizer.ggml.middle_token_id",
    ],
];

/// Their texts by model family: Qwen, StarCoder, SantaCoder, DeepSeek, Code Llama (as published and
/// as converted), GLM.
const TEXTS: [[&str; 3]; 7] = [
    ["<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"],
    ["<fim_prefix>", "<fim_suffix>", "<fim_middle>"],
    ["<fim-prefix>", "<fim-suffix>", "<fim-middle>"],
    ["<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>"],
    ["<PRE>", "<SUF>", "<MID>"],
    ["▁<PRE>", "▁<SUF>", "▁<MID>"],
    ["<|code_prefix|>", "<|code_suffix|>", "<|code_middle|>"],
];

impl MiddleTokens {
    /// What the file names, else what its tokens' texts tell; `None` unless there are all three.
    ///
    /// # Errors
    /// [`crate::Error::InvalidModelFile`] for an id that is no number.
    pub fn from_gguf(metadata: &Metadata, vocabulary: &Vocabulary) -> Result<Option<MiddleTokens>> {
        for keys in KEYS {
            let mut ids = [None; 3];
            for (id, key) in ids.iter_mut().zip(keys) {
                *id = vocabulary.named_id(metadata, key, None)?;
            }
            if let Some(tokens) = Self::of(ids) {
                return Ok(Some(tokens));
            }
        }
        let mut found = [[None; 3]; TEXTS.len()];
        for (text, id) in token_texts(metadata)?.iter().zip(0u32..) {
            // Spares nearly all tokens the comparison. Their kind is no guide: converters often call
            // them normal.
            if !text.trim_start_matches('▁').starts_with('<') {
                continue;
            }
            for (texts, ids) in TEXTS.iter().zip(&mut found) {
                if let Some(index) = texts.iter().position(|known| known == text) {
                    ids[index].get_or_insert(id);
                }
            }
        }
        Ok(found.into_iter().find_map(Self::of))
    }

    fn of(ids: [Option<u32>; 3]) -> Option<MiddleTokens> {
        let [prefix, suffix, middle] = ids;
        Some(MiddleTokens {
            prefix: prefix?,
            suffix: suffix?,
            middle: middle?,
        })
    }
}
