//! One candidate of a request with its memory.

use std::rc::Rc;

use super::candidate::Candidate;
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
    pub(super) candidate: Candidate,
    pub(super) is_started: bool,
    /// Its last turn to generate; those that waited longest come first.
    pub(super) last_turn: u64,
    pub(super) run_ahead: RunAhead,
}

impl Sequence {
    pub(super) fn new(
        prompt: usize,
        generation: Rc<Generation>,
        index: u32,
        events: EventSender,
        run_ahead: RunAhead,
    ) -> Self {
        Self {
            prompt,
            memory: SequenceMemory::default(),
            candidate: Candidate::new(generation, index, events),
            is_started: false,
            last_turn: 0,
            run_ahead,
        }
    }

    /// Tokens of the prompt and those chosen.
    pub(super) fn known_tokens(&self) -> usize {
        self.candidate.generation().prompt.len() + self.candidate.chosen().len()
    }

    /// Tokens known and not in the pages.
    pub(super) fn unfed_tokens(&self) -> usize {
        self.known_tokens() - self.memory.len_tokens
    }

    /// The token that a batch feeds: the one chosen last.
    pub(super) fn last_token(&self) -> u32 {
        let prompt = self.candidate.generation().prompt.ids();
        let chosen = self.candidate.chosen().last();
        chosen.map_or(prompt[prompt.len() - 1], |last| *last)
    }

    /// Rolls back what was run ahead past the end: the token chosen last is never fed. A state is not
    /// rolled back: the sequence is over then, and nothing reads its state any more.
    pub(super) fn roll_back(&mut self) {
        let fed_tokens = self.known_tokens() - 1;
        self.memory.len_tokens = self.memory.len_tokens.min(fed_tokens);
    }

    /// Tokens that may be chosen before its reader sees the first of them. Where tokens may be forbidden it is one,
    /// because what is forbidden depends on each token.
    pub(super) fn steps_ahead(&self) -> usize {
        let generation = self.candidate.generation();
        match generation.is_restricted() {
            true => 1,
            false => {
                let left = generation.max_tokens - self.candidate.chosen().len();
                self.run_ahead.steps().min(left).min(self.candidate.room())
            }
        }
    }
}
