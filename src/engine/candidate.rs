//! One candidate of a prompt, apart from its memory: sampler, constraint, the checks that end it,
//! and the events for its reader.

use std::rc::Rc;

use super::event::{Event, FinishReason};
use super::events::EventSender;
use super::generation::{Generation, TokenScore};
use crate::grammar::{Grammar, Matcher, Next};
use crate::sample::{Sampled, Sampler, TokenMask};
use crate::{Error, Result};

/// The tokens that a constraint allows next.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Allowed {
    Any,
    OneOf(TokenMask),
    /// The completion is over.
    Nothing,
}

impl Allowed {
    /// The tokens that may begin a completion.
    pub(super) fn first(generation: &Generation) -> Result<Self> {
        let mut matcher = generation.constraint.as_ref().map(Grammar::matcher);
        Self::after(matcher.as_mut(), generation, &[])
    }

    /// The tokens that may follow `chosen`, which the matcher has accepted.
    fn after(
        matcher: Option<&mut Matcher>,
        generation: &Generation,
        chosen: &[u32],
    ) -> Result<Self> {
        let constrained = matcher.map_or(Ok(Self::Any), Self::next)?;
        let rules = generation.rules.as_ref();
        let Some(ruled) = rules.and_then(|rules| rules.mask(&generation.stop_ids, chosen)) else {
            return Ok(constrained);
        };
        let mask = match constrained {
            Self::Any => ruled,
            Self::OneOf(mut mask) => {
                mask.intersect(&ruled);
                mask
            }
            Self::Nothing => return Ok(Self::Nothing),
        };
        if mask.is_empty() {
            let position = chosen.len();
            return Err(Error::GrammarDeadEnd { position });
        }
        Ok(Self::OneOf(mask))
    }

    fn next(matcher: &mut Matcher) -> Result<Self> {
        Ok(match matcher.next()? {
            Next::Free => Self::Any,
            // The copy is small compared to a row of logits, and it frees the matcher.
            Next::OneOf(mask) => Self::OneOf(mask.clone()),
            Next::Finished => Self::Nothing,
        })
    }

    /// The mask over the next token, if there is one.
    pub(super) fn mask(allowed: &Result<Self>) -> Option<&TokenMask> {
        match allowed {
            Ok(Self::OneOf(mask)) => Some(mask),
            _ => None,
        }
    }
}

/// The limits of the next token of a candidate.
pub(super) struct Limits<'a> {
    matcher: Option<&'a mut Matcher>,
    generation: &'a Generation,
    chosen: &'a [u32],
}

impl Limits<'_> {
    /// The tokens that may come next. Expensive, so it should run while the device computes.
    pub(super) fn allowed(self) -> Result<Allowed> {
        Allowed::after(self.matcher, self.generation, self.chosen)
    }
}

/// A candidate. Once its last event is sent, or its reader is gone, it is closed.
pub(super) struct Candidate {
    generation: Rc<Generation>,
    /// Its index among the candidates of its prompt.
    index: u32,
    events: EventSender,
    /// Created for the first token, because a candidate may wait for a long time.
    sampler: Option<Sampler>,
    matcher: Option<Matcher>,
    chosen: Vec<u32>,
}

impl Candidate {
    pub(super) fn new(generation: Rc<Generation>, index: u32, events: EventSender) -> Self {
        Self {
            generation,
            index,
            events,
            sampler: None,
            matcher: None,
            chosen: Vec::new(),
        }
    }

    pub(super) fn generation(&self) -> &Rc<Generation> {
        &self.generation
    }

    /// Tokens chosen so far.
    pub(super) fn chosen(&self) -> &[u32] {
        &self.chosen
    }

    /// Events the reader has room for; 0 pauses the candidate.
    pub(super) fn room(&self) -> usize {
        self.events.room()
    }

    pub(super) fn is_closed(&self) -> bool {
        self.events.is_closed()
    }

    /// Records how many tokens of the prompt came from the cache.
    pub(super) fn note_cached(&self, prompt_tokens: usize) {
        self.events.note_cached(prompt_tokens);
    }

    /// Sends the prompt's scores.
    pub(super) fn tell_scores(&self, scores: Rc<[TokenScore]>) {
        self.events.send(Event::Prompt { scores });
    }

    pub(super) fn finish(&self, reason: FinishReason) {
        self.events.send(Event::Finished { reason });
    }

    pub(super) fn fail(&self, error: Error) {
        self.events.send(Event::Failed(error));
    }

    /// The tokens that the constraint allows next. Expensive, so it should run while the device computes.
    pub(super) fn allowed(&mut self) -> Result<Allowed> {
        self.parts().1.allowed()
    }

    /// Chooses a token from its logits and sends it, and the end if this is the last one.
    pub(super) fn choose(&mut self, logits: &mut [f32], allowed: &Result<Allowed>) {
        if !self.is_closed() {
            let sampled = self.sample(logits, allowed);
            self.take(vec![sampled], allowed);
        }
    }

    /// Samples a token from its logits; [`take`](Self::take) accepts it.
    pub(super) fn sample(
        &mut self,
        logits: &mut [f32],
        allowed: &Result<Allowed>,
    ) -> Result<Sampled> {
        let scores = self.generation.scores;
        self.parts()
            .0
            .sample(logits, Allowed::mask(allowed), scores)
    }

