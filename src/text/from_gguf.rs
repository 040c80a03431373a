//! Reads the description of a tokenizer from the metadata of a GGUF file.

use std::borrow::Cow;

use super::bpe::parse_merge;
use super::charsmap::Charsmap;
use super::chat_template::ChatTemplates;
use super::description::{Algorithm, Description, Merges, SpacePrefix};
use super::fill_in_middle::MiddleTokens;
use super::normalizer::{NormalForm, Normalizer, NormalizerStep};
use super::pre_tokenizers::PreTokenizer;
use super::special_tokens::SpecialToken;
use super::splitter::Splitter;
use super::token::{Roles, TokenKind, TokenSpelling};
use super::vocabulary::settle_kinds;
use super::word_piece;
use crate::weights::{Metadata, MetadataArray, MetadataValue};
use crate::{Error, Result};

const TOKENS: &str = "tokenizer.ggml.tokens";
const TOKEN_TYPES: &str = "tokenizer.ggml.token_type";
const SCORES: &str = "tokenizer.ggml.scores";
const MERGES: &str = "tokenizer.ggml.merges";
const BOS_KEY: &str = "tokenizer.ggml.add_bos_token";
const EOS_KEY: &str = "tokenizer.ggml.add_eos_token";
const CHARSMAP: &str = "tokenizer.ggml.precompiled_charsmap";

/// Longer words are unknown to BERT.
const MAX_WORD_CHARS: usize = 100;

/// Keys of the fill-in-the-middle tokens: the current ones, then those of older converters.
const MIDDLE_TOKENS: [[&str; 3]; 2] = [
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

/// The properties of a kind of tokenizer, and its defaults where the file says nothing. Source:
/// `llama_vocab::impl::load` of llama.cpp.
struct Family {
    spelling: TokenSpelling,
    normalizer: Normalizer,
    splitter: Splitter,
    space_prefix: SpacePrefix,
    algorithm: Algorithm,
    adds_bos: bool,
    adds_eos: bool,
    bos_id: Option<u32>,
    eos_id: Option<u32>,
    unknown_id: Option<u32>,
}

/// Reads the description of the file's tokenizer.
///
/// # Errors
/// [`Error::UnsupportedModel`] for a tokenizer or pre-tokenizer that is not supported,
/// [`Error::InvalidModelFile`] for metadata that is missing or contradicts itself.
pub fn describe(metadata: &Metadata) -> Result<Description<'_>> {
    let model = metadata
        .str("tokenizer.ggml.model")?
        .ok_or_else(|| invalid("tokenizer.ggml.model", "is missing"))?;
    let pre = metadata
        .str("tokenizer.ggml.pre")?
        .filter(|name| !name.is_empty());
    let strings = metadata.strings(TOKENS)?.unwrap_or_default();
    if strings.is_empty() {
        return Err(invalid(TOKENS, "is missing or empty"));
    }
    let kinds = kinds(metadata, strings)?;
    let family = match model {
        "gpt2" => ranked_bpe(metadata, pre.unwrap_or("default"), &kinds)?,
        "gemma4" => ranked_bpe(metadata, "gemma4", &kinds)?,
        "llama" => scored_bpe(metadata, strings)?,
        "t5" => unigram(metadata, strings)?,
        "bert" => word_piece(metadata, strings)?,
        other => {
            let other: String = other.chars().take(64).collect();
            return Err(Error::UnsupportedModel(format!(
                "tokenizer {other:?} (tokenizer.ggml.model)"
            )));
        }
    };
    let named = |key: &str, default: Option<u32>| named_id(metadata, key, default, strings.len());
    let turn_ends = [
        named("tokenizer.ggml.eot_token_id", None)?,
        named("tokenizer.ggml.eom_token_id", None)?,
    ];
    let roles = Roles {
        bos_id: named("tokenizer.ggml.bos_token_id", family.bos_id)?,
        eos_id: match &family.algorithm {
            // The separator, whatever else the file names.
            Algorithm::WordPiece { .. } => family.eos_id,
            _ => named("tokenizer.ggml.eos_token_id", family.eos_id)?,
        },
        unknown_id: named("tokenizer.ggml.unknown_token_id", family.unknown_id)?,
        end_ids: turn_ends.into_iter().flatten().collect(),
    };
    Ok(Description {
        adds_bos: adds(metadata, BOS_KEY, &family, roles.bos_id)?,
        adds_eos: adds(metadata, EOS_KEY, &family, roles.eos_id)?,
        special: special_tokens(metadata, strings, &kinds)?,
        middle_tokens: match middle_tokens(metadata, strings.len())? {
            Some(named) => Some(named),
            None => MiddleTokens::by_text(strings),
        },
        chat_templates: chat_templates(metadata)?,
        strings: Cow::Borrowed(strings),
        kinds,
        spelling: family.spelling,
        roles,
        normalizer: family.normalizer,
        space_prefix: family.space_prefix,
        splitter: family.splitter,
        algorithm: family.algorithm,
    })
}

