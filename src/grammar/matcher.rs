//! The state of a constraint within one completion.

use std::rc::Rc;

use llguidance::TokenParser;
use llguidance::api::StopReason;
use llguidance::toktrie::TokTrie;

use super::guard::{Guard, Written};
use super::opener::{Opener, Progress};
use crate::sample::TokenMask;
use crate::{Error, Result};

/// Follows one completion and says which tokens may come next.
pub struct Matcher {
    parser: TokenParser,
    phase: Phase,
    /// The end-of-text ids.
    ends: Rc<TokenMask>,
    /// Keeps JSON from running on.
    guard: Option<Rc<Guard>>,
    written: Written,
    /// The result of [`Self::next`], until the next token is accepted.
    mask: Option<TokenMask>,
    /// Tokens accepted so far.
    position: usize,
}

/// The tokens that a constraint allows next.
#[derive(Debug, PartialEq)]
pub enum Next<'a> {
    /// Every token is allowed.
    Free,
    /// These tokens are allowed. They include end-of-text ids where the completion may end.
    OneOf(&'a TokenMask),
    /// No token is allowed: the completion is over.
    Finished,
}

#[derive(Debug, Clone)]
enum Phase {
    /// The completion is a proper prefix of the opener; the parser has followed it.
    Undecided { opener: Opener, seen: Vec<u8> },
    /// The completion does not begin with the opener.
    Free,
    /// The parser decides.
    Constrained,
    /// The completion is over.
    Finished,
}

impl Matcher {
    /// `parser` is at the start of a completion. With an `opener`, it constrains only completions that
    /// begin with the opener.
    pub(super) fn new(
        parser: TokenParser,
        opener: Option<Opener>,
        ends: Rc<TokenMask>,
        guard: Option<Rc<Guard>>,
    ) -> Matcher {
        let phase = match opener {
            None => Phase::Constrained,
            Some(opener) => Phase::Undecided {
                opener,
                seen: Vec::new(),
            },
        };
        Matcher {
            parser,
            phase,
            ends,
            guard,
            written: Written::default(),
            mask: None,
            position: 0,
        }
    }

    /// Another matcher at the same place.
    pub fn fork(&self) -> Matcher {
        Matcher {
            parser: self.parser.deep_clone(),
            phase: self.phase.clone(),
            ends: self.ends.clone(),
            guard: self.guard.clone(),
            written: self.written.clone(),
            mask: self.mask.clone(),
            position: self.position,
        }
    }

