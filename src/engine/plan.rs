//! Decides what is done next, and reserves the memory for it. Synchronous; never calls the model.
//!
//! The next batch consists of sequences that can continue, of any request; those that waited
//! longest come first. While they do not fill the batch, more sequences are prepared before it
//! runs, oldest request first: a candidate whose prompt is fed starts; otherwise the next prompt is
//! fed, of a running request or of the first waiting one. So a first token never waits for prompts
//! after its own, and a second token waits for no more prompts of its own request than fill a
//! batch. A request's prompts delay the sequences of another request by one chunk at a time. A
//! sequence that no other could join runs ahead by itself.
//!
//! A request that lacks memory waits, and so do the requests after it, except those that already hold
//! memory: a started request continues, so that it ends. Later requests go first only while no sequence
//! can generate, because then the holders of the memory wait for their readers, at most as long as `patience.rs` allows.
//!
//! Longer than other files: the order of these decisions is the rule, and none of them is made elsewhere.

use super::banker::{GroupClaim, held, is_safe};
use super::costs::{Offer, Source, Work};
use super::draft::PlannedDraft;
use super::job::Job;
use super::model::{MemoryCopy, SequenceMemory};
use super::planned_step::{PlannedStep, SequenceIndex};
use super::prefill::Wanted;
use super::scheduler::Scheduler;
use super::sequence::Sequence;

/// The owner of the memory that grows.
#[derive(Clone, Copy)]
enum Holder {
    Prompt { job: usize, prompt: usize },
    Sequence(SequenceIndex),
}

/// The next preparation of a request.
enum Preparation {
    Step(PlannedStep),
    LacksMemory,
    Nothing,
}

impl Scheduler {
    /// The next step, its memory already in the sequences; `None` if all have to wait.
    pub(super) fn next_step(&mut self, now_ms: u64) -> Option<PlannedStep> {
        self.lacks_memory = false;
        let rows = self.next_rows();
        let planned = self.plan(&rows);
        self.run_patience(&rows, now_ms);
        self.publish();
        planned
    }

    fn plan(&mut self, rows: &[SequenceIndex]) -> Option<PlannedStep> {
        let decode_is_due = std::mem::take(&mut self.decode_is_due) && !rows.is_empty();
        if rows.len() < self.limits.max_batch && !decode_is_due {
            let more = self.prepare(rows);
            if more.is_some() {
                return more;
            }
        }
        self.turns += 1;
        for &SequenceIndex { job, sequence } in rows {
            self.running[job].sequences[sequence].last_turn = self.turns;
        }
        if let [at] = *rows
            && !decode_is_due
            && let Some(step) = self.verification(at)
        {
            return Some(step);
        }
        match *rows {
            [] => None,
            [at] if self.sequence(at).is_single() => Some(self.single(at, decode_is_due)),
            _ => {
                let steps = match decode_is_due {
                    true => 1,
                    false => self.steps_ahead(rows),
                };
                let rows = rows.to_vec();
                Some(PlannedStep::Batch { rows, steps })
            }
        }
    }

    /// The running sequences that can continue by one token, with the memory for it.
    fn next_rows(&mut self) -> Vec<SequenceIndex> {
        let mut turns = Vec::new();
        for (job, it) in self.running.iter().enumerate() {
            for (sequence, it) in it.sequences.iter().enumerate() {
                if it.is_started && it.candidate.room() > 0 {
                    turns.push((it.last_turn, SequenceIndex { job, sequence }));
                }
            }
        }
        turns.sort_unstable();
        let mut rows = Vec::with_capacity(self.limits.max_batch);
        for (_, at) in turns {
            let kv_tokens = self.sequence(at).memory.len_tokens + 1;
            if rows.len() == self.limits.max_batch {
                break;
            }
            match self.hold(Holder::Sequence(at), kv_tokens) {
                true => rows.push(at),
                false => self.lacks_memory = true,
            }
        }
        rows
    }

