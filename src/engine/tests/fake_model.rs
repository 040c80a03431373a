//! A model without weights. Its logits are a hash of the history that it reads back from its pages, so a
//! wrong block table, a page written by two sequences or a wrong rollback changes its output. If the
//! test asks for it, the kind of step that fed a token (small or not) changes the output too. With
//! states, each call checks that the state is that of the history.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use super::super::event::{Event, FinishReason};
use super::super::generation::{Content, Generation, TokenScore};
use super::super::model::{
    CausalModel, Chooser, Input, InputEmbeddings, KnownText, Masks, MemoryCopy, ModelLimits, Row,
    RowSampler, SequenceMemory, StepOutput,
};
use super::super::wake::yield_now;
use crate::grammar::{Grammar, Matcher, Next};
use crate::sample::{Sampled, Sampler, SamplingParams, ScoreRequest, TokenMask};
use crate::{Error, Result};

pub(super) const VOCAB: usize = 50;
/// Added to a token in the pages that a small step fed.
const FED_BY_FEW: u32 = 1000;
/// Values of a row of embeddings.
pub(super) const EMBEDDING_WIDTH: usize = 2;
/// The numbers that stand for embeddings in the pages start here.
const EMBEDDED: u32 = 100;

/// One call of the model. `owners` are the first tokens of the sequences' histories.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Call {
    pub(super) kind: Kind,
    pub(super) owners: Vec<u32>,
    /// Tokens of each sequence.
    pub(super) fed: usize,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Kind {
    Prefill,
    /// The host chooses.
    Host,
    Score,
    Greedy {
        steps: usize,
    },
    Sampled {
        steps: usize,
    },
    /// Verifies a draft.
    Verify,
    /// Drafts tokens.
    Draft,
}

impl Call {
    /// Tokens that the model chose for each sequence.
    pub(super) fn steps(&self) -> Option<usize> {
        match self.kind {
            Kind::Greedy { steps } | Kind::Sampled { steps } => Some(steps),
            _ => None,
        }
    }
}

/// Histories after which the logits hold NaN.
#[derive(Debug, Clone, Default)]
pub(super) enum Poison {
    #[default]
    None,
    After(Vec<u32>),
    /// One in this many histories.
    OneIn(u64),
}

/// Lets a test observe and control the model while the engine owns it.
#[derive(Default)]
pub(super) struct Controls {
    pub(super) calls: RefCell<Vec<Call>>,
    /// Pages copied.
    pub(super) copies: Cell<usize>,
    /// States copied.
    pub(super) state_copies: Cell<usize>,
    /// Errors of the calls with these indices.
    pub(super) fail_at: RefCell<Vec<(usize, Error)>>,
    /// Every copy fails.
    pub(super) copies_fail: Cell<bool>,
    /// The call with this index returns too little.
    pub(super) cheat_at: Cell<Option<usize>>,
    pub(super) poison: RefCell<Poison>,
    /// The number of times that each call yields before it returns.
    pub(super) suspensions: Cell<usize>,
}

pub(super) struct FakeModel {
    pub(super) context_tokens: usize,
    pub(super) max_batch: usize,
    pub(super) few_tokens: usize,
    /// Whether it chooses with samplers, as a device does, if at most two best tokens are requested.
    pub(super) samples: bool,
    /// Whether it drafts: each token of which this number is a divisor of the position is wrong.
    pub(super) wrong_drafts: Option<usize>,
    pub(super) takes_embeddings: bool,
    /// Whether an input must have whole images.
    pub(super) whole_images: bool,
    pages: Vec<Vec<Option<u32>>>,
    /// The history that each state slot was fed.
    states: Vec<Vec<u32>>,
    pub(super) controls: Rc<Controls>,
}

impl FakeModel {
    pub(super) fn new(context_tokens: usize, page_count: usize, page_tokens: usize) -> Self {
        Self {
            context_tokens,
            max_batch: 4,
            few_tokens: 0,
            samples: false,
            wrong_drafts: None,
            takes_embeddings: true,
            whole_images: false,
            pages: vec![vec![None; page_tokens]; page_count],
            states: vec![],
            controls: Rc::default(),
        }
    }

    /// The same with recurrent layers.
    pub(super) fn with_states(mut self, slots: usize) -> Self {
        self.states = vec![vec![]; slots];
        self
    }

