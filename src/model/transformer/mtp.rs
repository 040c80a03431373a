//! Drafts of the head that predicts the token after the next one: the inputs that it gets of each step, and when.
//!
//! The head's entry for a position is made of its token and of the decoder's stream at the position before. So the entry
//! after the last position of a step waits for the next token. A step of a prompt fills the others at once. The stream of a
//! step that verifies a draft is kept until the next draft, which knows the tokens that were right. Other steps of single
//! tokens tell the head nothing: entries that are missing at the next draft are made of the token alone. They only make
//! drafts worse.

use burn::tensor::Tensor;

use super::{
    Transformer, segment,
    trail::{Stream, Trail},
};
use crate::{
    Error, Result,
    engine::{KnownText, SequenceMemory},
    model::steps::{
        Fed,
        mtp::MtpTokens,
        sizes::{MAX_BATCH, MAX_TOKENS},
    },
    ops::{
        rows::rows,
        step::{PAGE_TOKENS, Rotary, Segment},
    },
};

impl Transformer {
    fn uses_head(&self) -> bool {
        self.drafts && self.draft_model.is_none() && self.steps.has_head()
    }

    /// Fills the entries up to the token `next`, with which the following step begins.
    pub(super) fn remember_next(&mut self, memory: &SequenceMemory, next: u32) -> Result<()> {
        if !self.uses_head() {
            return Ok(());
        }
        let position = memory.len_tokens;
        // A state that was restored passes through tokens that were verified before.
        if self.trail.is_of(memory) && self.trail.entries > position {
            return Ok(());
        }
        let (first, ids, stream) = match self.trail.stream_before(memory) {
            Some(stream) => {
                let right = position - stream.first;
                let ids = stream.ids[1..right].iter().copied().chain([next]);
                let rows = rows(stream.rows.clone(), 0, right);
                (stream.first + 1, ids.collect(), Some(rows))
            }
            None => (position, vec![next], None),
        };
        self.remember(memory, first, &ids, stream)
    }

    /// Takes over a step that fed `ids` to the sequence with this memory. Its length has not grown yet.
    pub(super) fn remember_fed(
        &mut self,
        memory: &SequenceMemory,
        ids: &[u32],
        fed: &Fed,
    ) -> Result<()> {
        if !self.uses_head() {
            return Ok(());
        }
        let begin = memory.len_tokens;
        let last = begin + ids.len() - 1;
        let mut entries = match self.trail.is_of(memory) {
            true => self.trail.entries,
            false => 0,
        };
        if ids.len() > 1 {
            let before = rows(self.steps.normed(fed, ids.len()), 0, ids.len() - 1);
            self.remember(memory, begin + 1, &ids[1..], Some(before))?;
            entries = last + 1;
        }
        self.trail = Trail {
            pages: memory.pages.clone(),
            entries,
            stream: Some(Stream {
                first: last,
                ids: ids[ids.len() - 1..].to_vec(),
                rows: self.steps.last_normed(fed),
            }),
        };
        Ok(())
    }

    /// Takes over a step that fed `ids`, of which only the first is known to be right.
    pub(super) fn remember_draft(&mut self, memory: &SequenceMemory, ids: &[u32], fed: &Fed) {
        if !self.uses_head() {
            return;
        }
        let first = memory.len_tokens;
        self.trail = Trail {
            entries: match self.trail.is_of(memory) {
                true => self.trail.entries.min(first + 1),
                false => 0,
            },
            pages: memory.pages.clone(),
            stream: Some(Stream {
                first,
                ids: ids.to_vec(),
                rows: self.steps.normed(fed, ids.len()),
            }),
        };
    }

    /// [`CausalModel::draft`](crate::engine::CausalModel::draft) by the head.
    pub(super) async fn drafted(
        &mut self,
        memory: &SequenceMemory,
        text: KnownText<'_>,
        count: usize,
    ) -> Result<Vec<u32>> {
        let position = memory.len_tokens;
        let end = position + count;
        if text.len() != position + 1
            || !(1..=MAX_BATCH).contains(&count)
            || end > memory.pages.len() * PAGE_TOKENS
        {
            let what = format!("a draft of {count} after {position} of {}", text.len());
            return Err(Error::Internal(what));
        }
        let known = self.trail.stream_before(memory);
        let known = known.map(|stream| {
            let right = rows(stream.rows.clone(), 0, position - stream.first);
            (stream.first + 1, right)
        });
        let first = known.as_ref().map_or(position, |(first, _)| *first);
        // Prompts were remembered when they were fed.
        let entries = match self.trail.is_of(memory) {
            true => self.trail.entries.max(text.prompt.len()),
            false => text.prompt.len(),
        };
        for begin in (entries..first).step_by(MAX_TOKENS) {
            let mut missing = text.after(begin);
            missing.truncate((first - begin).min(MAX_TOKENS));
            self.remember(memory, begin, &missing, None)?;
        }
        let ids = text.after(first);
        let tokens = MtpTokens {
            segment: Segment {
                position: first,
                ..segment(memory, ids.len(), Rotary::default())
            },
            ids: &ids,
            stream: known.map(|(_, stream)| stream),
        };
        let drafted = self.steps.draft(tokens, count).await?;
        self.trail.pages.clone_from(&memory.pages);
        self.trail.entries = position + 1;
        Ok(drafted)
    }

    fn remember(
        &mut self,
        memory: &SequenceMemory,
        first: usize,
        ids: &[u32],
        stream: Option<Tensor<2>>,
    ) -> Result<()> {
        self.steps.remember(MtpTokens {
            segment: Segment {
                position: first,
                ..segment(memory, ids.len(), Rotary::default())
            },
            ids,
            stream,
        })
    }
}