    /// A step of the only sequence that can continue; a single token if others are being prepared.
    fn single(&mut self, at: SequenceIndex, is_single: bool) -> PlannedStep {
        let sequence = self.sequence(at);
        let mut step = match is_single {
            true => sequence.next_token(),
            false => sequence.next_tokens(),
        };
        let fed_tokens = sequence.memory.len_tokens;
        while !self.hold(Holder::Sequence(at), fed_tokens + step.kv_tokens()) {
            // The page for a single token is already held.
            match step.shorter() {
                Some(shorter) => step = shorter,
                None => break,
            }
        }
        PlannedStep::Single {
            at,
            step,
            restore: None,
        }
    }

    /// A step of the only sequence that can continue with a draft, if there is one that is worth verifying, and the memory
    /// for it.
    fn verification(&mut self, at: SequenceIndex) -> Option<PlannedStep> {
        let sequence = &mut self.running[at.job].sequences[at.sequence];
        if sequence.unfed_tokens() != 1 {
            return None;
        }
        let drafts = sequence.drafts(&self.limits);
        let fed_tokens = sequence.memory.len_tokens;
        let min_tokens = sequence.candidate.generation().drafts.min_tokens;
        let text = Offer {
            source: Source::Text,
            tokens: drafts.text.tokens.len(),
            acceptance: drafts.text.acceptance,
        };
        let model = Offer {
            source: Source::Model,
            tokens: drafts.by_model,
            acceptance: drafts.model_acceptance,
        };
        let (source, mut count) = self.costs.best(&[text, model])?;
        while count > 0 && !self.hold(Holder::Sequence(at), fed_tokens + 1 + count) {
            count /= 2;
        }
        if count == 0 || count < min_tokens {
            return None;
        }
        let draft = match source {
            Source::Text => {
                let mut tokens = drafts.text.tokens;
                tokens.truncate(count);
                PlannedDraft::Tokens(tokens)
            }
            Source::Model => PlannedDraft::OfModel(count),
        };
        let spare = match self.limits.has_states {
            true => Some(self.pool.states.take()?),
            false => None,
        };
        Some(PlannedStep::Verify { at, draft, spare })
    }

    /// The work of a step that was just planned for the only sequence that can continue; `None` for steps that feed prompts
    /// or several sequences.
    pub(super) fn work_of(&self, step: &PlannedStep) -> Option<Work> {
        match step {
            PlannedStep::Verify { draft, .. } => Some(match draft {
                PlannedDraft::Tokens(tokens) => Work::Rows(Source::Text, tokens.len() + 1),
                PlannedDraft::OfModel(count) => Work::Rows(Source::Model, count + 1),
            }),
            PlannedStep::Single { at, step, .. } => {
                let has_begun = !self.sequence(*at).candidate.chosen().is_empty();
                has_begun.then(|| Work::Tokens(step.steps()))
            }
            PlannedStep::Batch { rows, steps } if rows.len() == 1 => Some(Work::Tokens(*steps)),
            _ => None,
        }
    }

    /// The number of tokens that all of `rows` can run ahead, with the memory for it; at least one.
    fn steps_ahead(&mut self, rows: &[SequenceIndex]) -> usize {
        let steps = rows.iter().map(|&at| self.sequence(at).steps_ahead());
        let mut steps = steps.min().unwrap_or(1).max(1);
        let mut held = 0;
        while held < rows.len() && steps > 1 {
            let kv_tokens = self.sequence(rows[held]).memory.len_tokens + steps;
            match self.hold(Holder::Sequence(rows[held]), kv_tokens) {
                true => held += 1,
                // Memory held for more tokens suffices for fewer.
                false => steps /= 2,
            }
        }
        steps
    }

