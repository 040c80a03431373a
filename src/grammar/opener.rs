//! The text by which a tool call is recognized at the start of a completion.

use llguidance::toktrie::TokEnv;

/// The text that a completion with a call begins with.
#[derive(Clone)]
pub(super) struct Opener {
    text: &'static str,
    /// Its id, if the opener is a special token.
    id: Option<u32>,
    tokens: TokEnv,
}

/// The relation of a token to the opener.
pub(super) enum Progress {
    /// The completion does not begin with the opener.
    Elsewhere,
    /// The completion is a proper prefix of the opener.
    Begun,
    /// The completion begins with the opener.
    Passed,
}

impl Opener {
    /// The opener `text`, which is the special token `id` if there is one.
    pub(super) fn new(text: &'static str, id: Option<u32>, tokens: TokEnv) -> Opener {
        Opener { text, id, tokens }
    }

    /// The words of a mask of all tokens except those that complete the opener after `seen`. `None` if
    /// no token both completes the opener and continues beyond it: then nothing needs to be masked.
    pub(super) fn tokens_not_passing_it(&self, seen: &[u8]) -> Option<Vec<u32>> {
        if self.id.is_some() {
            return None;
        }
        let trie = self.tokens.tok_trie();
        let missing = &self.text.as_bytes()[seen.len()..];
        let mut mask = trie.alloc_token_set();
        mask.set_all(true);
        let mut is_passed = false;
        for id in 0..trie.vocab_size() as u32 {
            let bytes = trie.token(id);
            if bytes.starts_with(missing) {
                mask.disallow_token(id);
                is_passed |= bytes.len() > missing.len();
            }
        }
        is_passed.then(|| mask.as_slice().to_vec())
    }

    /// Appends the token `id` to `seen`, the part of the opener that the completion has so far.
    pub(super) fn progress(&self, seen: &mut Vec<u8>, id: u32) -> Progress {
        if self.id.is_some() {
            return match self.id == Some(id) {
                true => Progress::Passed,
                false => Progress::Elsewhere,
            };
        }
        let trie = self.tokens.tok_trie();
        if id as usize >= trie.vocab_size() || trie.token(id).is_empty() {
            return Progress::Elsewhere;
        }
        seen.extend(trie.token(id));
        let opener = self.text.as_bytes();
        if seen.starts_with(opener) {
            Progress::Passed
        } else if opener.starts_with(seen) {
            Progress::Begun
        } else {
            Progress::Elsewhere
        }
    }
}

impl std::fmt::Debug for Opener {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Opener").field(&self.text).finish()
    }
}
