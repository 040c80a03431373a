//! A model without weights: its logits are a hash of the history it reads back from its pages, so
//! a wrong block table, a page in two hands or a wrong rollback changes what it says. So does the
//! kind of step that fed a token, if the test wants it: a small one or not.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use super::super::event::{Event, FinishReason};
use super::super::generation::{Generation, TokenScore};
use super::super::wake::yield_now;
use crate::grammar::{Grammar, Matcher, Next};
use crate::model::causal::{CausalModel, SampledRow, SequenceKv, feed_sampled_on_host};
use crate::sample::{Sampled, Sampler, SamplingParams, ScoreRequest, TokenMask};
use crate::{Error, Result};

pub(super) const VOCAB: usize = 50;
/// Added to a token in the pages that a small step fed.
const FED_BY_FEW: u32 = 1000;

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
    Feed,
    Batch,
    Score,
    Greedy { steps: usize },
    Sampled { steps: usize },
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
    /// One history in so many.
    OneIn(u64),
}

/// What a test sees of the model and does to it while the engine owns it.
#[derive(Default)]
pub(super) struct Controls {
    pub(super) calls: RefCell<Vec<Call>>,
    /// Pages copied.
    pub(super) copies: Cell<usize>,
    /// Errors of the calls with these indices.
    pub(super) fail_at: RefCell<Vec<(usize, Error)>>,
    /// Every copy fails.
    pub(super) copies_fail: Cell<bool>,
    /// The call with this index says too little.
    pub(super) cheat_at: Cell<Option<usize>>,
    pub(super) poison: RefCell<Poison>,
    /// How often each call gives way before it answers.
    pub(super) suspensions: Cell<usize>,
}

pub(super) struct FakeModel {
    pub(super) context_tokens: usize,
    pub(super) max_batch: usize,
    pub(super) few_tokens: usize,
    /// It chooses by itself, as a device does, for those of which no more than two best are asked.
    pub(super) chooses: bool,
    pages: Vec<Vec<Option<u32>>>,
    pub(super) controls: Rc<Controls>,
}

impl FakeModel {
    pub(super) fn new(context_tokens: usize, page_count: usize, page_tokens: usize) -> Self {
        Self {
            context_tokens,
            max_batch: 4,
            few_tokens: 0,
            chooses: false,
            pages: vec![vec![None; page_tokens]; page_count],
            controls: Rc::default(),
        }
    }

    /// Counts the call, suspends it, and fails it if the test wants so; says whether to cheat.
    async fn enter(&self, kind: Kind, rows: &[(&SequenceKv, &[u32])]) -> Result<bool> {
        for _ in 0..self.controls.suspensions.get() {
            yield_now().await;
        }
        let fed = rows[0].1.len();
        assert!(fed > 0, "the trait asks for at least one");
        let owner = |(kv, tokens): &(&SequenceKv, &[u32])| match kv.len_tokens {
            0 => tokens[0],
            _ => self.read(kv, 1)[0] % FED_BY_FEW,
        };
        let owners = rows.iter().map(owner).collect();
        let mut calls = self.controls.calls.borrow_mut();
        calls.push(Call { kind, owners, fed });
        let call = calls.len() - 1;
        let failures = self.controls.fail_at.borrow();
        match failures.iter().find(|(at, _)| *at == call) {
            Some((_, error)) => Err(error.clone()),
            None => Ok(self.controls.cheat_at.get() == Some(call)),
        }
    }

    /// Writes tokens of a step of `fed`.
    fn write(&mut self, kv: &mut SequenceKv, token: u32, fed: usize) {
        let token = match fed <= self.few_tokens {
            true => token + FED_BY_FEW,
            false => token,
        };
        let page_tokens = self.page_tokens();
        let page = kv.pages[kv.len_tokens / page_tokens] as usize;
        self.pages[page][kv.len_tokens % page_tokens] = Some(token);
        kv.len_tokens += 1;
    }

    /// The first `len_tokens` tokens as the block table shows them.
    pub(super) fn read(&self, kv: &SequenceKv, len_tokens: usize) -> Vec<u32> {
        let page_tokens = self.page_tokens();
        (0..len_tokens)
            .map(|position| {
                let page = kv.pages[position / page_tokens] as usize;
                self.pages[page][position % page_tokens].expect("read before written")
            })
            .collect()
    }

    fn logits(&self, kv: &SequenceKv) -> Vec<f32> {
        let history = self.read(kv, kv.len_tokens);
        logits(&history, &self.controls.poison.borrow())
    }
}

impl CausalModel for FakeModel {
    fn vocab_size(&self) -> usize {
        VOCAB
    }

    fn context_tokens(&self) -> usize {
        self.context_tokens
    }

    fn page_tokens(&self) -> usize {
        self.pages.first().map_or(1, Vec::len)
    }

    fn page_count(&self) -> usize {
        self.pages.len()
    }

    fn max_batch(&self) -> usize {
        self.max_batch
    }

    fn few_tokens(&self) -> usize {
        self.few_tokens
    }

    fn chooses(&self, _: &SamplingParams, score: Option<ScoreRequest>) -> bool {
        self.chooses && score.is_none_or(|score| score.top <= 2)
    }

    async fn prefill(&mut self, kv: &mut SequenceKv, tokens: &[u32]) -> Result<()> {
        self.enter(Kind::Prefill, &[(kv, tokens)]).await?;
        for &token in tokens {
            self.write(kv, token, tokens.len());
        }
        Ok(())
    }

