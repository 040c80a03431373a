//! BPE by ranked merges: pieces of text to token ids. The `tokenizers` crate does the merging; special
//! tokens and the splitting into pieces happen before.

use tokenizers::Model;
use tokenizers::models::bpe::{BPE, Vocab};

use super::byte_level;
use super::description::Merges;
use super::sentencepiece;
use super::token::TokenSpelling;
use crate::{Error, Result};

/// A BPE encoder.
pub struct RankedBpe {
    spelling: TokenSpelling,
    model: BPE,
    /// Whether every byte or character becomes a token, and no token stands for arbitrarily long text.
    pub keeps_text: bool,
    /// Whether spaces are spelled ▁, and no token has one after another character: words can be merged one by one.
    pub words_stand_apart: bool,
}

impl RankedBpe {
    /// Builds the encoder from tokens and merges.
    ///
    /// # Errors
    /// [`Error::InvalidModelFile`] for a merge that names or forms a token that does not exist.
    pub fn new(
        strings: &[String],
        spelling: TokenSpelling,
        merges: Merges,
        unknown_id: Option<u32>,
    ) -> Result<RankedBpe> {
        let mut ids = Vocab::default();
        ids.reserve(strings.len());
        for (id, text) in strings.iter().enumerate() {
            // Padding tokens may repeat a text; the first id wins.
            ids.entry(text.clone()).or_insert(id as u32);
        }
        let has_byte = |byte: u8| match spelling {
            TokenSpelling::ByteLevel => {
                ids.contains_key(&*byte_level::CHAR_OF_BYTE[usize::from(byte)].to_string())
            }
            TokenSpelling::SentencePiece => {
                merges.byte_fallback && ids.contains_key(&*format!("<0x{byte:02X}>"))
            }
        };
        let has_unknown = unknown_id.is_some() && !merges.fuse_unknown;
        // Fused unknown characters would be one token across words.
        let words_stand_apart = spelling == TokenSpelling::SentencePiece
            && ids.contains_key("▁")
            && sentencepiece::words_stand_apart(strings);
        let keeps_text = has_unknown || (0..=255).all(has_byte);
        // The crate joins the two tokens in a buffer as long as the longest token.
        let longest_bytes = strings.iter().map(String::len).max().unwrap_or(0);
        let too_long = |pair: &&(String, String)| pair.0.len() + pair.1.len() > longest_bytes;
        if let Some((left, right)) = merges.pairs.iter().find(too_long) {
            let shown: String = left.chars().chain(right.chars()).take(80).collect();
            return Err(Error::InvalidModelFile(format!(
                "merges: {shown:?} does not form a token"
            )));
        }
        // No cache: the crate's cache is thread-local and outlives the model.
        let mut builder = BPE::builder()
            .vocab_and_merges(ids, merges.pairs)
            .ignore_merges(merges.ignore_merges)
            .byte_fallback(merges.byte_fallback)
            .fuse_unk(merges.fuse_unknown)
            .cache_capacity(0);
        if let Some(unknown) = unknown_id {
            builder = builder.unk_token(strings[unknown as usize].clone());
        }
        let model = builder
            .build()
            .map_err(|error| Error::InvalidModelFile(format!("merges: {error}")))?;
        Ok(RankedBpe {
            spelling,
            model,
            keeps_text,
            words_stand_apart,
        })
    }

    /// Appends the ids of a piece, in which spaces are still spaces. A character (in a byte-level
    /// vocabulary: a byte) without a token becomes the unknown token. Without an unknown token it is
    /// dropped, as in llama.cpp.
    ///
    /// # Errors
    /// [`Error::Internal`] if the `tokenizers` crate fails.
    pub fn encode(&self, piece: &str, ids: &mut Vec<u32>) -> Result<()> {
        let spelled = match self.spelling {
            TokenSpelling::ByteLevel => {
                let mut stand_ins = String::with_capacity(2 * piece.len());
                byte_level::encode(piece.as_bytes(), &mut stand_ins);
                stand_ins
            }
            TokenSpelling::SentencePiece => piece.replace(' ', "▁"),
        };
        let tokens = self
            .model
            .tokenize(&spelled)
            .map_err(|error| Error::Internal(format!("BPE: {error}")))?;
        ids.extend(tokens.iter().map(|token| token.id));
        Ok(())
    }
}

/// The two tokens of a merge written "left right". Each may start with a space but not contain
/// another one.
///
/// # Errors
/// [`Error::InvalidModelFile`] if it is not two tokens.
pub fn parse_merge(merge: &str) -> Result<(String, String)> {
    let first_bytes = merge.chars().next().map_or(0, char::len_utf8);
    merge[first_bytes..]
        .split_once(' ')
        .map(|(left, right)| {
            (
                merge[..first_bytes + left.len()].to_owned(),
                right.to_owned(),
            )
        })
        .filter(|(_, right)| !right.is_empty())
        .ok_or_else(|| {
            let shown: String = merge.chars().take(80).collect();
            Error::InvalidModelFile(format!("merges: {shown:?} is not two tokens"))
        })
}
