//! One candidate of a request with its memory.

use std::rc::Rc;

use super::candidate::Candidate;
use super::draft::{Draft, Drafter};
use super::events::EventSender;
use super::generation::Generation;
use super::limits::{Speculation, StepLimits};
use super::model::{KnownText, SequenceMemory};
use super::run_ahead::RunAhead;
use crate::grammar::Grammar;

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

/// Guesses of a sequence's next tokens.
#[derive(Debug, Default)]
pub(super) struct Drafts {
    /// The tokens that are guessed from text.
    pub(super) text: Draft,
    /// The number of tokens that the model may draft.
    pub(super) by_model: usize,
    /// The likelihood of each of those to be right if those before it are.
    pub(super) model_acceptance: f64,
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
    pub(super) fn drafts(&mut self, limits: &StepLimits) -> Drafts {
        let generation = self.candidate.generation();
        let rules = &generation.drafts;
        let looks_up = limits.speculation == Speculation::All;
        let by_model = limits.drafts && generation.prompt.is_text();
        let constraint = generation.constraint.as_ref();
        let is_constrained = constraint.is_some();
        let has_sources = looks_up || by_model || is_constrained || rules.prediction.is_some();
        let chosen = self.candidate.chosen();
        // The limit of mirostat follows from the tokens that were drawn, and the temperature of a grammar from its state.
        let is_fixed = generation.sampling.mirostat.is_none()
            && !constraint.is_some_and(Grammar::may_set_temperatures);
        if limits.speculation == Speculation::Off || !has_sources || !is_fixed || chosen.is_empty()
        {
            return Drafts::default();
        }
        let left = generation.max_tokens - chosen.len();
        let rows = left.min(self.candidate.room()).min(limits.verified_rows);
        let most = rows.saturating_sub(1).min(rules.max_tokens);
        let new = || Drafter::new(generation.prompt.ids(), rules, looks_up);
        let drafter = self.drafter.get_or_insert_with(new);
        drafter.follow(chosen);
        if is_constrained && drafter.is_free() {
            drafter.force(self.candidate.forced(most));
        }
        Drafts {
            text: drafter.draft(most, limits.vocab_size),
            by_model: if by_model { most } else { 0 },
            model_acceptance: drafter.model_acceptance(),
        }
    }

    /// Its tokens, for a draft.
    pub(super) fn text(&self) -> KnownText<'_> {
        KnownText {
            prompt: self.candidate.generation().prompt.ids(),
            chosen: self.candidate.chosen(),
        }
    }

    /// Records that the first `right` of `drafted` tokens of the model were right.
    pub(super) fn note_drafted(&mut self, drafted: usize, right: usize) {
        if let Some(drafter) = &mut self.drafter {
            drafter.note_model(drafted, right);
        }
    }

    /// Tokens that may be chosen before its reader sees the first of them, at least one. Where tokens may be forbidden it
    /// is one, because what is forbidden depends on each token.
    pub(super) fn steps_ahead(&self) -> usize {
        let generation = self.candidate.generation();
        let chosen = self.candidate.chosen();
        let left = generation.max_tokens - chosen.len();
        let free = generation.free_tokens(chosen).max(1);
        let most = left.min(free).min(self.candidate.room());
        self.run_ahead.steps().min(most)
    }
}