    /// Starts a candidate or feeds a prompt, while `rows` could continue.
    fn prepare(&mut self, rows: &[SequenceIndex]) -> Option<PlannedStep> {
        let mut job = 0;
        loop {
            let is_new = job == self.running.len();
            if is_new && !self.admit() {
                return None;
            }
            match self.prepare_of(job) {
                Preparation::Step(step) => {
                    let feeds = !matches!(step, PlannedStep::Start { .. });
                    self.decode_is_due = feeds && rows.iter().any(|row| row.job != job);
                    return Some(step);
                }
                Preparation::LacksMemory if is_new => {
                    self.dismiss();
                    return None;
                }
                Preparation::LacksMemory if !rows.is_empty() => return None,
                Preparation::LacksMemory | Preparation::Nothing => job += 1,
            }
        }
    }

    fn prepare_of(&mut self, job: usize) -> Preparation {
        let mut lacks_memory = false;
        for prompt in 0..self.running[job].prompts.len() {
            let sequences = &self.running[job].sequences;
            let waits =
                |it: &Sequence| it.prompt == prompt && !it.is_started && it.candidate.room() > 0;
            let Some(first) = sequences.iter().position(waits) else {
                continue;
            };
            if lacks_memory && self.running[job].prompts[prompt].memory.pages.is_empty() {
                continue;
            }
            let at = SequenceIndex {
                job,
                sequence: first,
            };
            let step = match self.running[job].prompts[prompt].outcome {
                None => self.feed(at, prompt),
                Some(_) => self.start(at),
            };
            match step {
                Some(step) => return Preparation::Step(step),
                None => lacks_memory = true,
            }
        }
        self.lacks_memory |= lacks_memory;
        match lacks_memory {
            true => Preparation::LacksMemory,
            false => Preparation::Nothing,
        }
    }

    /// Feeds more of a prompt. If `at` is the only candidate, the end of the prompt is fed together
    /// with its first token, and the memory becomes its own.
    fn feed(&mut self, at: SequenceIndex, prompt: usize) -> Option<PlannedStep> {
        let Self {
            running,
            pool,
            limits,
            ..
        } = self;
        let is_preparation = running[at.job].is_preparation();
        let it = &mut running[at.job].prompts[prompt];
        let has_adopted = it.memory.pages.is_empty() && it.adopt(pool, limits);
        let cached_tokens = it.memory.len_tokens;
        let feed = it.next_feed(limits);
        let feed = match is_preparation {
            true => it.first_step(feed, limits),
            false => feed,
        };
        // Read before a slot is taken: the slot of the snapshot may be the only one left.
        let adopted = it.memory.pages.last().filter(|_| has_adopted);
        let snapshot = adopted.and_then(|page| pool.states.snapshot(*page));
        let holder = Holder::Prompt {
            job: at.job,
            prompt,
        };
        if !self.hold(holder, cached_tokens + feed.tokens) {
            if has_adopted {
                self.running[at.job].prompts[prompt].abandon(&mut self.pool);
            }
            return None;
        }
        let job = &mut self.running[at.job];
        let restore = copy_of_state(snapshot, job.prompts[prompt].memory.state);
        let mut candidates = job.sequences.iter().filter(|it| it.prompt == prompt);
        if has_adopted {
            let candidates = candidates.clone();
            candidates.for_each(|it| it.candidate.note_cached(cached_tokens));
        }
        let is_only = candidates.nth(1).is_none();
        if feed.wanted == Wanted::Logits && is_only {
            let sequence = &mut job.sequences[at.sequence];
            sequence.memory = std::mem::take(&mut job.prompts[prompt].memory);
            sequence.is_started = true;
            let step = sequence.next_token();
            return Some(PlannedStep::Single { at, step, restore });
        }
        let it = &job.prompts[prompt];
        let page = it.page_ended_by(feed, &self.limits);
        let snapshot = page.and_then(|page| self.pool.states.reserve_snapshot(page));
        Some(PlannedStep::Feed {
            job: at.job,
            prompt,
            feed,
            restore,
            snapshot: copy_of_state(it.memory.state, snapshot),
        })
    }

