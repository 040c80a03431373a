//! What is done next, and the pages that takes. Synchronous; never touches the model.
//!
//! The sequences that can go on, whichever request they are of, make the next batch, those that
//! waited longest first. While they do not fill it, more are brought up before it runs, oldest
//! request first: a candidate whose prompt is fed starts, or else the next prompt is fed, of the
//! last running request's or of the first waiting one's. So a first token never waits for prompts
//! after its own, and a second one for no more prompts of its own request than fill a batch; a
//! request's prompts hold up another one's sequences for a chunk at a time. A sequence that
//! nobody could join runs ahead by itself.
//!
//! What lacks pages waits, and what comes behind it too, unless that holds pages already: what has
//! begun goes on, so that it ends. Only where nobody generates do later requests go first: who
//! holds the pages waits for its reader, perhaps for long.

use super::job::Job;
use super::lone::LoneStep;
use super::pages::{GroupClaim, held, is_safe};
use super::prompt::{Feed, Wanted};
use super::scheduler::Scheduler;
use super::sequence::Sequence;

/// One step of the model; its pages are in the block tables. `job` is an index of a running request.
#[derive(Debug, PartialEq)]
pub(super) enum Step {
    /// Feeds a chunk of a prompt.
    Feed {
        job: usize,
        prompt: usize,
        feed: Feed,
    },
    /// Chooses a candidate's first token, without the model.
    Start { at: Place, copy: Option<PageCopy> },
    /// Feeds and chooses `steps` tokens for each of these sequences.
    Batch { rows: Vec<Place>, steps: usize },
    /// A step of one sequence by itself.
    Lone { at: Place, step: LoneStep },
}

/// Where a sequence is: index of its request among the running ones, index of the sequence there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub(super) job: usize,
    pub(super) sequence: usize,
}

/// A page to copy before the candidate writes its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PageCopy {
    pub(super) from: u32,
    pub(super) to: u32,
}

/// How large steps may be, and where prompts are cut.
#[derive(Debug, Clone, Copy)]
pub(super) struct StepLimits {
    pub(super) page_tokens: usize,
    /// Whole pages.
    pub(super) chunk_tokens: usize,
    /// Tokens of a step that may round differently than a larger one.
    pub(super) few_tokens: usize,
    /// Sequences in a batch.
    pub(super) max_batch: usize,
}

impl StepLimits {
    /// Where the page begins that holds the last of `tokens` (at least one).
    pub(super) fn last_page(&self, tokens: usize) -> usize {
        (tokens - 1) / self.page_tokens * self.page_tokens
    }

    /// Whether a step of those on that page alone would be one of few tokens.
    pub(super) fn ends_shortly(&self, tokens: usize) -> bool {
        tokens - self.last_page(tokens) <= self.few_tokens
    }
}

/// Whose block table grows.
#[derive(Clone, Copy)]
enum Holder {
    Prompt { job: usize, prompt: usize },
    Sequence(Place),
}

/// What a request has to be brought up.
enum BringUp {
    Step(Step),
    LacksPages,
    Nothing,
}

impl Scheduler {
    /// The next step; `None` while readers lag or pages are missing.
    pub(super) fn plan(&mut self) -> Option<Step> {
        let rows = self.next_rows();
        let decode_is_due = std::mem::take(&mut self.decode_is_due) && !rows.is_empty();
        if rows.len() < self.limits.max_batch && !decode_is_due {
            let more = self.bring_up(&rows);
            if more.is_some() {
                return more;
            }
        }
        self.turns += 1;
        for &Place { job, sequence } in &rows {
            self.running[job].sequences[sequence].last_turn = self.turns;
        }
        match rows[..] {
            [] => None,
            [at] if self.sequence(at).is_lone() => Some(self.lone(at, decode_is_due)),
            _ => {
                let steps = match decode_is_due {
                    true => 1,
                    false => self.steps_ahead(&rows),
                };
                Some(Step::Batch { rows, steps })
            }
        }
    }

