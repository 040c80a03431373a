//! The steps that `plan` decides on and `execute` runs.

use super::draft::PlannedDraft;
use super::model::MemoryCopy;
use super::prefill::Feed;
use super::single::SingleStep;

/// One step of the model; its memory is in the sequences. `job` is an index of a running request.
#[derive(Debug, PartialEq)]
pub(super) enum PlannedStep {
    /// Feeds a chunk of a prompt.
    Feed {
        job: usize,
        prompt: usize,
        feed: Feed,
        /// Restores the state at the end of the pages that were found.
        restore: Option<MemoryCopy>,
        /// Takes a snapshot of the state after the chunk.
        snapshot: Option<MemoryCopy>,
    },
    /// Chooses a candidate's first token from the logits of its prompt.
    Start {
        at: SequenceIndex,
        /// Copies of the memory that the candidate writes to.
        copies: Vec<MemoryCopy>,
    },
    /// Feeds and chooses `steps` tokens for each of these sequences.
    Batch {
        rows: Vec<SequenceIndex>,
        steps: usize,
    },
    /// Feeds a sequence its last token and a draft of the next ones.
    Verify {
        at: SequenceIndex,
        draft: PlannedDraft,
        /// A slot for the state before the step, where the model has states.
        spare: Option<u32>,
    },
    /// A step of one sequence by itself.
    Single {
        at: SequenceIndex,
        step: SingleStep,
        /// The copy that restores recurrent state, as in `Feed`.
        restore: Option<MemoryCopy>,
    },
}

impl PlannedStep {
    /// Whether it is for this running request.
    pub(super) fn is_for(&self, index: usize) -> bool {
        match self {
            Self::Feed { job, .. } => *job == index,
            Self::Start { at, .. } | Self::Single { at, .. } | Self::Verify { at, .. } => {
                at.job == index
            }
            Self::Batch { rows, .. } => rows.iter().any(|row| row.job == index),
        }
    }
}

/// The place of a sequence: index of its request among the running ones, index of the sequence there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SequenceIndex {
    pub(super) job: usize,
    pub(super) sequence: usize,
}
