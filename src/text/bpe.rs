//! Byte-level BPE: pieces of text to token ids by ranked merges. The merging is that of the
//! `tokenizers` crate; special tokens are not its business.

use tokenizers::Model;
use tokenizers::models::bpe::{BPE, Vocab};

use super::byte_level;
use super::pre_tokenizers::PreTokenizer;
use super::vocabulary::{Vocabulary, token_texts};
use crate::weights::Metadata;
use crate::{Error, Result};

/// A byte-level BPE encoder.
pub struct ByteLevelBpe {
    pre_tokenizer: PreTokenizer,
    model: BPE,
}

const MERGES_KEY: &str = "tokenizer.ggml.merges";

impl ByteLevelBpe {
    /// Builds the encoder from the file's tokens and merges.
    ///
    /// # Errors
    /// [`Error::UnsupportedModel`] for an unknown pre-tokenizer, [`Error::InvalidModelFile`] for
    /// merges that are missing, malformed or name tokens that do not exist.
    pub fn from_gguf(metadata: &Metadata, vocabulary: &Vocabulary) -> Result<ByteLevelBpe> {
        let pre = metadata
            .str("tokenizer.ggml.pre")?
            .filter(|name| !name.is_empty());
        let pre_tokenizer = PreTokenizer::named(pre.unwrap_or("default"))?;

        let texts = token_texts(metadata)?;
        let mut ids = Vocab::default();
        ids.reserve(texts.len());
        for (id, text) in texts.iter().enumerate() {
            // Padding may repeat a text; the first id keeps it.
            ids.entry(text.clone()).or_insert(id as u32);
        }
        let longest_bytes = texts.iter().map(String::len).max().unwrap_or(0);
        let merges = metadata
            .strings(MERGES_KEY)?
            .ok_or_else(|| Error::InvalidModelFile(format!("{MERGES_KEY} is missing")))?
            .iter()
            .map(|merge| parse_merge(merge, longest_bytes))
            .collect::<Result<Vec<_>>>()?;

        // No cache: the crate's is thread-local and outlives the model.
        let mut builder = BPE::builder()
            .vocab_and_merges(ids, merges)
            .ignore_merges(pre_tokenizer.ignore_merges)
            .cache_capacity(0);
        if let Some(unknown) = vocabulary.unknown_id {
            builder = builder.unk_token(texts[unknown as usize].clone());
        }
        let model = builder
            .build()
            .map_err(|error| Error::InvalidModelFile(format!("{MERGES_KEY}: {error}")))?;
        Ok(ByteLevelBpe {
            pre_tokenizer,
            model,
        })
    }

    /// Whether a start-of-text token is added when the file does not say.
    pub fn adds_bos(&self) -> bool {
        self.pre_tokenizer.adds_bos
    }

    /// Appends the ids of `text`. A byte without a token of its own becomes the unknown token; a
    /// vocabulary without one drops it, as llama.cpp does.
    ///
    /// # Errors
    /// [`Error::Internal`] if the `tokenizers` crate fails.
    pub fn encode(&self, text: &str, ids: &mut Vec<u32>) -> Result<()> {
        let mut stand_ins = String::new();
        self.pre_tokenizer.split(text, &mut |piece| {
            stand_ins.clear();
            byte_level::encode(piece.as_bytes(), &mut stand_ins);
            let tokens = self
                .model
                .tokenize(&stand_ins)
                .map_err(|error| Error::Internal(format!("byte-level BPE: {error}")))?;
            ids.extend(tokens.iter().map(|token| token.id));
            Ok(())
        })
    }
}

/// "left right"; a part may start with a space but not contain another.
fn parse_merge(merge: &str, longest_bytes: usize) -> Result<(String, String)> {
    let space = merge
        .bytes()
        .skip(1)
        .position(|byte| byte == b' ')
        .map(|index| index + 1);
    let (left, right) = space
        .map(|space| (&merge[..space], &merge[space + 1..]))
        .filter(|(_, right)| !right.is_empty())
        .ok_or_else(|| invalid_merge(merge, "is not two tokens"))?;
    // The crate joins the two in a buffer as long as the longest token.
    if left.len() + right.len() > longest_bytes {
        return Err(invalid_merge(merge, "makes no token"));
    }
    Ok((left.to_owned(), right.to_owned()))
}

fn invalid_merge(merge: &str, fault: &str) -> Error {
    let shown: String = merge.chars().take(80).collect();
    Error::InvalidModelFile(format!("{MERGES_KEY}: {shown:?} {fault}"))
}
