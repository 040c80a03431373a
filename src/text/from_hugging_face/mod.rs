//! Reads the description of a tokenizer from the files of a Hugging Face folder.

mod config;
mod files;
mod json;
mod pipeline;
mod post_processor;
mod tokens;

#[cfg(test)]
mod tests;

use std::borrow::Cow;

use serde_json::Value;

use self::config::Config;
pub use self::files::HuggingFaceFiles;
use self::files::{invalid, unsupported};
use self::json::{ModelJson, TokenizerJson};
use self::pipeline::Pipeline;
use self::tokens::Tokens;
use super::byte_fallback::byte_of;
use super::description::{Algorithm, Description, Merges};
use super::fill_in_middle::MiddleTokens;
use super::token::{Roles, TokenKind, TokenSpelling};
use super::vocabulary::settle_kinds;
use super::word_piece::WORD_START;
use crate::{Error, Result};

/// Prefix of the tokens that continue a word.
const CONTINUATION: &str = "##";

/// Reads the description of the folder's tokenizer.
///
/// # Errors
/// [`Error::UnsupportedModel`] naming a part of a tokenizer that is not supported,
/// [`Error::InvalidModelFile`] for files that are not valid JSON or contradict themselves.
pub(super) fn describe(files: &HuggingFaceFiles<'_>) -> Result<Description<'static>> {
    let mut file: TokenizerJson = json::parse("tokenizer.json", files.tokenizer)?;
    let mut config = Config::read(files)?;
    file.add_tokens(std::mem::take(&mut config.added_tokens));
    let mut tokens = Tokens::new(&mut file)?;
    let pipeline = Pipeline::new(&file.normalizer, &file.pre_tokenizer)?;
    let unknown_id = match (&file.model.unk_token, file.model.unk_id) {
        (Some(text), _) => tokens.id(text),
        (None, id) => id.filter(|&id| (id as usize) < tokens.strings.len()),
    };
    let spells_bytes =
        file.model.byte_fallback && pipeline.spelling == TokenSpelling::SentencePiece;
    let algorithm = algorithm(file.model, tokens.scores.take())?;
    complete_kinds(&mut tokens, unknown_id, spells_bytes);
    let ends = Ends::new(&file.post_processor, &config, &tokens)?;
    let is_word_piece = matches!(algorithm, Algorithm::WordPiece { .. });
    if is_word_piece != pipeline.has_words {
        return Err(unsupported(
            "model",
            "WordPiece without BERT's pre_tokenizer",
        ));
    }
    if is_word_piece {
        mark_word_starts(&mut tokens);
    }
    Ok(Description {
        adds_bos: ends.adds_bos,
        adds_eos: ends.adds_eos,
        roles: Roles {
            bos_id: ends.bos_id,
            eos_id: ends.eos_id,
            unknown_id,
            end_ids: config
                .end_ids
                .into_iter()
                .chain(ends.turn_end_id)
                .filter(|&id| (id as usize) < tokens.strings.len())
                .collect(),
        },
        special: tokens.special,
        middle_tokens: MiddleTokens::by_text(&tokens.strings),
        chat_templates: config.chat_templates,
        strings: Cow::Owned(tokens.strings),
        kinds: tokens.kinds,
        spelling: pipeline.spelling,
        normalizer: pipeline.normalizer,
        space_prefix: pipeline.space_prefix,
        splitter: pipeline.splitter,
        algorithm,
    })
}

/// The algorithm that turns pieces of text into tokens; `scores` are those of a unigram model.
fn algorithm(model: ModelJson, scores: Option<Vec<f64>>) -> Result<Algorithm> {
    if model.kind.as_deref() == Some("WordPiece") {
        let prefix = model.continuing_subword_prefix.as_deref();
        if prefix.is_some_and(|prefix| prefix != CONTINUATION) {
            return Err(unsupported("model", "continuing_subword_prefix"));
        }
        let max_word_chars = model.max_input_chars_per_word.unwrap_or(100);
        return Ok(Algorithm::WordPiece { max_word_chars });
    }
    for (field, value) in [
        (
            "continuing_subword_prefix",
            &model.continuing_subword_prefix,
        ),
        ("end_of_word_suffix", &model.end_of_word_suffix),
    ] {
        if value.as_ref().is_some_and(|value| !value.is_empty()) {
            return Err(unsupported("model", field));
        }
    }
    match (model.kind.as_deref(), scores) {
        (Some("Unigram") | None, Some(scores)) => Ok(Algorithm::Unigram { scores }),
        (Some("BPE") | None, None) => Ok(Algorithm::Merges(Merges {
            pairs: json::merges(model.merges)?,
            ignore_merges: model.ignore_merges,
            byte_fallback: model.byte_fallback,
            fuse_unknown: model.fuse_unk,
        })),
        (kind, _) => Err(unsupported("model", kind.unwrap_or("BPE"))),
    }
}

/// Brings the ordinary tokens of WordPiece to the form of GGUF files: `▁` begins a word instead of `##` continuing
/// one.
fn mark_word_starts(tokens: &mut Tokens) {
    for (text, kind) in tokens.strings.iter_mut().zip(&tokens.kinds) {
        if *kind == TokenKind::Normal {
            *text = match text.strip_prefix(CONTINUATION) {
                Some(rest) => rest.to_owned(),
                None => format!("{WORD_START}{text}"),
            };
        }
    }
}

/// Marks the unknown token, the byte tokens and the tokens that end a text.
fn complete_kinds(tokens: &mut Tokens, unknown_id: Option<u32>, spells_bytes: bool) {
    let is_byte = |text: &str| spells_bytes && byte_of(text).is_some();
    for ((text, kind), id) in tokens.strings.iter().zip(&mut tokens.kinds).zip(0..) {
        if *kind == TokenKind::Normal && Some(id) == unknown_id {
            *kind = TokenKind::Unknown;
        } else if *kind == TokenKind::Normal && is_byte(text) {
            *kind = TokenKind::Byte;
        }
    }
    settle_kinds(&tokens.strings, &mut tokens.kinds);
}

/// The tokens that start and end a text, and whether prompts get them.
struct Ends {
    bos_id: Option<u32>,
    eos_id: Option<u32>,
    /// The token that the configuration names, if encoded text ends with another one.
    turn_end_id: Option<u32>,
    adds_bos: bool,
    adds_eos: bool,
}

impl Ends {
    fn new(post_processor: &Value, config: &Config, tokens: &Tokens) -> Result<Ends> {
        let find = |text: &str| tokens.strings.iter().position(|known| known == text);
        let id_of = |text: &str| find(text).map(|id| id as u32);
        let added = post_processor::ends(post_processor, id_of)?;
        let outside = |id: &u32| *id as usize >= tokens.strings.len();
        if let Some(id) = added.first.iter().chain(&added.last).find(|id| outside(id)) {
            return Err(invalid(format_args!(
                "the post_processor's token {id} does not exist"
            )));
        }
        let named = |text: &Option<String>| text.as_deref().and_then(id_of);
        let bos_id = added.first.or(named(&config.bos_token));
        // The token that ends encoded text; the token that ends a turn may be another one.
        let eos_id = added.last.or(named(&config.eos_token));
        let adds = |name: &str, given: Option<bool>, id: Option<u32>, default| match given {
            Some(true) if id.is_none() => Err(Error::InvalidModelFile(format!(
                "tokenizer_config.json: {name} is true, but there is no such token"
            ))),
            given => Ok(given.unwrap_or(default)),
        };
        Ok(Ends {
            adds_bos: adds(
                "add_bos_token",
                config.add_bos_token,
                bos_id,
                added.first.is_some(),
            )?,
            adds_eos: adds(
                "add_eos_token",
                config.add_eos_token,
                eos_id,
                added.last.is_some(),
            )?,
            bos_id,
            eos_id,
            turn_end_id: named(&config.eos_token).filter(|id| Some(*id) != eos_id),
        })
    }
}
