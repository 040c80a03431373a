//! The token ids that end a choice, and the text of the ending token (specification 6.1, 6.3 and 6.4).
//! `text` finds stop strings inside the text.

use std::rc::Rc;

use crate::api::fields::Length;
use crate::text::Tokenizer;

/// The ids that end a choice, and whether their text is returned.
#[derive(Debug)]
pub(super) struct StopIds {
    end_of_text: Vec<u32>,
    /// Stop strings that are the text of one special token. They could not match as text while special
    /// tokens are hidden (specification 6.3).
    special: Vec<u32>,
    /// The stop ids that the request lists.
    given: Vec<u32>,
    tokenizer: Rc<Tokenizer>,
    include_stop: bool,
    is_constrained: bool,
    skip_special_tokens: bool,
}

impl StopIds {
    /// With `is_constrained` the text of a special token is never returned. The token that ends a message is never
    /// text of it.
    pub(super) fn new(
        tokenizer: &Rc<Tokenizer>,
        length: &Length,
        is_constrained: bool,
        is_message: bool,
    ) -> StopIds {
        let special_id = |stop: &String| tokenizer.special_id(stop);
        StopIds {
            end_of_text: match length.ignore_eos {
                true => Vec::new(),
                false => tokenizer.eos_ids().to_vec(),
            },
            special: length.stop.iter().filter_map(special_id).collect(),
            given: length.stop_token_ids.clone(),
            tokenizer: tokenizer.clone(),
            include_stop: length.include_stop,
            is_constrained,
            skip_special_tokens: length.skip_special_tokens || is_message,
        }
    }

    /// All ids that end a choice.
    pub(super) fn ids(&self) -> Vec<u32> {
        [self.end_of_text.as_slice(), &self.special, &self.given].concat()
    }

    pub(super) fn contains(&self, id: u32) -> bool {
        self.is_end_of_text(id) || self.special.contains(&id) || self.given.contains(&id)
    }

    /// Whether `id` is an end-of-text token.
    pub(super) fn is_end_of_text(&self, id: u32) -> bool {
        self.end_of_text.contains(&id)
    }

    fn is_special(&self, id: u32) -> bool {
        self.is_end_of_text(id) || self.tokenizer.is_special(id)
    }

    /// The text that the ending token contributes.
    pub(super) fn text(&self, id: u32) -> String {
        let is_named = self.special.contains(&id) && !self.is_end_of_text(id);
        let is_hidden = match is_named {
            true => self.is_constrained,
            false => self.skip_special_tokens && self.is_special(id),
        };
        match self.include_stop && !is_hidden {
            true => String::from_utf8_lossy(self.tokenizer.token_bytes(id)).into_owned(),
            false => String::new(),
        }
    }
}
