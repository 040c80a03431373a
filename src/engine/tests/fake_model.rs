//! A model without weights: its logits are a hash of the history it reads back from its pages, so
//! a wrong block table, a page in two hands or a wrong rollback changes what it says.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use super::super::wake::yield_now;
use crate::model::causal::{CausalModel, SequenceKv};
use crate::sample::{Sampler, SamplingParams};
use crate::{Error, Result};

pub(super) const VOCAB: usize = 50;

/// One call of the model. `owner` is the first token of the sequence's history.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Call {
    pub(super) owner: u32,
    pub(super) fed: usize,
    /// Greedy steps; `None` for `feed`.
    pub(super) steps: Option<usize>,
}

/// What a test sees of the model and does to it while the engine owns it.
#[derive(Default)]
pub(super) struct Controls {
    pub(super) calls: RefCell<Vec<Call>>,
    /// Error of the call with this index.
    pub(super) fail_at: RefCell<Option<(usize, Error)>>,
    /// The call with this index says too little.
    pub(super) cheat_at: Cell<Option<usize>>,
    /// The logits of the call with this index hold NaN.
    pub(super) nan_at: Cell<Option<usize>>,
    /// How often each call gives way before it answers.
    pub(super) suspensions: Cell<usize>,
}

pub(super) struct FakeModel {
    pub(super) context_tokens: usize,
    pages: Vec<Vec<Option<u32>>>,
    pub(super) controls: Rc<Controls>,
}

impl FakeModel {
    pub(super) fn new(context_tokens: usize, page_count: usize, page_tokens: usize) -> Self {
        Self {
            context_tokens,
            pages: vec![vec![None; page_tokens]; page_count],
            controls: Rc::default(),
        }
    }

    /// Counts the call, suspends it, and fails it if the test wants so.
    async fn enter(&self, kv: &SequenceKv, tokens: &[u32], steps: Option<usize>) -> Result<usize> {
        for _ in 0..self.controls.suspensions.get() {
            yield_now().await;
        }
        assert!(
            !tokens.is_empty() && steps != Some(0),
            "the trait asks for at least one"
        );
        let owner = if kv.len_tokens == 0 {
            tokens[0]
        } else {
            self.read(kv, 1)[0]
        };
        let mut calls = self.controls.calls.borrow_mut();
        calls.push(Call {
            owner,
            fed: tokens.len(),
            steps,
        });
        match &*self.controls.fail_at.borrow() {
            Some((call, error)) if *call == calls.len() - 1 => Err(error.clone()),
            _ => Ok(calls.len() - 1),
        }
    }

    fn write(&mut self, kv: &mut SequenceKv, token: u32) {
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
        logits(&self.read(kv, kv.len_tokens))
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

    async fn prefill(&mut self, kv: &mut SequenceKv, tokens: &[u32]) -> Result<()> {
        self.feed(kv, tokens).await.map(|_| ())
    }

    async fn feed(&mut self, kv: &mut SequenceKv, tokens: &[u32]) -> Result<Vec<f32>> {
        let call = self.enter(kv, tokens, None).await?;
        for &token in tokens {
            self.write(kv, token);
        }
        let mut logits = self.logits(kv);
        if self.controls.cheat_at.get() == Some(call) {
            logits.pop();
        }
        if self.controls.nan_at.get() == Some(call) {
            logits[7] = f32::NAN;
        }
        Ok(logits)
    }

    async fn feed_greedy(
        &mut self,
        kv: &mut SequenceKv,
        tokens: &[u32],
        steps: usize,
    ) -> Result<Vec<u32>> {
        let call = self.enter(kv, tokens, Some(steps)).await?;
        for &token in tokens {
            self.write(kv, token);
        }
        let mut ids = vec![];
        for _ in 0..steps {
            if let Some(&id) = ids.last() {
                self.write(kv, id);
            }
            ids.push(argmax(&self.logits(kv)));
        }
        if self.controls.cheat_at.get() == Some(call) {
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

/// Logits in [-4, 4) that depend on every token of the history and its place.
pub(super) fn logits(history: &[u32]) -> Vec<f32> {
    let mix = |hash: u64, value: u64| {
        let mixed = (hash ^ value).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        mixed ^ mixed >> 29
    };
    let hash = history
        .iter()
        .fold(1, |hash, &token| mix(hash, u64::from(token) + 1));
    (0..VOCAB as u64)
        .map(|id| (mix(mix(hash, id), 77) % 1024) as f32 / 128.0 - 4.0)
        .collect()
}

/// What a choice must become, computed without engine, pages or chunks: the ids, and whether the
/// last one is a stop id.
pub(super) fn expected(
    prompt: &[u32],
    max_tokens: usize,
    sampling: &SamplingParams,
    stop_ids: &[u32],
) -> (Vec<u32>, bool) {
    let mut sampler = Sampler::new(sampling, 0, prompt);
    let mut history = prompt.to_vec();
    for _ in 0..max_tokens {
        let id = sampler
            .sample(&mut logits(&history), None, None)
            .unwrap()
            .id;
        history.push(id);
        if stop_ids.contains(&id) {
            return (history.split_off(prompt.len()), true);
        }
    }
    (history.split_off(prompt.len()), false)
}
