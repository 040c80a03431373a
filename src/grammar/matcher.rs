//! The state of a constraint within one completion.

use std::rc::Rc;

use llguidance::TokenParser;
use llguidance::api::StopReason;

use super::tools::Opener;
use crate::sample::TokenMask;
use crate::{Error, Result};

/// Follows one completion.
pub struct Matcher {
    parser: TokenParser,
    phase: Phase,
    /// The end-of-text ids.
    ends: Rc<TokenMask>,
    /// What [`Self::next`] found, until a token is taken in.
    mask: Option<TokenMask>,
    /// Tokens taken in.
    position: usize,
}

/// What a constraint says of the next token.
#[derive(Debug, PartialEq)]
pub enum Next<'a> {
    /// Anything.
    Free,
    /// One of these; end-of-text ids are among them where the completion may end.
    OneOf(&'a TokenMask),
    /// Nothing may follow: the completion is over.
    Finished,
}

#[derive(Debug)]
enum Phase {
    /// The completion is a proper prefix of the opener; the parser has followed it.
    Undecided { opener: Opener, seen: Vec<u8> },
    /// The completion does not begin with the opener.
    Free,
    /// The parser decides.
    Constrained,
    /// Nothing may follow.
    Finished,
}

impl Matcher {
    /// `parser` stands at the start. With an `opener` it decides only on completions that begin
    /// with that.
    pub(super) fn new(parser: TokenParser, opener: Option<Opener>, ends: Rc<TokenMask>) -> Matcher {
        let phase = match opener {
            None => Phase::Constrained,
            Some(opener) if opener.can_be_seen() => Phase::Undecided {
                opener,
                seen: Vec::new(),
            },
            Some(_) => Phase::Free,
        };
        Matcher {
            parser,
            phase,
            ends,
            mask: None,
            position: 0,
        }
    }

    /// What may come next. Costs time: meant to run while the device computes.
    ///
    /// # Errors
    /// [`Error::GrammarDeadEnd`] if nothing may follow and the completion is not over,
    /// [`Error::Internal`] if deciding takes more than llguidance's limits allow.
    #[expect(clippy::should_implement_trait, reason = "it lends, and may fail")]
    pub fn next(&mut self) -> Result<Next<'_>> {
        if self.mask.is_none() {
            match &self.phase {
                Phase::Free => return Ok(Next::Free),
                Phase::Finished => return Ok(Next::Finished),
                Phase::Constrained => match self.allowed()? {
                    Some(mask) => self.mask = Some(mask),
                    None => {
                        self.phase = Phase::Finished;
                        return Ok(Next::Finished);
                    }
                },
                // Tokens that complete the opener may hold more than it, and that must fit.
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

    /// What the parser allows, or `None` if the completion is over.
    fn allowed(&mut self) -> Result<Option<TokenMask>> {
        let mask = match self.parser.compute_mask() {
            Ok(mask) => TokenMask::from_words(mask.as_slice().to_vec()),
            // Only without end-of-text ids: else they would be allowed.
            Err(_) if self.stopped_for_want_of_tokens() && self.parser.is_accepting() => {
                return Ok(None);
            }
            Err(_) if self.stopped_for_want_of_tokens() => {
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

    fn stopped_for_want_of_tokens(&self) -> bool {
        self.parser.stop_reason() == StopReason::NoExtensionBias
    }

    /// Takes a chosen token in.
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
        if ends_here {
            self.phase = Phase::Finished;
        }
        Ok(())
    }
}

/// How a token changes what a completion has of the opener.
pub(super) enum Progress {
    /// It is not the opener.
    Elsewhere,
    /// It is a part of the opener.
    Begun,
    /// It begins with the opener.
    Passed,
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
