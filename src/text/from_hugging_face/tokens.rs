//! The tokens of a `tokenizer.json`: the vocabulary of its model joined with the added tokens.

use std::collections::HashMap;

use super::super::special_tokens::SpecialToken;
use super::super::token::TokenKind;
use super::files::invalid;
use super::json::{AddedToken, TokenizerJson, Vocab};
use crate::Result;

/// The tokens by id.
pub struct Tokens {
    pub strings: Vec<String>,
    pub kinds: Vec<TokenKind>,
    /// The scores by id, if the model is a unigram model.
    pub scores: Option<Vec<f64>>,
    pub special: Vec<SpecialToken>,
}

impl Tokens {
    /// Takes the vocabulary out of the file.
    ///
    /// # Errors
    /// [`crate::Error::InvalidModelFile`] if there are no tokens, two of them share an id, or an id is far
    /// beyond the number of tokens.
    pub fn new(file: &mut TokenizerJson) -> Result<Tokens> {
        let (entries, scores) = match std::mem::take(&mut file.model.vocab) {
            Vocab::Ids(entries) => (entries, None),
            Vocab::Scores(entries) => {
                let (strings, scores): (Vec<String>, Vec<f64>) = entries.into_iter().unzip();
                (strings.into_iter().zip(0..).collect(), Some(scores))
            }
        };
        // An added token that the model has too gets the model's id, regardless of its id in the file.
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
        // Some vocabularies have a few unused ids; far more ids than tokens is a hostile file.
        if highest > 2 * count + 1024 {
            return Err(invalid(format_args!(
                "token id {highest} among {count} tokens"
            )));
        }
        let mut tokens = Tokens {
            strings: vec![String::new(); highest + 1],
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
            text.clone_into(&mut self.strings[index]);
            self.kinds[index] = kind;
        } else if self.strings[index] != text {
            return Err(invalid(format_args!("two tokens have the id {id}")));
        }
        Ok(())
    }

    /// The id of a token with this text.
    pub fn id(&self, text: &str) -> Option<u32> {
        let index = self.strings.iter().position(|known| known == text);
        index.filter(|_| !text.is_empty()).map(|index| index as u32)
    }
}