    /// The tokens that may come next. This is expensive: call it while the device computes.
    ///
    /// # Errors
    /// [`Error::GrammarDeadEnd`] if nothing may follow and the completion is not over,
    /// [`Error::Internal`] if deciding takes more than llguidance's limits allow.
    #[expect(
        clippy::should_implement_trait,
        reason = "it borrows from self and can fail"
    )]
    pub fn next(&mut self) -> Result<Next<'_>> {
        if self.mask.is_none() {
            match &self.phase {
                Phase::Free => return Ok(Next::Free),
                Phase::Finished => return Ok(Next::Finished),
                Phase::Constrained => match self.allowed()? {
                    Some(mask) => {
                        self.mask = Some(match &self.guard {
                            Some(guard) => self.written.narrow(guard, mask),
                            None => mask,
                        });
                    }
                    None => {
                        self.phase = Phase::Finished;
                        return Ok(Next::Finished);
                    }
                },
                // A token that completes the opener may continue beyond it; the rest must match.
                Phase::Undecided { opener, seen } => {
                    let Some(mut mask) = opener.tokens_not_passing_it(seen) else {
                        return Ok(Next::Free);
                    };
                    if let Some(passing) = self.allowed()? {
                        let words = mask.iter_mut().zip(passing.words());
                        words.for_each(|(word, passing)| *word |= passing);
                    }
                    self.mask = Some(TokenMask::from_words(mask));
                }
            }
        }
        Ok(self.mask.as_ref().map_or(Next::Free, Next::OneOf))
    }

    /// The temperature that the grammar sets for the next token, in place of the request's: the highest of those of the
    /// terminals that may come next.
    pub fn temperature(&self) -> Option<f32> {
        match self.phase {
            Phase::Constrained => self.parser.temperature(),
            Phase::Undecided { .. } | Phase::Free | Phase::Finished => None,
        }
    }

    /// At most `most` tokens of the text that the constraint forces next: the longest token that fits at each place. The
    /// model may divide the same text otherwise.
    pub fn forced(&self, most: usize) -> Vec<u32> {
        if !matches!(self.phase, Phase::Constrained) {
            return Vec::new();
        }
        // Forced bytes are pushed into the parser.
        let mut parser = self.parser.deep_clone();
        let bytes = parser.force_bytes();
        let trie = parser.token_env.tok_trie();
        let tokens = match bytes.split_first() {
            // A token by its number: the marker, then `[id]`.
            Some((&TokTrie::SPECIAL_TOKEN_MARKER, id)) => {
                let id = std::str::from_utf8(id).ok();
                let id = id.and_then(|id| id.strip_prefix('[')?.split_once(']'));
                id.and_then(|(id, _)| id.parse().ok()).into_iter().collect()
            }
            Some(_) => {
                let end = bytes
                    .iter()
                    .position(|it| *it == TokTrie::SPECIAL_TOKEN_MARKER);
                trie.greedy_tokenize(&bytes[..end.unwrap_or(bytes.len())])
            }
            None => self.only_token().into_iter().collect(),
        };
        tokens.into_iter().take(most).collect()
    }

    /// The token that is allowed next, if that was decided and it is the only one.
    fn only_token(&self) -> Option<u32> {
        let words = self.mask.as_ref()?.words();
        let mut ids = words.iter().zip(0u32..).filter(|(word, _)| **word != 0);
        let (word, at) = ids.next()?;
        let is_only = word.is_power_of_two() && ids.next().is_none();
        is_only.then(|| 32 * at + word.trailing_zeros())
    }

    /// The tokens that the parser allows, or `None` if the completion is over.
    fn allowed(&mut self) -> Result<Option<TokenMask>> {
        let mask = match self.parser.compute_mask() {
            Ok(mask) => TokenMask::from_words(mask.as_slice().to_vec()),
            // Happens only in a vocabulary without end-of-text ids. Otherwise they would be allowed.
            Err(_) if self.has_no_tokens_left() && self.parser.is_accepting() => {
                return Ok(None);
            }
            Err(_) if self.has_no_tokens_left() => {
                return Err(Error::GrammarDeadEnd {
                    position: self.position,
                });
            }
            Err(error) => return Err(Error::Internal(format!("grammar: {error}"))),
        };
        let mut words = mask.words().iter().zip(self.ends.words());
        let only_ends = words.all(|(allowed, ends)| allowed & !ends == 0);
        Ok(if only_ends && self.parser.is_accepting() {
            None
        } else {
            Some(mask)
        })
    }

    fn has_no_tokens_left(&self) -> bool {
        self.parser.stop_reason() == StopReason::NoExtensionBias
    }

    /// Advances by a sampled token.
    ///
    /// # Errors
    /// [`Error::Internal`] for a token that [`Self::next`] does not allow.
    pub fn accept(&mut self, id: u32) -> Result<()> {
        self.mask = None;
        match &mut self.phase {
            Phase::Free => {}
            Phase::Finished => return Err(refused(id, "the completion is over")),
            Phase::Constrained => self.consume(id)?,
            Phase::Undecided { opener, seen } => {
                let progress = opener.progress(seen, id);
                match progress {
                    Progress::Elsewhere => self.phase = Phase::Free,
                    Progress::Begun => self.consume(id)?,
                    Progress::Passed => {
                        self.phase = Phase::Constrained;
                        self.consume(id)?;
                    }
                }
            }
        }
        self.position += 1;
        Ok(())
    }

    fn consume(&mut self, id: u32) -> Result<()> {
        let ends_here = self.ends.allows(id) && self.parser.is_accepting();
        let consumed = self.parser.consume_token(id);
        consumed.map_err(|error| refused(id, &error.to_string()))?;
        if let Some(guard) = &self.guard {
            let tokens = self.parser.token_env.tok_trie();
            self.written.accept(guard, tokens, id);
        }
        if ends_here {
            self.phase = Phase::Finished;
        }
        Ok(())
    }
}

fn refused(id: u32, why: &str) -> Error {
    Error::Internal(format!("grammar: token {id} is not allowed: {why}"))
}

impl std::fmt::Debug for Matcher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Matcher")
            .field("phase", &self.phase)
            .field("position", &self.position)
            .finish_non_exhaustive()
    }
}
