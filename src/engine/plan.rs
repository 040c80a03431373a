//! What a request does next, and the pages that takes. Synchronous; never touches the model.
//!
//! A request of one sequence feeds its prompt in chunks and then runs alone. Of several sequences,
//! those that can go on make the next batch, the ones that waited longest first. While they do not
//! fill it, more are brought up before it runs: a candidate whose prompt is fed starts, or else the
//! next prompt is fed. So a first token never waits for prompts after its own, a second token for
//! no more of them than fill a batch, and later prompts hold no pages while a batch is full.
//!
//! Candidates that lack pages wait, and prompts behind them with them, unless these hold pages
//! already: what has begun goes on, so that it ends.

use super::job::Job;
use super::lone::LoneStep;
use super::pages::Grants;
use super::prompt::{Feed, Wanted};
use super::sequence::Sequence;

/// One step of a request; its pages are in the block tables.
#[derive(Debug, PartialEq)]
pub(super) enum Step {
    /// Feeds a chunk of a prompt.
    Feed { prompt: usize, feed: Feed },
    /// Chooses a candidate's first token, without the model.
    Start {
        sequence: usize,
        copy: Option<PageCopy>,
    },
    /// Feeds and chooses one token for each of these sequences.
    Batch { sequences: Vec<usize> },
    /// A step of the only sequence.
    Lone(LoneStep),
}

/// A page to copy before the candidate writes its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PageCopy {
    pub(super) from: u32,
    pub(super) to: u32,
}

/// How large steps may be.
#[derive(Debug, Clone, Copy)]
pub(super) struct StepLimits {
    pub(super) prefill_chunk_tokens: usize,
    /// Sequences in a batch.
    pub(super) max_batch: usize,
}

/// Whose block table grows.
#[derive(Clone, Copy)]
enum Holder {
    Prompt(usize),
    Sequence(usize),
}

impl Job {
    /// The next step; `None` while readers lag or pages are missing.
    pub(super) fn next_step(
        &mut self,
        grants: &mut Grants<'_>,
        limits: StepLimits,
    ) -> Option<Step> {
        if self.lone.is_some() {
            return self.lone_step(grants, limits.prefill_chunk_tokens);
        }
        let sequences = self.next_batch(grants, limits.max_batch);
        if sequences.len() < limits.max_batch {
            let more = self.bring_up(grants, limits.prefill_chunk_tokens);
            if more.is_some() {
                return more;
            }
        }
        (!sequences.is_empty()).then_some(Step::Batch { sequences })
    }

    fn lone_step(&mut self, grants: &mut Grants<'_>, chunk_tokens: usize) -> Option<Step> {
        let sequence = self.sequences.first_mut()?;
        if !sequence.is_started {
            match self.prompts[0].next_feed(chunk_tokens)? {
                // The end of the prompt is fed with the first token's step.
                feed if feed.wanted == Wanted::Logits => {
                    sequence.kv = std::mem::take(&mut self.prompts[0].kv);
                    sequence.is_started = true;
                }
                feed => return self.feed(grants, 0, feed),
            }
        }
        let mut step = self.sequences[0].lone_step(self.lone.as_ref()?)?;
        loop {
            let kv_tokens = self.sequences[0].kv.len_tokens + step.kv_tokens();
            if self.hold(grants, Holder::Sequence(0), kv_tokens) {
                return Some(Step::Lone(step));
            }
            step = step.shorter()?;
        }
    }

    /// The running sequences that can go on, with their pages.
    fn next_batch(&mut self, grants: &mut Grants<'_>, max_batch: usize) -> Vec<usize> {
        let sequences = self.sequences.iter().enumerate();
        let ready = sequences.filter(|(_, it)| it.is_started && it.choice.room() > 0);
        let mut turns: Vec<(u64, usize)> = ready.map(|(at, it)| (it.last_batch, at)).collect();
        turns.sort_unstable();
        let mut batch = Vec::with_capacity(max_batch);
        for (_, at) in turns {
            let kv_tokens = self.sequences[at].kv.len_tokens + 1;
            if self.hold(grants, Holder::Sequence(at), kv_tokens) {
                batch.push(at);
            }
            if batch.len() == max_batch {
                break;
            }
        }
        batch
    }

    /// Starts a candidate or feeds a prompt.
    fn bring_up(&mut self, grants: &mut Grants<'_>, chunk_tokens: usize) -> Option<Step> {
        let mut some_lack_pages = false;
        for prompt in 0..self.prompts.len() {
            let waits =
                |it: &Sequence| it.prompt == prompt && !it.is_started && it.choice.room() > 0;
            let Some(first) = self.sequences.iter().position(waits) else {
                continue;
            };
            if some_lack_pages && self.prompts[prompt].kv.pages.is_empty() {
                continue;
            }
            let step = match self.prompts[prompt].next_feed(chunk_tokens) {
                Some(feed) => self.feed(grants, prompt, feed),
                None => self.start(grants, first),
            };
            if step.is_some() {
                return step;
            }
            some_lack_pages = true;
        }
        None
    }

    fn feed(&mut self, grants: &mut Grants<'_>, prompt: usize, feed: Feed) -> Option<Step> {
        let kv_tokens = self.prompts[prompt].kv.len_tokens + feed.tokens;
        let granted = self.hold(grants, Holder::Prompt(prompt), kv_tokens);
        granted.then_some(Step::Feed { prompt, feed })
    }

    /// Gives a candidate the pages of its prompt and a place for its first token. The full pages
    /// are shared. In the partly filled last one a single candidate at a time writes on, behind
    /// the prompt; whoever starts meanwhile gets a copy.
    fn start(&mut self, grants: &mut Grants<'_>, at: usize) -> Option<Step> {
        let sequence = &mut self.sequences[at];
        let prompt = &self.prompts[sequence.prompt];
        let mut copy = None;
        if prompt.is_continued() {
            let shared = prompt.shared_pages;
            let fed_tokens = prompt.kv.len_tokens;
            let table = &mut sequence.kv.pages;
            for &page in &prompt.kv.pages[..shared] {
                grants.pool.share(table, page);
            }
            let tail = prompt.tail();
            let lent_tail = tail.filter(|&tail| grants.pool.is_shared(tail));
            if let (Some(tail), None) = (tail, lent_tail) {
                grants.pool.share(table, tail);
            }
            if !self.hold(grants, Holder::Sequence(at), fed_tokens + 1) {
                grants.pool.release(&mut self.sequences[at].kv.pages);
                return None;
            }
            let kv = &mut self.sequences[at].kv;
            kv.len_tokens = fed_tokens;
            let to = kv.pages[shared];
            copy = lent_tail.map(|from| PageCopy { from, to });
        }
        Some(Step::Start { sequence: at, copy })
    }

    /// Lengthens a block table to what `kv_tokens` need, if the pages are free and everyone can
    /// still end afterwards.
    fn hold(&mut self, grants: &mut Grants<'_>, holder: Holder, kv_tokens: usize) -> bool {
        let count = grants.pool.pages_for(kv_tokens);
        let before = self.table(holder).len();
        if count <= before {
            return true;
        }
        if !grants.pool.grow(self.table(holder), count) {
            return false;
        }
        let is_safe = grants.is_safe(&self.claims(grants.pool));
        if !is_safe {
            grants.pool.shrink(self.table(holder), before);
        }
        is_safe
    }

    fn table(&mut self, holder: Holder) -> &mut Vec<u32> {
        match holder {
            Holder::Prompt(at) => &mut self.prompts[at].kv.pages,
            Holder::Sequence(at) => &mut self.sequences[at].kv.pages,
        }
    }
}