/// The template without a name, and those that `tokenizer.chat_templates` names.
fn chat_templates(metadata: &Metadata) -> Result<ChatTemplates> {
    const KEY: &str = "tokenizer.chat_template";
    let mut templates = match metadata.str(KEY)? {
        Some(text) => ChatTemplates::one(text),
        None => ChatTemplates::default(),
    };
    for name in metadata
        .strings("tokenizer.chat_templates")?
        .unwrap_or_default()
    {
        if let Some(text) = metadata.str(&format!("{KEY}.{name}"))? {
            templates.add(name, text);
        }
    }
    Ok(templates)
}

/// Whether prompts get the token `id`: what the file says under `key`, else the family's default. Texts of BERT always
/// get both: files name the separator in another way than an end of text.
fn adds(metadata: &Metadata, key: &str, family: &Family, id: Option<u32>) -> Result<bool> {
    let default = match key {
        BOS_KEY => family.adds_bos,
        _ => family.adds_eos,
    };
    if let Algorithm::WordPiece { .. } = family.algorithm {
        return Ok(id.is_some());
    }
    match metadata.bool(key)? {
        Some(true) if id.is_none() => Err(invalid(key, "is true, but there is no such token")),
        given => Ok(given.unwrap_or(default && id.is_some())),
    }
}

/// The fill-in-the-middle tokens that the file names, if it names all three.
fn middle_tokens(metadata: &Metadata, tokens: usize) -> Result<Option<MiddleTokens>> {
    for keys in &MIDDLE_TOKENS {
        let mut ids = [None; 3];
        for (id, key) in ids.iter_mut().zip(keys) {
            *id = named_id(metadata, key, None, tokens)?;
        }
        if let Some(tokens) = MiddleTokens::of(ids) {
            return Ok(Some(tokens));
        }
    }
    Ok(None)
}

fn invalid(key: &str, fault: &str) -> Error {
    Error::InvalidModelFile(format!("{key} {fault}"))
}

fn ranked_bpe(metadata: &Metadata, pre: &str, kinds: &[TokenKind]) -> Result<Family> {
    let pre = PreTokenizer::named(pre)?;
    let pairs = metadata
        .strings(MERGES)?
        .ok_or_else(|| invalid(MERGES, "is missing"))?
        .iter()
        .map(|merge| parse_merge(merge))
        .collect::<Result<Vec<_>>>()?;
    let spelling = match pre.is_sentencepiece {
        true => TokenSpelling::SentencePiece,
        false => TokenSpelling::ByteLevel,
    };
    // Id 11 is Falcon's default, used only where that id is a control token.
    let falcon = (spelling == TokenSpelling::ByteLevel
        && kinds.get(11) == Some(&TokenKind::Control))
    .then_some(11);
    let form = pre.is_nfc.then_some(NormalizerStep::Form(NormalForm::Nfc));
    Ok(Family {
        spelling,
        normalizer: Normalizer {
            steps: form.into_iter().collect(),
        },
        splitter: pre.splitter()?,
        space_prefix: SpacePrefix::Never,
        algorithm: Algorithm::Merges(Merges {
            pairs,
            ignore_merges: pre.ignore_merges,
            byte_fallback: pre.is_sentencepiece,
            fuse_unknown: pre.is_sentencepiece,
        }),
        adds_bos: pre.adds_bos,
        adds_eos: false,
        bos_id: falcon,
        eos_id: falcon,
        unknown_id: None,
    })
}

fn scored_bpe(metadata: &Metadata, strings: &[String]) -> Result<Family> {
    Ok(Family {
        spelling: TokenSpelling::SentencePiece,
        normalizer: Normalizer::default(),
        splitter: Splitter::default(),
        space_prefix: space_prefix(metadata, true)?,
        algorithm: Algorithm::Scores(scores(metadata, strings)?),
        adds_bos: true,
        adds_eos: false,
        bos_id: Some(1),
        eos_id: Some(2),
        unknown_id: Some(0),
    })
}

fn unigram(metadata: &Metadata, strings: &[String]) -> Result<Family> {
    let mut steps = Vec::new();
    let charsmap = match metadata.get(CHARSMAP) {
        None => None,
        Some(MetadataValue::Array(MetadataArray::U8(bytes))) => Some(Charsmap::new(bytes)?),
        Some(MetadataValue::Array(MetadataArray::I8(bytes))) => {
            let bytes: Vec<u8> = bytes.iter().map(|byte| byte.cast_unsigned()).collect();
            Some(Charsmap::new(&bytes)?)
        }
        Some(_) => return Err(invalid(CHARSMAP, "is not an array of bytes")),
    };
    steps.extend(charsmap.map(NormalizerStep::Charsmap));
    if metadata
        .bool("tokenizer.ggml.remove_extra_whitespaces")?
        .unwrap_or(false)
    {
        steps.push(NormalizerStep::replace("^ +| +$", "")?);
        steps.push(NormalizerStep::replace(" {2,}", " ")?);
    }
    Ok(Family {
        spelling: TokenSpelling::SentencePiece,
        normalizer: Normalizer { steps },
        splitter: Splitter::default(),
        space_prefix: space_prefix(metadata, false)?,
        algorithm: Algorithm::Unigram {
            scores: scores(metadata, strings)?
                .into_iter()
                .map(f64::from)
                .collect(),
        },
        adds_bos: false,
        adds_eos: true,
        bos_id: None,
        eos_id: Some(1),
        unknown_id: Some(2),
    })
}

