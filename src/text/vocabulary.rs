//! The tokens of a GGUF file: what each is, which bytes it stands for, which ids mean start and
//! end of text. Knows nothing of how text becomes tokens.

use super::byte_level;
use crate::weights::{Metadata, MetadataValue};
use crate::{Error, Result};

/// How the texts of ordinary tokens are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenSpelling {
    /// In GPT-2's stand-ins for bytes.
    ByteLevel,
    /// As UTF-8 with U+2581 (▁) for a space.
    SentencePiece,
}

/// What a token is (`tokenizer.ggml.token_type`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenKind {
    /// Ordinary text.
    Normal,
    /// The token for what has no token: hidden.
    Unknown,
    /// Structure, such as end of text: hidden.
    Control,
    /// Literal text that is never cut.
    UserDefined,
    /// A placeholder: never text.
    Unused,
    /// One byte, written `<0xHH>`.
    Byte,
}

/// The tokens by id.
#[derive(Debug)]
pub struct Vocabulary {
    kinds: Vec<TokenKind>,
    /// The bytes of all tokens, one after the other; token `id` is `ends[id - 1]..ends[id]`.
    bytes: Vec<u8>,
    ends: Vec<u32>,
    /// Start of text.
    pub bos_id: Option<u32>,
    /// End of text.
    pub eos_id: Option<u32>,
    /// What stands for text that no token covers.
    pub unknown_id: Option<u32>,
    /// All ids that end a generation, `eos_id` first.
    pub end_ids: Vec<u32>,
}

/// Texts that mean the end of a turn or text wherever they are a token. Files often name only one
/// of several, or the wrong one; the list is that of llama.cpp (`special_eog_ids`).
const END_TEXTS: &[&str] = &[
    "<|eot_id|>",
    "<|im_end|>",
    "<|end|>",
    "<|return|>",
    "<|call|>",
    "<|flush|>",
    "<|calls|>",
    "<end_of_turn>",
    "<|endoftext|>",
    "</s>",
    "<|eom_id|>",
    "<EOT>",
    "_<EOT>",
    "[EOT]",
    "[EOS]",
    "<|end_of_text|>",
    "<end_of_utterance>",
    "<eos>",
    "<｜end▁of▁sentence｜>",
    // Padding and separators of code models: past these the file being written is over.
    "<|fim_pad|>",
    "<fim-pad>",
    "<fim_pad>",
    "<PAD>",
    "[PAD]",
    "<|fim_repo|>",
    "<|repo_name|>",
    "<fim-repo>",
    "<REPO>",
    "<reponame>",
    "<|file_sep|>",
];

const TOKENS_KEY: &str = "tokenizer.ggml.tokens";

impl Vocabulary {
    /// Reads the tokens.
    ///
    /// # Errors
    /// [`Error::InvalidModelFile`] if the token list is missing, contradicts the list of types, or
    /// a byte token does not spell a byte.
    pub fn from_gguf(metadata: &Metadata, spelling: TokenSpelling) -> Result<Vocabulary> {
        let texts = token_texts(metadata)?;
        let kinds = token_kinds(metadata, texts)?;
        let total_bytes: usize = texts.iter().map(String::len).sum();
        let mut bytes = Vec::with_capacity(total_bytes);
        let mut ends = Vec::with_capacity(texts.len());
        for (text, &kind) in texts.iter().zip(&kinds) {
            push_bytes(text, kind, spelling, &mut bytes)?;
            let end = u32::try_from(bytes.len()).map_err(|_| {
                Error::InvalidModelFile("the tokens' texts exceed 4 GiB".to_owned())
            })?;
            ends.push(end);
        }
        bytes.shrink_to_fit();
        let mut vocabulary = Vocabulary {
            kinds,
            bytes,
            ends,
            bos_id: None,
            eos_id: None,
            unknown_id: None,
            end_ids: Vec::new(),
        };
        // llama.cpp's defaults where the file names no id. The byte-level ones are Falcon's, so
        // they count only where that id is a control token.
        let (bos, eos, unknown) = match spelling {
            TokenSpelling::SentencePiece => (Some(1), Some(2), Some(0)),
            TokenSpelling::ByteLevel if vocabulary.kind(11) == TokenKind::Control => {
                (Some(11), Some(11), None)
            }
            TokenSpelling::ByteLevel => (None, None, None),
        };
        let named = |key: &str, default| vocabulary.named_id(metadata, key, default);
        let bos_id = named("tokenizer.ggml.bos_token_id", bos)?;
        let eos_id = named("tokenizer.ggml.eos_token_id", eos)?;
        let unknown_id = named("tokenizer.ggml.unknown_token_id", unknown)?;
        let turn_ends = [
            named("tokenizer.ggml.eot_token_id", None)?,
            named("tokenizer.ggml.eom_token_id", None)?,
        ];
        vocabulary.bos_id = bos_id;
        vocabulary.eos_id = eos_id;
        vocabulary.unknown_id = unknown_id;
        vocabulary.end_ids = end_ids(
            texts,
            eos_id.into_iter().chain(turn_ends.into_iter().flatten()),
        );
        Ok(vocabulary)
    }

    /// Number of tokens.
    pub fn len(&self) -> usize {
        self.kinds.len()
    }

    /// What the token is; ids outside the vocabulary are unused.
    pub fn kind(&self, id: u32) -> TokenKind {
        let kind = usize::try_from(id).ok().and_then(|id| self.kinds.get(id));
        kind.copied().unwrap_or(TokenKind::Unused)
    }