    /// The sampler, with the temperature of the next token, and what decides about that token, to be used at the same time.
    pub(super) fn parts(&mut self) -> (&mut Sampler, Limits<'_>) {
        let Self {
            generation,
            index,
            sampler,
            matcher,
            chosen,
            ..
        } = self;
        let sampler = sampler.get_or_insert_with(|| {
            Sampler::new(&generation.sampling, *index, generation.prompt.ids())
        });
        let grammar = generation.constraint.as_ref();
        let matcher = grammar.map(|grammar| matcher.get_or_insert_with(|| grammar.matcher()));
        if grammar.is_some_and(Grammar::may_set_temperatures)
            && let Some(matcher) = &matcher
        {
            let temperature = matcher.temperature();
            sampler.set_temperature(temperature.unwrap_or(generation.sampling.temperature));
        }
        let limits = Limits {
            matcher,
            generation,
            chosen,
        };
        (sampler, limits)
    }

    /// For each position of a step that feeds `draft` after the token chosen last: a sampler, and what may come there if
    /// the draft is right up to it.
    pub(super) fn forks(&mut self, draft: &[u32]) -> Vec<Sampler> {
        let (sampler, _) = self.parts();
        let mut samplers = vec![sampler.fork()];
        for id in draft {
            let mut next = samplers[samplers.len() - 1].fork();
            next.push(*id);
            samplers.push(next);
        }
        samplers
    }

    /// The tokens that may come at each of these positions. The list ends after a token that may not come.
    pub(super) fn allowed_along(&self, draft: &[u32]) -> Vec<Result<Allowed>> {
        let generation = &self.generation;
        let matcher = || generation.constraint.as_ref().map(Grammar::matcher);
        let mut matcher = self.matcher.as_ref().map(Matcher::fork).or_else(matcher);
        let mut chosen = self.chosen.clone();
        let mut allowed = vec![Allowed::after(matcher.as_mut(), generation, &chosen)];
        for &id in draft {
            if let Some(Err(_)) = matcher.as_mut().map(|it| it.accept(id)) {
                break;
            }
            chosen.push(id);
            allowed.push(Allowed::after(matcher.as_mut(), generation, &chosen));
        }
        allowed
    }

    /// At most `most` tokens that the constraint forces next, in a likely division of the text that it forces.
    pub(super) fn forced(&self, most: usize) -> Vec<u32> {
        match &self.matcher {
            Some(matcher) if most > 0 => matcher.forced(most),
            _ => Vec::new(),
        }
    }

    /// Accepts a token that the device chose with a fork of the sampler, which replaces the sampler.
    pub(super) fn take_forked(
        &mut self,
        sampler: Sampler,
        sampled: Result<Sampled>,
        allowed: &Result<Allowed>,
    ) {
        self.sampler = Some(sampler);
        self.take(vec![sampled], allowed);
    }

    /// Accepts tokens that the model chose, up to the end of the completion, and sends them.
    /// `allowed` is what the constraint allowed as the first token.
    pub(super) fn take(&mut self, sampled: Vec<Result<Sampled>>, allowed: &Result<Allowed>) {
        if self.is_closed() {
            return;
        }
        match self.try_take(sampled, allowed) {
            Ok(None) => {}
            Ok(Some(reason)) => self.finish(reason),
            Err(error) => self.fail(at_position(error, self.chosen.len())),
        }
    }

    fn try_take(
        &mut self,
        sampled: Vec<Result<Sampled>>,
        allowed: &Result<Allowed>,
    ) -> Result<Option<FinishReason>> {
        match allowed {
            Err(error) => return Err(error.clone()),
            Ok(Allowed::Nothing) => return Ok(Some(FinishReason::Stop)),
            Ok(Allowed::Any | Allowed::OneOf(_)) => {}
        }
        for sampled in sampled {
            let Sampled { id, score } = sampled?;
            if let Some(reason) = self.accept(id, score)? {
                return Ok(Some(reason));
            }
        }
        Ok(None)
    }

    /// Accepts a chosen token and sends it. Performs the checks of specification 6.1 that need no
    /// text, in their order.
    ///
    /// Whether the constraint is finished is checked before the next token is sampled. It is checked at
    /// once only after the last token, to report the reason.
    pub(super) fn accept(
        &mut self,
        id: u32,
        score: Option<TokenScore>,
    ) -> Result<Option<FinishReason>> {
        self.chosen.push(id);
        let score = score.map(Box::new);
        self.events.send(Event::Token { id, score });
        if self.generation.stop_ids.contains(&id) {
            return Ok(Some(FinishReason::Stop));
        }
        if let Some(matcher) = self.matcher() {
            matcher.accept(id)?;
        }
        if self.chosen.len() < self.generation.max_tokens {
            return Ok(None);
        }
        let is_over = match self.matcher() {
            Some(matcher) => Allowed::next(matcher)? == Allowed::Nothing,
            None => false,
        };
        Ok(Some(match is_over {
            true => FinishReason::Stop,
            false => FinishReason::Length,
        }))
    }

    fn matcher(&mut self) -> Option<&mut Matcher> {
        let grammar = self.generation.constraint.as_ref()?;
        Some(self.matcher.get_or_insert_with(|| grammar.matcher()))
    }
}

/// The error with the index of the token that was to be chosen.
pub(super) fn at_position(error: Error, position: usize) -> Error {
    match error {
        Error::InvalidLogits { .. } => Error::InvalidLogits { position },
        Error::GrammarDeadEnd { .. } => Error::GrammarDeadEnd { position },
        error => error,
    }
}