    /// Records the call, suspends it, and fails it if the test asks for that; returns whether to
    /// return too little.
    async fn enter(&mut self, kind: Kind, rows: &[(&SequenceMemory, Input<'_>)]) -> Result<bool> {
        for _ in 0..self.controls.suspensions.get() {
            yield_now().await;
        }
        let fed = rows[0].1.ids().len();
        assert!(fed > 0, "the trait asks for at least one");
        for (_, input) in rows.iter().filter(|_| self.whole_images) {
            for it in input.embeddings() {
                let is_image = matches!(it.embeddings.content, Content::Pixels(_));
                assert!(
                    !is_image || it.rows == (0..it.embeddings.positions),
                    "a part of an image"
                );
            }
        }
        let owner = |(memory, input): &(&SequenceMemory, Input)| match memory.len_tokens {
            0 => fed_ids(*input)[0],
            _ => self.read(memory, 1)[0] % FED_BY_FEW,
        };
        let owners = rows.iter().map(owner).collect();
        let mut calls = self.controls.calls.borrow_mut();
        calls.push(Call { kind, owners, fed });
        let call = calls.len() - 1;
        for (at, (memory, _)) in rows.iter().enumerate() {
            assert_eq!(memory.state.is_some(), !self.states.is_empty());
            let Some(slot) = memory.state else { continue };
            let mut others = rows[..at].iter();
            assert!(
                others.all(|(other, _)| other.state != Some(slot)),
                "a state of its own"
            );
            if memory.len_tokens > 0 {
                let history = self.read(memory, memory.len_tokens);
                assert_eq!(
                    self.states[slot as usize], history,
                    "the state of its history"
                );
            }
        }
        let failures = self.controls.fail_at.borrow();
        match failures.iter().find(|(at, _)| *at == call) {
            Some((_, error)) => {
                // States are undefined after a call that fails.
                for slot in rows.iter().filter_map(|(memory, _)| memory.state) {
                    self.states[slot as usize] = vec![u32::MAX];
                }
                Err(error.clone())
            }
            None => Ok(self.controls.cheat_at.get() == Some(call)),
        }
    }

    /// Writes a token of a step that feeds `fed` tokens.
    fn write(&mut self, memory: &mut SequenceMemory, token: u32, fed: usize) {
        let token = match fed <= self.few_tokens {
            true => token + FED_BY_FEW,
            false => token,
        };
        let page_tokens = self.page_tokens();
        let page = memory.pages[memory.len_tokens / page_tokens] as usize;
        self.pages[page][memory.len_tokens % page_tokens] = Some(token);
        if let Some(slot) = memory.state {
            let state = &mut self.states[slot as usize];
            if memory.len_tokens == 0 {
                state.clear();
            }
            state.push(token);
        }
        memory.len_tokens += 1;
    }

    fn page_tokens(&self) -> usize {
        self.pages.first().map_or(1, Vec::len)
    }

    /// The first `len_tokens` tokens as the block table shows them.
    pub(super) fn read(&self, memory: &SequenceMemory, len_tokens: usize) -> Vec<u32> {
        let page_tokens = self.page_tokens();
        (0..len_tokens)
            .map(|position| {
                let page = memory.pages[position / page_tokens] as usize;
                self.pages[page][position % page_tokens].expect("read before written")
            })
            .collect()
    }

    fn logits(&self, memory: &SequenceMemory) -> Vec<f32> {
        let history = self.read(memory, memory.len_tokens);
        logits(&history, &self.controls.poison.borrow())
    }
}

impl FakeModel {
    /// Records a step of these rows and checks that no row writes a page of another.
    async fn enter_step(&mut self, kind: Kind, rows: &[Row<'_>]) -> Result<bool> {
        assert!((1..=self.max_batch).contains(&rows.len()));
        assert!(rows.len() == 1 || rows.iter().all(|row| row.input.ids().len() == 1));
        let seen: Vec<_> = rows.iter().map(|row| (&*row.memory, row.input)).collect();
        let cheats = self.enter(kind, &seen).await?;
        for (at, (memory, _)) in seen.iter().enumerate() {
            let written = memory.pages[memory.len_tokens / self.page_tokens()];
            let mut others = seen.iter().enumerate().filter(|&(other, _)| other != at);
            assert!(
                others.all(|(_, (other, _))| !other.pages.contains(&written)),
                "a page that is written belongs to one sequence"
            );
        }
        Ok(cheats)
    }

    fn feed(&mut self, row: &mut Row<'_>) {
        let ids = fed_ids(row.input);
        for &token in &ids {
            self.write(row.memory, token, ids.len());
        }
    }

    async fn greedy(&mut self, rows: &mut [Row<'_>], steps: usize) -> Result<StepOutput> {
        assert!(steps > 0, "the trait asks for at least one");
        assert_eq!(rows.len(), 1, "greedy steps are of one row");
        let cheats = self.enter_step(Kind::Greedy { steps }, rows).await?;
        self.feed(&mut rows[0]);
        let memory = &mut *rows[0].memory;
        let mut chosen = vec![];
        for position in 0..steps {
            if let Some(Ok(Sampled { id, .. })) = chosen.last() {
                self.write(memory, *id, 1);
            }
            let logits = self.logits(memory);
            if logits.iter().any(|z| z.is_nan()) {
                chosen.push(Err(Error::InvalidLogits { position }));
                memory.len_tokens += steps - 1 - position;
                break;
            }
            let id = argmax(&logits);
            chosen.push(Ok(Sampled { id, score: None }));
        }
        if cheats {
            chosen.pop();
        }
        Ok(StepOutput::Chosen(vec![chosen]))
    }

    async fn sampled(
        &mut self,
        rows: &mut [Row<'_>],
        samplers: Vec<RowSampler<'_>>,
        steps: usize,
        masks: Masks<'_>,
    ) -> Result<StepOutput> {
        assert_eq!(rows.len(), samplers.len());
        let accepts = |row: &RowSampler| self.samples(row.sampler.params(), row.score);
        assert!(steps > 0 && samplers.iter().all(accepts));
        let cheats = self.enter_step(Kind::Sampled { steps }, rows).await?;
        let masks = masks();
        assert!(steps == 1 || masks.iter().all(Option::is_none));
        let masks = masks.iter().map(Option::as_ref);
        let masks = masks.chain(std::iter::repeat(None));
        let mut chosen = vec![];
        for ((row, RowSampler { sampler, score }), mask) in rows.iter_mut().zip(samplers).zip(masks)
        {
            let (mut results, mut token) = (vec![], row.input.ids()[0]);
            for _ in 0..steps {
                self.write(row.memory, token, 1);
                if results.last().is_none_or(Result::is_ok) {
                    let mut logits = self.logits(row.memory);
                    let sampled = sampler.sample(&mut logits, mask, score);
                    token = sampled.as_ref().map_or(token, |sampled| sampled.id);
                    results.push(sampled);
                }
            }
            chosen.push(results);
        }
        if cheats {
            chosen.pop();
        }
        Ok(StepOutput::Chosen(chosen))
    }
}

impl CausalModel for FakeModel {
    fn limits(&self) -> ModelLimits {
        ModelLimits {
            vocab_size: VOCAB,
            context_tokens: self.context_tokens,
            page_tokens: self.page_tokens(),
            page_count: self.pages.len(),
            max_batch: self.max_batch,
            few_tokens: self.few_tokens,
            state_slots: self.states.len(),
            embedding_width: self.takes_embeddings.then_some(EMBEDDING_WIDTH),
            whole_images: self.whole_images,
        }
    }

    fn samples(&self, _: &SamplingParams, score: Option<ScoreRequest>) -> bool {
        self.samples && score.is_none_or(|score| score.top <= 2)
    }

    async fn prefill(&mut self, memory: &mut SequenceMemory, input: Input<'_>) -> Result<()> {
        self.enter(Kind::Prefill, &[(memory, input)]).await?;
        self.feed(&mut Row { memory, input });
        Ok(())
    }

    async fn step(&mut self, rows: &mut [Row<'_>], chooser: Chooser<'_>) -> Result<StepOutput> {
        match chooser {
            Chooser::Greedy { steps } => self.greedy(rows, steps).await,
            Chooser::Samplers {
                steps,
                samplers,
                masks,
            } => self.sampled(rows, samplers, steps, masks).await,
            Chooser::Host => {
                let cheats = self.enter_step(Kind::Host, rows).await?;
                let is_prompt = rows[0].input.ids().len() > 1;
                let mut logits = vec![];
                for row in rows {
                    self.feed(row);
                    logits.push(self.logits(row.memory));
                }
                match cheats {
                    true if is_prompt => logits[0].truncate(VOCAB - 1),
                    true => logits.truncate(logits.len() - 1),
                    false => {}
                }
                Ok(StepOutput::Logits(logits))
            }
        }
    }

    fn verified_rows(&self) -> usize {
        match self.few_tokens {
            0 => 8,
            few => few,
        }
    }

    async fn verify(&mut self, row: Row<'_>, chooser: Chooser<'_>) -> Result<StepOutput> {
        let fed = row.input.ids().len();
        assert!((1..=self.verified_rows()).contains(&fed));
        let cheats = self
            .enter(Kind::Verify, &[(&*row.memory, row.input)])
            .await?;
        let mut logits = vec![];
        for &token in row.input.ids() {
            self.write(row.memory, token, 1);
            logits.push(self.logits(row.memory));
        }
        if cheats {
            logits.pop();
        }
        let (samplers, masks) = match chooser {
            Chooser::Host => return Ok(StepOutput::Logits(logits)),
            Chooser::Greedy { .. } => panic!("the trait excludes it"),
            Chooser::Samplers {
                steps,
                samplers,
                masks,
            } => {
                assert_eq!((steps, samplers.len()), (1, fed));
                (samplers, masks())
            }
        };
        let masks = masks.iter().map(Option::as_ref);
        let masks = masks.chain(std::iter::repeat(None));
        let rows = logits.iter_mut().zip(samplers).zip(masks);
        let chosen = rows.map(|((logits, RowSampler { sampler, score }), mask)| {
            assert!(self.samples(sampler.params(), score));
            vec![sampler.sample(logits, mask, score)]
        });
        Ok(StepOutput::Chosen(chosen.collect()))
    }

    fn drafts(&self) -> bool {
        self.wrong_drafts.is_some()
    }

    async fn draft(
        &mut self,
        memory: &SequenceMemory,
        text: KnownText<'_>,
        count: usize,
    ) -> Result<Vec<u32>> {
        let mut history = text.after(0);
        let last = &history[memory.len_tokens..];
        assert_eq!(last.len(), 1, "one token is not fed");
        let pages = memory.pages.len() * self.page_tokens();
        assert!(memory.len_tokens + count < pages, "pages for the draft");
        let input = Input::tokens(last);
        let cheats = self.enter(Kind::Draft, &[(memory, input)]).await?;
        let fed = self.read(memory, memory.len_tokens);
        let plain: Vec<u32> = fed.iter().map(|id| id % FED_BY_FEW).collect();
        assert_eq!(plain, history[..memory.len_tokens], "the fed tokens");
        let wrong = self.wrong_drafts.unwrap_or(1);
        let begin = history.len();
        while history.len() < begin + count {
            let id = argmax(&logits(&history, &Poison::None));
            let is_wrong = history.len().is_multiple_of(wrong);
            history.push((id + u32::from(is_wrong)) % VOCAB as u32);
        }
        history.drain(..begin);
        if cheats {
            history.push(0);
        }
        Ok(history)
    }

    async fn score(
        &mut self,
        memory: &mut SequenceMemory,
        tokens: &[u32],
        next: &[u32],
        top: usize,
    ) -> Result<Vec<TokenScore>> {
        let cheats = self
            .enter(Kind::Score, &[(memory, Input::tokens(tokens))])
            .await?;
        assert_eq!(tokens.len(), next.len());
        let mut scores = vec![];
        for (&token, &next) in tokens.iter().zip(next) {
            self.write(memory, token, tokens.len());
            scores.push(score(&self.read(memory, memory.len_tokens), next, top));
        }
        if cheats {
            scores.pop();
        }
        Ok(scores)
    }

    fn copy(&mut self, copy: MemoryCopy) -> Result<()> {
        if self.controls.copies_fail.get() {
            return Err(Error::OutOfMemory("no copy".into()));
        }
        match copy {
            MemoryCopy::Page { from, to } => {
                self.controls.copies.set(self.controls.copies.get() + 1);
                self.pages[to as usize] = self.pages[from as usize].clone();
            }
            MemoryCopy::State { from, to } => {
                assert_ne!(from, to);
                self.controls
                    .state_copies
                    .set(self.controls.state_copies.get() + 1);
                self.states[to as usize] = self.states[from as usize].clone();
            }
        }
        Ok(())
    }
}

/// The content of the pages for an input: its ids, and a number computed from the values of each row of
/// embeddings.
fn fed_ids(input: Input<'_>) -> Vec<u32> {
    let mut ids = input.ids().to_vec();
    for InputEmbeddings {
        at,
        embeddings,
        rows,
    } in input.embeddings()
    {
        let values = match &embeddings.content {
            Content::Rows(values) => values.clone(),
            Content::Pixels(pixels) => {
                let values = 0..embeddings.positions * EMBEDDING_WIDTH;
                values
                    .map(|i| -f32::from(pixels.rgb[0]) - i as f32)
                    .collect()
            }
        };
        let values = values.chunks_exact(EMBEDDING_WIDTH).skip(rows.start);
        for (id, row) in ids[at].iter_mut().zip(values) {
            let [a, b] = [row[0], row[1]].map(|value| u64::from(value.to_bits()));
            *id = EMBEDDED + (mix(mix(1, a), b) % 1_000_000) as u32 * (2 * FED_BY_FEW);
        }
    }
    ids
}

fn argmax(logits: &[f32]) -> u32 {
    let ids = 0..logits.len();
    ids.rev()
        .max_by(|&a, &b| logits[a].total_cmp(&logits[b]))
        .unwrap() as u32
}

fn mix(hash: u64, value: u64) -> u64 {
    let mixed = (hash ^ value).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    mixed ^ mixed >> 29
}

fn hash(history: &[u32]) -> u64 {
    let tokens = history.iter();
    tokens.fold(1, |hash, &token| mix(hash, u64::from(token) + 1))
}

/// Logits in [-4, 4) that depend on every token of the history and its place.
fn logits(history: &[u32], poison: &Poison) -> Vec<f32> {
    let hash = hash(history);
    let mut logits: Vec<f32> = (0..VOCAB as u64)
        .map(|id| (mix(mix(hash, id), 77) % 1024) as f32 / 128.0 - 4.0)
        .collect();
    let is_poisoned = match poison {
        Poison::None => false,
        Poison::After(poisoned) => poisoned == history,
        Poison::OneIn(count) => mix(hash, 78).is_multiple_of(*count),
    };
    if is_poisoned {
        logits[7] = f32::NAN;
    }
    logits
}

/// A score that depends on the history, the token and what was asked.
fn score(history: &[u32], id: u32, top: usize) -> TokenScore {
    let logits = logits(history, &Poison::None);
    let logprob = logits[id as usize] - 10.0;
    let top = logits[..top].iter().zip(0..);
    TokenScore {
        id,
        logprob,
        raw_logprob: logprob,
        top: top.map(|(&z, id)| (id, z)).collect(),
    }
}

/// The events that a candidate must get, computed without engine, pages, chunks or batches.
pub(super) fn expected(
    generation: &Generation,
    candidate: u32,
    context_tokens: usize,
    poison: &Poison,
) -> Vec<Event> {
    let Generation {
        prompt, max_tokens, ..
    } = generation;
    let mut events = vec![];
    if let Some(top) = generation.prompt_scores {
        let prompt = prompt.ids();
        let scores = (1..prompt.len()).map(|at| score(&prompt[..at], prompt[at], top));
        let scores = scores.collect();
        events.push(Event::Prompt { scores });
    }
    let mut sampler = Sampler::new(&generation.sampling, candidate, prompt.ids());
    let mut matcher = generation.constraint.as_ref().map(Grammar::matcher);
    let mut history = fed_ids(prompt.input(0..prompt.len()));
    for position in 0..(*max_tokens).min(context_tokens - prompt.len()) {
        let temperature = matcher.as_ref().and_then(Matcher::temperature);
        sampler.set_temperature(temperature.unwrap_or(generation.sampling.temperature));
        let mask = match matcher.as_mut().map_or(Ok(Next::Free), Matcher::next) {
            Ok(Next::Free) => None,
            Ok(Next::OneOf(mask)) => Some(mask.clone()),
            Ok(Next::Finished) => break,
            Err(Error::GrammarDeadEnd { .. }) => {
                events.push(Event::Failed(Error::GrammarDeadEnd { position }));
                return events;
            }
            Err(error) => panic!("{error}"),
        };
        let chosen = &history[history.len() - position..];
        let rules = generation.rules.as_ref();
        let mask = match (
            mask,
            rules.and_then(|it| it.mask(&generation.stop_ids, chosen)),
        ) {
            (Some(mut mask), Some(ruled)) => {
                mask.intersect(&ruled);
                Some(mask)
            }
            (mask, ruled) => mask.or(ruled),
        };
        if mask.as_ref().is_some_and(TokenMask::is_empty) {
            events.push(Event::Failed(Error::GrammarDeadEnd { position }));
            return events;
        }
        let mut logits = logits(&history, poison);
        let sampled = match sampler.sample(&mut logits, mask.as_ref(), generation.scores) {
            Ok(sampled) => sampled,
            Err(error) => {
                events.push(Event::Failed(error));
                return events;
            }
        };
        let id = sampled.id;
        history.push(id);
        let score = sampled.score.map(Box::new);
        events.push(Event::Token { id, score });
        if generation.stop_ids.contains(&id) {
            let reason = FinishReason::Stop;
            events.push(Event::Finished { reason });
            return events;
        }
        if let Some(matcher) = &mut matcher {
            matcher.accept(id).unwrap();
        }
    }
    let is_over = matcher.is_some_and(|mut matcher| matcher.next() == Ok(Next::Finished));
    let reason = if is_over {
        FinishReason::Stop
    } else {
        FinishReason::Length
    };
    events.push(Event::Finished { reason });
    events
}