    /// The running sequences that can go on by one token, with their pages.
    fn next_rows(&mut self) -> Vec<Place> {
        let mut turns = Vec::new();
        for (job, it) in self.running.iter().enumerate() {
            for (sequence, it) in it.sequences.iter().enumerate() {
                if it.is_started && it.choice.room() > 0 {
                    turns.push((it.last_turn, Place { job, sequence }));
                }
            }
        }
        turns.sort_unstable();
        let mut rows = Vec::with_capacity(self.limits.max_batch);
        for (_, at) in turns {
            let kv_tokens = self.sequence(at).memory.len_tokens + 1;
            if rows.len() < self.limits.max_batch && self.hold(Holder::Sequence(at), kv_tokens) {
                rows.push(at);
            }
        }
        rows
    }

    /// A step of the only sequence that can go on; a single token if others are being brought up.
    fn lone(&mut self, at: Place, is_single: bool) -> Step {
        let sequence = self.sequence(at);
        let mut step = match is_single {
            true => sequence.next_token(),
            false => sequence.next_tokens(),
        };
        let fed_tokens = sequence.memory.len_tokens;
        while !self.hold(Holder::Sequence(at), fed_tokens + step.kv_tokens()) {
            // The place of a single token is there.
            match step.shorter() {
                Some(shorter) => step = shorter,
                None => break,
            }
        }
        Step::Lone { at, step }
    }

    /// How many tokens all of `rows` can be run ahead, with their pages; at least one.
    fn steps_ahead(&mut self, rows: &[Place]) -> usize {
        let steps = rows.iter().map(|&at| self.sequence(at).steps_ahead());
        let mut steps = steps.min().unwrap_or(1).max(1);
        let mut held = 0;
        while held < rows.len() && steps > 1 {
            let kv_tokens = self.sequence(rows[held]).memory.len_tokens + steps;
            match self.hold(Holder::Sequence(rows[held]), kv_tokens) {
                true => held += 1,
                // What is held for more tokens does for fewer.
                false => steps /= 2,
            }
        }
        steps
    }

    /// Starts a candidate or feeds a prompt, beside `rows` that could go on.
    fn bring_up(&mut self, rows: &[Place]) -> Option<Step> {
        let mut job = 0;
        loop {
            let is_new = job == self.running.len();
            if is_new && !self.admit() {
                return None;
            }
            match self.bring_up_of(job) {
                BringUp::Step(step) => {
                    let feeds = !matches!(step, Step::Start { .. });
                    self.decode_is_due = feeds && rows.iter().any(|row| row.job != job);
                    return Some(step);
                }
                _ if is_new => {
                    self.dismiss();
                    return None;
                }
                BringUp::LacksPages if !rows.is_empty() => return None,
                BringUp::LacksPages | BringUp::Nothing => job += 1,
            }
        }
    }

    fn bring_up_of(&mut self, job: usize) -> BringUp {
        let mut lacks_pages = false;
        for prompt in 0..self.running[job].prompts.len() {
            let sequences = &self.running[job].sequences;
            let waits =
                |it: &Sequence| it.prompt == prompt && !it.is_started && it.choice.room() > 0;
            let Some(first) = sequences.iter().position(waits) else {
                continue;
            };
            if lacks_pages && self.running[job].prompts[prompt].memory.pages.is_empty() {
                continue;
            }
            let at = Place {
                job,
                sequence: first,
            };
            let step = match self.running[job].prompts[prompt].outcome {
                None => self.feed(at, prompt),
                Some(_) => self.start(at),
            };
            match step {
                Some(step) => return BringUp::Step(step),
                None => lacks_pages = true,
            }
        }
        match lacks_pages {
            true => BringUp::LacksPages,
            false => BringUp::Nothing,
        }
    }