    /// Gives a candidate the memory of its prompt and a place for its first token. The full pages
    /// are shared. One candidate at a time writes to the partly filled last page; a candidate that
    /// starts meanwhile gets a copy. The last candidate to start takes over the prompt's state, the
    /// others get copies.
    fn start(&mut self, at: SequenceIndex) -> Option<PlannedStep> {
        let job = &mut self.running[at.job];
        let index = job.sequences[at.sequence].prompt;
        let waiting = |it: &&Sequence| it.prompt == index && !it.is_started;
        let is_last = job.sequences.iter().filter(waiting).nth(1).is_none();
        let prompt = &mut job.prompts[index];
        let mut copies = Vec::new();
        if !prompt.is_continued() {
            return Some(PlannedStep::Start { at, copies });
        }
        let memory = &mut job.sequences[at.sequence].memory;
        let (shared, fed_tokens) = (prompt.shared_pages, prompt.memory.len_tokens);
        for &page in &prompt.memory.pages[..shared] {
            self.pool.share(&mut memory.pages, page);
        }
        let tail = prompt.tail();
        let lent_tail = tail.filter(|&tail| self.pool.is_shared(tail));
        if let (Some(tail), None) = (tail, lent_tail) {
            self.pool.share(&mut memory.pages, tail);
        }
        if is_last {
            memory.state = prompt.memory.state.take();
        }
        let granted = self.hold(Holder::Sequence(at), fed_tokens + 1);
        let job = &mut self.running[at.job];
        let prompt = &mut job.prompts[index].memory;
        let memory = &mut job.sequences[at.sequence].memory;
        if !granted {
            if is_last {
                prompt.state = memory.state.take();
            }
            self.pool.release(memory);
            return None;
        }
        memory.len_tokens = fed_tokens;
        let to = memory.pages[shared..].first();
        if let (Some(from), Some(&to)) = (lent_tail, to) {
            copies.push(MemoryCopy::Page { from, to });
        }
        copies.extend(copy_of_state(prompt.state, memory.state));
        Some(PlannedStep::Start { at, copies })
    }

    /// Extends the memory of a sequence to what `kv_tokens` need, if that is free and everyone can
    /// still end afterwards.
    fn hold(&mut self, holder: Holder, kv_tokens: usize) -> bool {
        let Self { running, pool, .. } = self;
        let count = pool.pages_for(kv_tokens);
        let memory = memory_of(running, holder);
        let (pages, state) = (memory.pages.len(), memory.state);
        if !pool.extend(memory, count) {
            return false;
        }
        if memory.pages.len() == pages && memory.state == state {
            return true;
        }
        let claims: Vec<GroupClaim> = running.iter().flat_map(|job| job.claims(pool)).collect();
        let free = pool.free();
        debug_assert_eq!(
            free + held(&claims),
            pool.total(),
            "all memory is free or claimed once"
        );
        let is_safe = is_safe(free, &claims);
        if !is_safe {
            let memory = memory_of(running, holder);
            pool.shrink(&mut memory.pages, pages);
            if state.is_none() {
                pool.release_state(memory);
            }
        }
        is_safe
    }

    fn sequence(&self, at: SequenceIndex) -> &Sequence {
        &self.running[at.job].sequences[at.sequence]
    }
}

/// The copy from one slot to another, if there are both and they differ.
fn copy_of_state(from: Option<u32>, to: Option<u32>) -> Option<MemoryCopy> {
    let (from, to) = (from?, to?);
    (from != to).then_some(MemoryCopy::State { from, to })
}

fn memory_of(running: &mut [Job], holder: Holder) -> &mut SequenceMemory {
    match holder {
        Holder::Prompt { job, prompt } => &mut running[job].prompts[prompt].memory,
        Holder::Sequence(SequenceIndex { job, sequence }) => {
            &mut running[job].sequences[sequence].memory
        }
    }
}