/// BERT's tokenizer. Files do not say how text is normalized; llama.cpp lowercases, strips accents and separates
/// ideographs.
fn word_piece(metadata: &Metadata, strings: &[String]) -> Result<Family> {
    let id = |keys: [&str; 2], default| {
        let named = |key| named_id(metadata, key, None, strings.len());
        let found = match named(keys[0])? {
            None => named(keys[1])?,
            found => found,
        };
        let exists = |id: &u32| (*id as usize) < strings.len();
        Ok::<_, Error>(found.or(Some(default).filter(exists)))
    };
    let mut splitter = Splitter::default();
    word_piece::split_ideographs(&mut splitter)?;
    word_piece::split_words(&mut splitter)?;
    let first = ["tokenizer.ggml.bos_token_id", "tokenizer.ggml.cls_token_id"];
    let last = [
        "tokenizer.ggml.seperator_token_id",
        "tokenizer.ggml.separator_token_id",
    ];
    Ok(Family {
        spelling: TokenSpelling::SentencePiece,
        normalizer: Normalizer {
            steps: word_piece::normalizer(true, true, true)?,
        },
        splitter,
        space_prefix: SpacePrefix::Never,
        algorithm: Algorithm::WordPiece {
            max_word_chars: MAX_WORD_CHARS,
        },
        adds_bos: true,
        adds_eos: true,
        bos_id: id(first, 101)?,
        eos_id: id(last, 102)?,
        unknown_id: Some(100),
    })
}

fn space_prefix(metadata: &Metadata, default: bool) -> Result<SpacePrefix> {
    let adds = metadata.bool("tokenizer.ggml.add_space_prefix")?;
    Ok(match adds.unwrap_or(default) {
        true => SpacePrefix::Always,
        false => SpacePrefix::Never,
    })
}

fn scores(metadata: &Metadata, strings: &[String]) -> Result<Vec<f32>> {
    let scores = metadata
        .f32s(SCORES)?
        .ok_or_else(|| invalid(SCORES, "is missing"))?;
    same_length(SCORES, scores.len(), strings)?;
    Ok(scores.to_vec())
}

fn kinds(metadata: &Metadata, strings: &[String]) -> Result<Vec<TokenKind>> {
    let mut kinds = match metadata.i32s(TOKEN_TYPES)? {
        None => vec![TokenKind::Normal; strings.len()],
        Some(types) => {
            same_length(TOKEN_TYPES, types.len(), strings)?;
            types.iter().map(|&token_type| kind(token_type)).collect()
        }
    };
    settle_kinds(strings, &mut kinds);
    Ok(kinds)
}

fn kind(token_type: i32) -> TokenKind {
    match token_type {
        2 => TokenKind::Unknown,
        3 => TokenKind::Control,
        4 => TokenKind::UserDefined,
        5 => TokenKind::Unused,
        6 => TokenKind::Byte,
        // 1 is normal, 0 undefined; llama.cpp treats others as undefined as well.
        _ => TokenKind::Normal,
    }
}

fn same_length(key: &str, entries: usize, strings: &[String]) -> Result<()> {
    if entries == strings.len() {
        return Ok(());
    }
    let fault = format!("has {entries} entries for {} tokens", strings.len());
    Err(invalid(key, &fault))
}

/// The id under `key`, else `default`. An id outside the vocabulary counts as absent: converters
/// write -1, signed or unsigned, for "none".
fn named_id(
    metadata: &Metadata,
    key: &str,
    default: Option<u32>,
    tokens: usize,
) -> Result<Option<u32>> {
    let named = match metadata.get(key) {
        Some(MetadataValue::I32(-1) | MetadataValue::I64(-1)) => None,
        _ => metadata.u32(key)?,
    };
    let exists = |id: &u32| (*id as usize) < tokens;
    Ok(named.filter(exists).or(default.filter(exists)))
}

fn special_tokens(
    metadata: &Metadata,
    strings: &[String],
    kinds: &[TokenKind],
) -> Result<Vec<SpecialToken>> {
    // GGUF has no field for it; llama.cpp uses the name as well.
    let name = metadata
        .str("general.name")?
        .unwrap_or_default()
        .to_lowercase();
    let is_phi3 = name.contains("phi-3") || name.contains("phi3");
    let is_special = |kind: TokenKind| {
        matches!(
            kind,
            TokenKind::Control | TokenKind::Unknown | TokenKind::UserDefined
        )
    };
    Ok((0u32..)
        .zip(strings.iter().zip(kinds))
        .filter(|(_, (_, kind))| is_special(**kind))
        .map(|(id, (text, _))| SpecialToken {
            strips_following_space: is_phi3
                && !matches!(text.as_str(), "<unk>" | "<s>" | "<|endoftext|>"),
            ..SpecialToken::new(text, id)
        })
        .collect())
}
