//! What the files of a Hugging Face folder say of its tokenizer. Encodes nothing.

mod config;
mod json;
mod pipeline;
mod post_processor;

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::collections::HashMap;

use self::config::Config;
use self::json::{AddedToken, TokenizerJson, Vocab};
use self::pipeline::Pipeline;
use super::byte_fallback::byte_of;
use super::description::{Algorithm, Description, Merges, Roles};
use super::fill_in_middle::MiddleTokens;
use super::special_tokens::SpecialToken;
use super::vocabulary::{TokenKind, TokenSpelling, settle_kinds};
use crate::{Error, Result};

/// The bytes of the files that describe a tokenizer; all but the first may be missing.
#[derive(Debug, Clone, Copy, Default)]
pub struct HuggingFaceFiles<'f> {
    /// `tokenizer.json`.
    pub tokenizer: &'f [u8],
    /// `tokenizer_config.json`: which tokens start and end texts, the template of conversations.
    pub tokenizer_config: Option<&'f [u8]>,
    /// `special_tokens_map.json`: the same tokens, in older folders.
    pub special_tokens_map: Option<&'f [u8]>,
    /// `generation_config.json`: all ids that end a generation.
    pub generation_config: Option<&'f [u8]>,
    /// `chat_template.jinja`: the template of conversations, in newer folders.
    pub chat_template: Option<&'f [u8]>,
}