    /// The bytes the token stands for in running text (special tokens: their literal text).
    pub fn bytes(&self, id: u32) -> &[u8] {
        let Some(&end) = usize::try_from(id).ok().and_then(|id| self.ends.get(id)) else {
            return &[];
        };
        let start = if id == 0 {
            0
        } else {
            self.ends[id as usize - 1]
        };
        &self.bytes[start as usize..end as usize]
    }

    /// The id under `key`, else `default`. An id outside the vocabulary names nothing: converters
    /// write -1, signed or not, for "none".
    pub fn named_id(
        &self,
        metadata: &Metadata,
        key: &str,
        default: Option<u32>,
    ) -> Result<Option<u32>> {
        let named = match metadata.get(key) {
            Some(MetadataValue::I32(-1) | MetadataValue::I64(-1)) => None,
            _ => metadata.u32(key)?,
        };
        let exists = |id: &u32| (*id as usize) < self.len();
        Ok(named.filter(exists).or(default.filter(exists)))
    }
}

/// The tokens' texts as the file writes them.
///
/// # Errors
/// [`Error::InvalidModelFile`] if there are none.
pub fn token_texts(metadata: &Metadata) -> Result<&[String]> {
    let texts = metadata.strings(TOKENS_KEY)?.unwrap_or_default();
    if texts.is_empty() {
        return Err(Error::InvalidModelFile(format!(
            "{TOKENS_KEY} is missing or empty"
        )));
    }
    if u32::try_from(texts.len()).is_err() {
        return Err(Error::InvalidModelFile(format!(
            "{TOKENS_KEY} has {} tokens",
            texts.len()
        )));
    }
    Ok(texts)
}

fn token_kinds(metadata: &Metadata, texts: &[String]) -> Result<Vec<TokenKind>> {
    let Some(types) = metadata.i32s("tokenizer.ggml.token_type")? else {
        return Ok(texts
            .iter()
            .map(|text| known_end(text).unwrap_or(TokenKind::Normal))
            .collect());
    };
    if types.len() != texts.len() {
        return Err(Error::InvalidModelFile(format!(
            "tokenizer.ggml.token_type has {} entries for {} tokens",
            types.len(),
            texts.len()
        )));
    }
    let kinds = types.iter().zip(texts).map(|(&token_type, text)| {
        let kind = match token_type {
            2 => TokenKind::Unknown,
            3 => TokenKind::Control,
            4 => TokenKind::UserDefined,
            5 => TokenKind::Unused,
            6 => TokenKind::Byte,
            // 1 is normal, 0 undefined; llama.cpp takes others for undefined as well.
            _ => TokenKind::Normal,
        };
        known_end(text).unwrap_or(kind)
    });
    Ok(kinds.collect())
}

/// Converters sometimes call end tokens normal or user-defined; shown as text they would leak.
fn known_end(text: &str) -> Option<TokenKind> {
    end_text_index(text).map(|_| TokenKind::Control)
}

fn end_text_index(text: &str) -> Option<usize> {
    // Spares nearly all tokens of a vocabulary the comparison.
    if !text.starts_with(['<', '[', '_']) {
        return None;
    }
    END_TEXTS.iter().position(|end| *end == text)
}

fn end_ids(texts: &[String], named: impl Iterator<Item = u32>) -> Vec<u32> {
    let mut ids = Vec::new();
    let mut push = |id| {
        if !ids.contains(&id) {
            ids.push(id);
        }
    };
    named.for_each(&mut push);
    let mut by_text = [None; END_TEXTS.len()];
    for (id, text) in texts.iter().enumerate() {
        if let Some(index) = end_text_index(text) {
            by_text[index].get_or_insert(id as u32);
        }
    }
    let id_of = |text| end_text_index(text).and_then(|index| by_text[index]);
    // In the harmony and solar formats `<|end|>` ends a message in the middle of an answer.
    let calls = id_of("<|call|>").or(id_of("<|calls|>")).is_some();
    let inner_end = if calls && id_of("<|return|>").or(id_of("<|flush|>")).is_some() {
        id_of("<|end|>")
    } else {
        None
    };
    by_text
        .into_iter()
        .flatten()
        .filter(|&id| Some(id) != inner_end)
        .for_each(push);
    ids
}

fn push_bytes(
    text: &str,
    kind: TokenKind,
    spelling: TokenSpelling,
    out: &mut Vec<u8>,
) -> Result<()> {
    match (kind, spelling) {
        (TokenKind::Unused, _) => {}
        (TokenKind::Byte, _) => out.push(spelled_byte(text).ok_or_else(|| {
            Error::InvalidModelFile(format!("{TOKENS_KEY}: byte token {text:?} is not <0xHH>"))
        })?),
        (TokenKind::Normal, TokenSpelling::ByteLevel) => byte_level::decode(text, out),
        (TokenKind::Normal, TokenSpelling::SentencePiece) => {
            for (index, part) in text.split('▁').enumerate() {
                if index > 0 {
                    out.push(b' ');
                }
                out.extend_from_slice(part.as_bytes());
            }
        }
        (TokenKind::Unknown | TokenKind::Control | TokenKind::UserDefined, _) => {
            out.extend_from_slice(text.as_bytes());
        }
    }
    Ok(())
}

fn spelled_byte(text: &str) -> Option<u8> {
    let digits = text.strip_prefix("<0x")?.strip_suffix('>')?;
    if digits.len() != 2 || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    u8::from_str_radix(digits, 16).ok()
}
