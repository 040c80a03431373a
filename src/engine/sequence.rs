//! One candidate of a request: its choice of tokens and its KV pages. Knows no other sequence.

use std::rc::Rc;

use super::choice::Choice;
use super::events::EventSender;
use super::generation::Generation;
use crate::model::causal::SequenceKv;

/// A candidate that waits for its start or runs.
///
/// While it runs, between steps, at least one token is still to be fed: the rest of the prompt, or
/// the token chosen last.
pub(super) struct Sequence {
    /// Index of its prompt in the request.
    pub(super) prompt: usize,
    /// Empty until it starts.
    pub(super) kv: SequenceKv,
    pub(super) choice: Choice,
    pub(super) is_started: bool,
    /// The batch it was in last; those that waited longest come first.
    pub(super) last_batch: u64,
}

impl Sequence {
    pub(super) fn new(
        prompt: usize,
        generation: Rc<Generation>,
        candidate: u32,
        events: EventSender,
    ) -> Self {
        Self {
            prompt,
            kv: SequenceKv::default(),
            choice: Choice::new(generation, candidate, events),
            is_started: false,
            last_batch: 0,
        }
    }

    /// Tokens known and not in the pages.
    pub(super) fn unfed_tokens(&self) -> usize {
        let known = self.choice.generation().prompt.len() + self.choice.generated();
        known - self.kv.len_tokens
    }

    /// The first `count` of them.
    pub(super) fn unfed(&self, count: usize) -> Vec<u32> {
        match self.choice.last() {
            Some(last) => vec![last],
            None => self.choice.generation().prompt[self.kv.len_tokens..][..count].to_vec(),
        }
    }
}
