//! The tokens of a model: the kind of each, the bytes it stands for, and which ids start and end a text.

use super::byte_fallback::byte_of;
use super::byte_level;
use super::token::{Roles, TokenKind, TokenSpelling};
use crate::{Error, Result};

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
    /// All ids that end a generation, `eos_id` first.
    pub end_ids: Vec<u32>,
}

/// Strings that mean the end of a turn or a text in every vocabulary that has them as a token. Files
/// often name only one of several, or the wrong one. Source: `special_eog_ids` of llama.cpp.
const END_STRINGS: &[&str] = &[
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
    "<|eot|>",
    "<|eom|>",
    "<EOT>",
    "_<EOT>",
    "[EOT]",
    "[EOS]",
    "<|end_of_text|>",
    "<end_of_utterance>",
    "<eos>",
    "<turn|>",
    "<|tool_response>",
    "[e~[",
    "<｜end▁of▁sentence｜>",
    // Padding and separators of code models: the file being written ends before them.
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

impl Vocabulary {
    /// The tokens with these strings and kinds (one per text), after [`settle_kinds`].
    ///
    /// # Errors
    /// [`Error::InvalidModelFile`] if there is no token, or a byte token does not spell a byte.
    pub fn new(
        strings: &[String],
        kinds: Vec<TokenKind>,
        spelling: TokenSpelling,
        roles: &Roles,
    ) -> Result<Vocabulary> {
        if strings.is_empty() || u32::try_from(strings.len()).is_err() {
            let count = strings.len();
            return Err(Error::InvalidModelFile(format!("{count} tokens")));
        }
        let total_bytes: usize = strings.iter().map(String::len).sum();
        let mut bytes = Vec::with_capacity(total_bytes);
        let mut ends = Vec::with_capacity(strings.len());
        for (text, &kind) in strings.iter().zip(&kinds) {
            push_bytes(text, kind, spelling, &mut bytes)?;
            let end = u32::try_from(bytes.len()).map_err(|_| {
                Error::InvalidModelFile("the tokens' strings exceed 4 GiB".to_owned())
            })?;
            ends.push(end);
        }
        bytes.shrink_to_fit();
        let named_ends = roles.eos_id.iter().chain(&roles.end_ids).copied();
        Ok(Vocabulary {
            kinds,
            bytes,
            ends,
            bos_id: roles.bos_id,
            eos_id: roles.eos_id,
            end_ids: end_ids(strings, named_ends),
        })
    }

    /// Number of tokens.
    pub fn len(&self) -> usize {
        self.kinds.len()
    }

    /// The kind of the token; ids outside the vocabulary are unused.
    pub fn kind(&self, id: u32) -> TokenKind {
        let kind = usize::try_from(id).ok().and_then(|id| self.kinds.get(id));
        kind.copied().unwrap_or(TokenKind::Unused)
    }

    /// Whether the token is structure, hidden from text unless requested. False for ids outside the
    /// vocabulary.
    pub fn is_special(&self, id: u32) -> bool {
        matches!(self.kind(id), TokenKind::Control | TokenKind::Unknown)
    }

    /// The bytes the token adds to running text; of a special token its literal text. Empty for ids
    /// outside the vocabulary.
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
}

/// Makes the tokens that end a text control tokens. Some converters mark them as normal or
/// user-defined; they would then appear in the output.
pub fn settle_kinds(strings: &[String], kinds: &mut [TokenKind]) {
    for (text, kind) in strings.iter().zip(kinds) {
        if end_text_index(text).is_some() {
            *kind = TokenKind::Control;
        }
    }
}

fn end_text_index(text: &str) -> Option<usize> {
    // Skips the comparison for nearly all tokens.
    if !text.starts_with(['<', '[', '_']) {
        return None;
    }
    END_STRINGS.iter().position(|end| *end == text)
}

fn end_ids(strings: &[String], named: impl Iterator<Item = u32>) -> Vec<u32> {
    let mut ids = Vec::new();
    let mut push = |id| {
        if !ids.contains(&id) {
            ids.push(id);
        }
    };
    named.for_each(&mut push);
    let mut by_text = [None; END_STRINGS.len()];
    for (id, text) in strings.iter().enumerate() {
        if let Some(index) = end_text_index(text) {
            by_text[index].get_or_insert(id as u32);
        }
    }
    let id_of = |text| end_text_index(text).and_then(|index| by_text[index]);
    // In the harmony and solar formats `<|end|>` ends a message, not the answer.
    let calls = id_of("<|call|>").or(id_of("<|calls|>")).is_some();
    let inner_end = if calls && id_of("<|return|>").or(id_of("<|flush|>")).is_some() {
        id_of("<|end|>")
    } else {
        None
    };
    // Gemma 4 uses `</s>` as a tag inside strings.
    let tag = id_of("<|tool_response>").and(id_of("</s>"));
    by_text
        .into_iter()
        .flatten()
        .filter(|&id| Some(id) != inner_end && Some(id) != tag)
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
        (TokenKind::Byte, _) => out.push(byte_of(text).ok_or_else(|| {
            let shown: String = text.chars().take(80).collect();
            Error::InvalidModelFile(format!("byte token {shown:?} is not <0xHH>"))
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
