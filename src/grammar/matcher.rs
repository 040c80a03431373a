//! The state of a constraint within one completion.

use crate::Result;
use crate::sample::TokenMask;

/// Follows one completion.
#[derive(Debug)]
pub struct Matcher {}

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

impl Matcher {
    /// What may come next. Costs time: meant to run while the device computes.
    ///
    /// # Errors
    /// [`crate::Error::GrammarDeadEnd`] if nothing may follow and the completion is not over.
    pub fn next(&mut self) -> Result<Next<'_>> {
        Ok(Next::Free)
    }

    /// Takes a chosen token in.
    ///
    /// # Errors
    /// [`crate::Error::Internal`] for a token that [`Self::next`] does not allow.
    pub fn accept(&mut self, _id: u32) -> Result<()> {
        Ok(())
    }
}
