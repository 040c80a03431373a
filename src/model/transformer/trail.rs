//! The inputs that the drafting head got of the sequence that was fed last.

use burn::tensor::Tensor;

use crate::engine::SequenceMemory;

/// The state of the sequence that was fed last.
#[derive(Default)]
pub(super) struct Trail {
    /// The pages of the sequence when it was fed.
    pub(super) pages: Vec<u32>,
    /// Positions before have entries in the head's memory.
    pub(super) entries: usize,
    /// The stream of its last positions.
    pub(super) stream: Option<Stream>,
}

/// The normalized stream `[positions, dim]` of consecutive positions.
pub(super) struct Stream {
    pub(super) first: usize,
    pub(super) ids: Vec<u32>,
    pub(super) rows: Tensor<2>,
}

impl Trail {
    /// Whether it is the trail of the sequence with this memory.
    pub(super) fn is_of(&self, memory: &SequenceMemory) -> bool {
        let shared = self.pages.len().min(memory.pages.len());
        shared > 0 && self.pages[..shared] == memory.pages[..shared]
    }

    /// The stream if it reaches up to the last token of the sequence.
    pub(super) fn stream_before(&self, memory: &SequenceMemory) -> Option<&Stream> {
        let stream = self.stream.as_ref().filter(|_| self.is_of(memory))?;
        let known = stream.first + 1..=stream.first + stream.ids.len();
        known.contains(&memory.len_tokens).then_some(stream)
    }
}