    /// Feeds more of a prompt; its end with the first token of the candidate `at`, if that is the
    /// only one: then the pages are its own.
    fn feed(&mut self, at: Place, prompt: usize) -> Option<Step> {
        let Self {
            running,
            pages,
            limits,
            ..
        } = self;
        let job = at.job;
        let it = &mut running[job].prompts[prompt];
        let has_adopted = it.memory.pages.is_empty() && it.adopt(pages, limits);
        let cached_tokens = it.memory.len_tokens;
        let feed = it.next_feed(limits);
        let kv_tokens = it.memory.len_tokens + feed.tokens;
        if !self.hold(Holder::Prompt { job, prompt }, kv_tokens) {
            if has_adopted {
                self.running[job].prompts[prompt].abandon(&mut self.pages);
            }
            return None;
        }
        let job = &mut self.running[job];
        let mut candidates = job.sequences.iter().filter(|it| it.prompt == prompt);
        if has_adopted {
            let candidates = candidates.clone();
            candidates.for_each(|it| it.choice.note_cached(cached_tokens));
        }
        let is_only = candidates.nth(1).is_none();
        if feed.wanted == Wanted::Logits && is_only {
            let sequence = &mut job.sequences[at.sequence];
            sequence.memory = std::mem::take(&mut job.prompts[prompt].memory);
            sequence.is_started = true;
            let step = sequence.next_token();
            return Some(Step::Lone { at, step });
        }
        let job = at.job;
        Some(Step::Feed { job, prompt, feed })
    }

    /// Gives a candidate the pages of its prompt and a place for its first token. The full pages
    /// are shared. In the partly filled last one a single candidate at a time writes on, behind
    /// the prompt; whoever starts meanwhile gets a copy.
    fn start(&mut self, at: Place) -> Option<Step> {
        let job = &mut self.running[at.job];
        let sequence = &mut job.sequences[at.sequence];
        let prompt = &job.prompts[sequence.prompt];
        let mut copy = None;
        if prompt.is_continued() {
            let shared = prompt.shared_pages;
            let fed_tokens = prompt.memory.len_tokens;
            let table = &mut sequence.memory.pages;
            for &page in &prompt.memory.pages[..shared] {
                self.pages.share(table, page);
            }
            let tail = prompt.tail();
            let lent_tail = tail.filter(|&tail| self.pages.is_shared(tail));
            if let (Some(tail), None) = (tail, lent_tail) {
                self.pages.share(table, tail);
            }
            let granted = self.hold(Holder::Sequence(at), fed_tokens + 1);
            let memory = &mut self.running[at.job].sequences[at.sequence].memory;
            if !granted {
                self.pages.release(&mut memory.pages);
                return None;
            }
            memory.len_tokens = fed_tokens;
            let to = memory.pages[shared];
            copy = lent_tail.map(|from| PageCopy { from, to });
        }
        Some(Step::Start { at, copy })
    }

    /// Lengthens a block table to what `kv_tokens` need, if the pages are free and everyone can
    /// still end afterwards.
    fn hold(&mut self, holder: Holder, kv_tokens: usize) -> bool {
        let Self { running, pages, .. } = self;
        let count = pages.pages_for(kv_tokens);
        let table = table_of(running, holder);
        let before = table.len();
        if count <= before {
            return true;
        }
        if !pages.grow(table, count) {
            return false;
        }
        let claims: Vec<GroupClaim> = running.iter().flat_map(|job| job.claims(pages)).collect();
        debug_assert_eq!(
            pages.free_count() + held(&claims),
            pages.count(),
            "every page is free or claimed once"
        );
        let is_safe = is_safe(pages.free_count(), &claims);
        if !is_safe {
            pages.shrink(table_of(running, holder), before);
        }
        is_safe
    }

    fn sequence(&self, at: Place) -> &Sequence {
        &self.running[at.job].sequences[at.sequence]
    }
}

fn table_of(running: &mut [Job], holder: Holder) -> &mut Vec<u32> {
    match holder {
        Holder::Prompt { job, prompt } => &mut running[job].prompts[prompt].memory.pages,
        Holder::Sequence(Place { job, sequence }) => {
            &mut running[job].sequences[sequence].memory.pages
        }
    }
}