    async fn feed(&mut self, kv: &mut SequenceKv, tokens: &[u32]) -> Result<Vec<f32>> {
        let cheats = self.enter(Kind::Feed, &[(kv, tokens)]).await?;
        for &token in tokens {
            self.write(kv, token, tokens.len());
        }
        let mut logits = self.logits(kv);
        if cheats {
            logits.pop();
        }
        Ok(logits)
    }

    async fn feed_batch(&mut self, rows: &mut [(&mut SequenceKv, u32)]) -> Result<Vec<Vec<f32>>> {
        assert!((1..=self.max_batch).contains(&rows.len()));
        let seen: Vec<_> = rows
            .iter()
            .map(|(kv, token)| (&**kv, std::slice::from_ref(token)))
            .collect();
        let cheats = self.enter(Kind::Batch, &seen).await?;
        for (at, (kv, _)) in seen.iter().enumerate() {
            let written = kv.pages[kv.len_tokens / self.page_tokens()];
            let mut others = seen.iter().enumerate().filter(|&(other, _)| other != at);
            assert!(
                others.all(|(_, (other, _))| !other.pages.contains(&written)),
                "a page that is written belongs to one sequence"
            );
        }
        let mut logits = vec![];
        for (kv, token) in rows {
            self.write(kv, *token, 1);
            logits.push(self.logits(kv));
        }
        if cheats {
            logits.pop();
        }
        Ok(logits)
    }

    async fn score(
        &mut self,
        kv: &mut SequenceKv,
        tokens: &[u32],
        next: &[u32],
        top: usize,
    ) -> Result<Vec<TokenScore>> {
        let cheats = self.enter(Kind::Score, &[(kv, tokens)]).await?;
        assert_eq!(tokens.len(), next.len());
        let mut scores = vec![];
        for (&token, &next) in tokens.iter().zip(next) {
            self.write(kv, token, tokens.len());
            scores.push(score(&self.read(kv, kv.len_tokens), next, top));
        }
        if cheats {
            scores.pop();
        }
        Ok(scores)
    }

    fn copy_page(&mut self, from: u32, to: u32) -> Result<()> {
        if self.controls.copies_fail.get() {
            return Err(Error::OutOfMemory("no copy".into()));
        }
        self.controls.copies.set(self.controls.copies.get() + 1);
        self.pages[to as usize] = self.pages[from as usize].clone();
        Ok(())
    }

    async fn feed_sampled(
        &mut self,
        rows: &mut [SampledRow<'_>],
        steps: usize,
        masks: impl FnOnce() -> Vec<Option<TokenMask>>,
    ) -> Result<Vec<Vec<Result<Sampled>>>> {
        let by_itself = |row: &SampledRow| self.chooses(row.sampler.params(), row.score);
        if !rows.iter().all(by_itself) {
            assert!(!rows.iter().any(by_itself), "rows are alike");
            assert_eq!(steps, 1, "the host does not run ahead");
            return feed_sampled_on_host(self, rows, steps, masks).await;
        }
        assert!((1..=self.max_batch).contains(&rows.len()) && steps > 0);
        let seen: Vec<_> = rows
            .iter()
            .map(|row| (&*row.kv, std::slice::from_ref(&row.token)))
            .collect();
        let cheats = self.enter(Kind::Sampled { steps }, &seen).await?;
        let masks = masks();
        assert!(steps == 1 || masks.iter().all(Option::is_none));
        let masks = masks.iter().map(Option::as_ref);
        let mut chosen = vec![];
        for (row, mask) in rows.iter_mut().zip(masks.chain(std::iter::repeat(None))) {
            let (mut results, mut token) = (vec![], row.token);
            for _ in 0..steps {
                self.write(row.kv, token, 1);
                if results.last().is_none_or(Result::is_ok) {
                    let mut logits = self.logits(row.kv);
                    let sampled = row.sampler.sample(&mut logits, mask, row.score);
                    token = sampled.as_ref().map_or(token, |sampled| sampled.id);
                    results.push(sampled);
                }
            }
            chosen.push(results);
        }
        if cheats {
            chosen.pop();
        }
        Ok(chosen)
    }

    async fn feed_greedy(
        &mut self,
        kv: &mut SequenceKv,
        tokens: &[u32],
        steps: usize,
    ) -> Result<Vec<u32>> {
        assert!(steps > 0, "the trait asks for at least one");
        let cheats = self.enter(Kind::Greedy { steps }, &[(kv, tokens)]).await?;
        for &token in tokens {
            self.write(kv, token, tokens.len());
        }
        let mut ids = vec![];
        let mut invalid = None;
        for position in 0..steps {
            if let Some(&id) = ids.last() {
                self.write(kv, id, 1);
            }
            let logits = self.logits(kv);
            if logits.iter().any(|z| z.is_nan()) {
                invalid.get_or_insert(position);
            }
            ids.push(argmax(&logits));
        }
        if let Some(position) = invalid {
            return Err(Error::InvalidLogits { position });
        }
        if cheats {
            ids.pop();
        }
        Ok(ids)
    }
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

/// What a candidate must tell, computed without engine, pages, chunks or batches.
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
        let scores = (1..prompt.len()).map(|at| score(&prompt[..at], prompt[at], top));
        let scores = scores.collect();
        events.push(Event::Prompt { scores });
    }
    let mut sampler = Sampler::new(&generation.sampling, candidate, prompt);
    let mut matcher = generation.constraint.as_ref().map(Grammar::matcher);
    let mut history = prompt.to_vec();
    for position in 0..(*max_tokens).min(context_tokens - prompt.len()) {
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
