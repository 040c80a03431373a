//! The token bytes of a model's vocabulary as the trie that llguidance walks.

use std::sync::Arc;

use llguidance::toktrie::{ApproximateTokEnv, INVALID_TOKEN, TokEnv, TokRxInfo, TokTrie};

use crate::text::Tokenizer;

/// Longer tokens are never allowed: the trie stores depths in ten bits.
const MAX_TOKEN_BYTES: usize = 1000;
/// Tokens beyond this total number of bytes, or from this id on, are never allowed, because the trie
/// numbers its nodes with 22 bits.
const MAX_TOTAL_BYTES: usize = (1 << 22) - 1;

/// The trie of `tokenizer`. Special and end-of-text tokens are stored below a byte that no text contains,
/// so only a grammar that names them allows them. Unused ids and ids from `vocab_size` on are left out.
pub fn build(tokenizer: &Tokenizer, vocab_size: usize) -> TokEnv {
    let vocab_size = tokenizer.vocab_size().min(vocab_size).min(MAX_TOTAL_BYTES) as u32;
    let mut left = MAX_TOTAL_BYTES;
    let words: Vec<Vec<u8>> = (0..vocab_size)
        .map(|id| {
            let word = word(tokenizer, id);
            if word.len() > MAX_TOKEN_BYTES || word.len() > left {
                return Vec::new();
            }
            left -= word.len();
            word
        })
        .collect();
    let eos_ids = tokenizer.eos_ids().iter().copied();
    let eos_ids: Vec<u32> = eos_ids.filter(|&id| id < vocab_size).collect();
    let info = TokRxInfo::new(vocab_size, *eos_ids.first().unwrap_or(&INVALID_TOKEN));
    let mut trie = TokTrie::from(&info, &words);
    if !eos_ids.is_empty() {
        trie = trie.with_eos_tokens(&eos_ids);
    }
    Arc::new(ApproximateTokEnv::new(trie))
}

fn word(tokenizer: &Tokenizer, id: u32) -> Vec<u8> {
    let bytes = tokenizer.token_bytes(id);
    let is_special = tokenizer.is_special(id) || tokenizer.eos_ids().contains(&id);
    let marker = TokTrie::SPECIAL_TOKEN_MARKER;
    match (is_special, bytes) {
        (_, []) => Vec::new(),
        // The byte never occurs in UTF-8 text, and the token would look special.
        (false, [first, ..]) if *first == marker => Vec::new(),
        (false, bytes) => bytes.to_vec(),
        // The name that `<name>` refers to. Without the brackets it could be read as `[id]`, which is
        // how llguidance writes ids.
        (true, [b'<', ..]) => [&[marker], bytes].concat(),
        (true, bytes) => [&[marker, b'<'], bytes, b">"].concat(),
    }
}

/// The special token with this literal text.
pub fn special_id(trie: &TokTrie, text: &str) -> Option<u32> {
    if text.starts_with('<') {
        trie.get_special_token(text)
    } else if text.is_empty() {
        None
    } else {
        trie.get_special_token(&format!("<{text}>"))
    }
}
