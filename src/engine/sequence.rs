//! One candidate of a request: its choice of tokens and its KV pages. Knows no other sequence.

use std::rc::Rc;

use super::choice::Choice;
use super::events::EventSender;
use super::generation::Generation;
use super::model::SequenceMemory;
use super::run_ahead::RunAhead;

/// A candidate that waits for its start or runs.
///
/// While it runs, between steps, at least one token is still to be fed: the rest of the prompt, or
/// the token chosen last.
pub(super) struct Sequence {
    /// Index of its prompt in the request.
    pub(super) prompt: usize,
    /// Empty until it starts.
    pub(super) memory: SequenceMemory,
    pub(super) choice: Choice,
    pub(super) is_started: bool,
    /// Its last turn to generate; those that waited longest come first.
    pub(super) last_turn: u64,
    pub(super) run_ahead: RunAhead,
}

impl Sequence {
    pub(super) fn new(
        prompt: usize,
        generation: Rc<Generation>,
        candidate: u32,
        events: EventSender,
        run_ahead: RunAhead,
    ) -> Self {
        Self {
            prompt,
            memory: SequenceMemory::default(),
            choice: Choice::new(generation, candidate, events),
            is_started: false,
            last_turn: 0,
            run_ahead,
        }
    }

    /// Tokens of the prompt and those chosen.
    pub(super) fn known_tokens(&self) -> usize {
        self.choice.generation().prompt.len() + self.choice.chosen().len()
    }

    /// Tokens known and not in the pages.
    pub(super) fn unfed_tokens(&self) -> usize {
        self.known_tokens() - self.memory.len_tokens
    }

    /// The first `count` of them.
    pub(super) fn unfed(&self, count: usize) -> Vec<u32> {
        match self.choice.chosen().last() {
            Some(&last) => vec![last],
            None => self.choice.generation().prompt[self.memory.len_tokens..][..count].to_vec(),
        }
    }

    /// Rolls back what was run ahead past the end: the token chosen last is never fed.
    pub(super) fn roll_back(&mut self) {
        let fed_tokens = self.known_tokens() - 1;
        self.memory.len_tokens = self.memory.len_tokens.min(fed_tokens);
    }

    /// Tokens that may be chosen before its reader sees the first of them: a constraint has to see
    /// each.
    pub(super) fn steps_ahead(&self) -> usize {
        let generation = self.choice.generation();
        match generation.constraint {
            Some(_) => 1,
            None => {
                let left = generation.max_tokens - self.choice.chosen().len();
                self.run_ahead.steps().min(left).min(self.choice.room())
            }
        }
    }
}
