//! One candidate of a request with its memory.

use std::rc::Rc;

use super::candidate::Candidate;
use super::draft::{Draft, Drafter};
use super::events::EventSender;
use super::generation::Generation;
use super::limits::{Speculation, StepLimits};
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
    /// Guesses its tokens, once they may be worth it.
    drafter: Option<Drafter>,
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
            drafter: None,
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

    /// Guesses of the tokens after the one that it feeds next, if that may be fed with them. As many as its reader has room
    /// for.
    pub(super) fn draft(&mut self, limits: &StepLimits) -> Draft {
        let generation = self.candidate.generation();
        let rules = &generation.drafts;
        let looks_up = limits.speculation == Speculation::All;
        let has_sources = looks_up || rules.prediction.is_some();
        let chosen = self.candidate.chosen();
        // The limit of mirostat follows from the tokens that were drawn.
        let is_fixed = generation.sampling.mirostat.is_none();
        if limits.speculation == Speculation::Off || !has_sources || !is_fixed || chosen.is_empty()
        {
            return Draft::default();
        }
        let new = || Drafter::new(generation.prompt.ids(), rules, looks_up);
        let drafter = self.drafter.get_or_insert_with(new);
        drafter.follow(chosen);
        let left = generation.max_tokens - chosen.len();
        let rows = left.min(self.candidate.room()).min(limits.verified_rows);
        drafter.draft(
            rows.saturating_sub(1).min(rules.max_tokens),
            limits.vocab_size,
        )
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