/// Reads the description of the folder's tokenizer.
///
/// # Errors
/// [`Error::UnsupportedModel`] naming a part of a tokenizer that this build does not know,
/// [`Error::InvalidModelFile`] for files that are no JSON or contradict themselves.
pub(super) fn describe(files: &HuggingFaceFiles<'_>) -> Result<Description<'static>> {
    let mut file: TokenizerJson = json::parse("tokenizer.json", files.tokenizer)?;
    let config = Config::read(files)?;
    file.add_tokens(config.added_tokens);
    let tokens = Tokens::new(&mut file)?;
    let model = &mut file.model;
    let byte_fallback = model.byte_fallback;
    let pipeline = Pipeline::new(&file.normalizer, &file.pre_tokenizer)?;
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
    let unknown_id = match (&model.unk_token, model.unk_id) {
        (Some(text), _) => tokens.id(text),
        (None, id) => id.filter(|&id| (id as usize) < tokens.texts.len()),
    };
    let algorithm = match (model.kind.as_deref(), tokens.scores) {
        (Some("Unigram") | None, Some(scores)) => Algorithm::Unigram { scores },
        (Some("BPE") | None, None) => Algorithm::Merges(Merges {
            pairs: json::merges(std::mem::take(&mut model.merges))?,
            ignore_merges: model.ignore_merges,
            byte_fallback: model.byte_fallback,
            fuse_unknown: model.fuse_unk,
        }),
        (kind, _) => return Err(unsupported("model", kind.unwrap_or("BPE"))),
    };
    let mut kinds = tokens.kinds;
    if let Some(id) = unknown_id
        && kinds[id as usize] == TokenKind::Normal
    {
        kinds[id as usize] = TokenKind::Unknown;
    }
    if byte_fallback && pipeline.spelling == TokenSpelling::SentencePiece {
        for (text, kind) in tokens.texts.iter().zip(&mut kinds) {
            if *kind == TokenKind::Normal && byte_of(text).is_some() {
                *kind = TokenKind::Byte;
            }
        }
    }
    settle_kinds(&tokens.texts, &mut kinds);

    let find = |text: &String| tokens.texts.iter().position(|known| known == text);
    let id_of = |text: &Option<String>| text.as_ref().and_then(find).map(|id| id as u32);
    let ends = post_processor::ends(&file.post_processor, |text| {
        find(&text.to_owned()).map(|id| id as u32)
    })?;
    let outside = |id: &u32| *id as usize >= tokens.texts.len();
    if let Some(id) = ends.first.iter().chain(&ends.last).find(|id| outside(id)) {
        return Err(invalid(format_args!(
            "the post_processor's token {id} does not exist"
        )));
    }
    let roles = Roles {
        bos_id: ends.first.or(id_of(&config.bos_token)),
        eos_id: id_of(&config.eos_token).or(ends.last),
        unknown_id,
        end_ids: config
            .end_ids
            .into_iter()
            .filter(|&id| (id as usize) < tokens.texts.len())
            .collect(),
    };
    let adds = |name: &str, said: Option<bool>, id: Option<u32>, default: bool| match said {
        Some(true) if id.is_none() => Err(Error::InvalidModelFile(format!(
            "tokenizer_config.json: {name} is true, but there is no such token"
        ))),
        said => Ok(said.unwrap_or(default)),
    };
    Ok(Description {
        adds_bos: adds(
            "add_bos_token",
            config.add_bos_token,
            roles.bos_id,
            ends.first.is_some(),
        )?,
        adds_eos: adds(
            "add_eos_token",
            config.add_eos_token,
            roles.eos_id,
            ends.last.is_some(),
        )?,
        special: tokens.special,
        middle_tokens: MiddleTokens::by_text(&tokens.texts),
        chat_template: config.chat_template,
        texts: Cow::Owned(tokens.texts),
        kinds,
        spelling: pipeline.spelling,
        roles,
        normalizer: pipeline.normalizer,
        space_prefix: pipeline.space_prefix,
        splitter: pipeline.splitter,
        algorithm,
    })
}

fn unsupported(part: &str, name: &str) -> Error {
    let name: String = name.chars().take(64).collect();
    Error::UnsupportedModel(format!("{part} {name:?} (tokenizer.json)"))
}

fn invalid(fault: impl std::fmt::Display) -> Error {
    Error::InvalidModelFile(format!("tokenizer.json: {fault}"))
}

/// The tokens by id.
struct Tokens {
    texts: Vec<String>,
    kinds: Vec<TokenKind>,
    /// Of a unigram model.
    scores: Option<Vec<f64>>,
    special: Vec<SpecialToken>,
}

impl Tokens {
    /// Takes the vocabulary out of the file.
    fn new(file: &mut TokenizerJson) -> Result<Tokens> {
        let (entries, scores) = match std::mem::take(&mut file.model.vocab) {
            Vocab::Ids(entries) => (entries, None),
            Vocab::Scores(entries) => {
                let (texts, scores): (Vec<String>, Vec<f64>) = entries.into_iter().unzip();
                (texts.into_iter().zip(0..).collect(), Some(scores))
            }
        };
        // An added token that the model knows has the model's id, whatever is said.
        let added = std::mem::take(&mut file.added_tokens);
        let mut ids: HashMap<&str, u32> = added
            .iter()
            .map(|token| (token.content.as_str(), token.id))
            .collect();
        for (text, id) in &entries {
            if let Some(known) = ids.get_mut(text.as_str()) {
                *known = *id;
            }
        }
        let numbered: Vec<(&AddedToken, u32)> = added
            .iter()
            .map(|token| (token, ids[token.content.as_str()]))
            .collect();

        let count = entries.len() + added.len();
        let all_ids = entries.iter().map(|entry| entry.1);
        let highest = all_ids.chain(numbered.iter().map(|token| token.1)).max();
        let highest = highest.ok_or_else(|| invalid("no tokens"))? as usize;
        // Some have a few holes; a list much longer than its tokens is an attack.
        if highest > 2 * count + 1024 {
            return Err(invalid(format_args!(
                "token id {highest} among {count} tokens"
            )));
        }
        let mut tokens = Tokens {
            texts: vec![String::new(); highest + 1],
            kinds: vec![TokenKind::Unused; highest + 1],
            scores,
            special: Vec::with_capacity(added.len()),
        };
        if let Some(scores) = &mut tokens.scores {
            scores.resize(highest + 1, 0.0);
        }
        for (token, id) in numbered {
            let kind = match token.special {
                true => TokenKind::Control,
                false => TokenKind::UserDefined,
            };
            tokens.put(id, &token.content, kind)?;
            tokens.special.push(SpecialToken {
                strips_preceding_space: token.lstrip,
                strips_following_space: token.rstrip,
                stands_alone: token.single_word,
                ..SpecialToken::new(&token.content, id)
            });
        }
        for (text, id) in entries {
            tokens.put(id, &text, TokenKind::Normal)?;
        }
        Ok(tokens)
    }

    fn put(&mut self, id: u32, text: &str, kind: TokenKind) -> Result<()> {
        let index = id as usize;
        if self.kinds[index] == TokenKind::Unused {
            text.clone_into(&mut self.texts[index]);
            self.kinds[index] = kind;
        } else if self.texts[index] != text {
            return Err(invalid(format_args!("two tokens have the id {id}")));
        }
        Ok(())
    }

    fn id(&self, text: &str) -> Option<u32> {
        let index = self.texts.iter().position(|known| known == text);
        index.filter(|_| !text.is_empty()).map(|index| index as u32)
    }
}
