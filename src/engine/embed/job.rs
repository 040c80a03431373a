//! One submitted request: its inputs, the vectors so far, and its reader.

use futures_channel::oneshot;

use super::model::{EmbeddingInput, EmbeddingLimits};
use crate::{Error, Result};

/// A request that waits or runs.
pub(super) struct Job {
    inputs: Vec<EmbeddingInput>,
    /// The vectors of the inputs that are done, in order.
    vectors: Vec<Vec<f32>>,
    reader: oneshot::Sender<Result<Vec<Vec<f32>>>>,
}

impl Job {
    /// A request of these inputs (at least one) and the receiver of its vectors.
    pub(super) fn new(
        inputs: Vec<EmbeddingInput>,
    ) -> (Job, oneshot::Receiver<Result<Vec<Vec<f32>>>>) {
        let (reader, receiver) = oneshot::channel();
        let job = Job {
            inputs,
            vectors: Vec::new(),
            reader,
        };
        (job, receiver)
    }

    /// Adds the vectors of a batch. Returns whether all inputs have theirs.
    pub(super) fn add(&mut self, vectors: Vec<Vec<f32>>) -> bool {
        self.vectors.extend(vectors);
        self.vectors.len() >= self.inputs.len()
    }

    /// Sends the vectors, or the error in their place.
    pub(super) fn finish(self, result: Result<()>) {
        // An error means that the reader is gone.
        let _ = self.reader.send(result.map(|()| self.vectors));
    }

    /// Whether the reader is gone.
    pub(super) fn is_cancelled(&self) -> bool {
        self.reader.is_canceled()
    }

    /// The inputs to compute next, which are the longest run of them that the model computes together,
    /// and a future that is ready when the reader is gone.
    pub(super) fn turn(
        &mut self,
        limits: &EmbeddingLimits,
    ) -> (Vec<&EmbeddingInput>, impl Future<Output = ()>) {
        let rest = self.inputs[self.vectors.len()..].iter();
        let mut tokens = 0;
        let fitting = rest.take_while(|input| {
            let is_first = tokens == 0;
            tokens += input.ids.len();
            is_first || tokens <= limits.batch_tokens
        });
        let fitting = fitting.take(limits.batch_inputs);
        let batch = fitting.collect();
        (batch, self.reader.cancellation())
    }
}

/// An internal error unless the model returned a vector of the right width for each input.
pub(super) fn check_vectors(vectors: &[Vec<f32>], inputs: usize, width: usize) -> Result<()> {
    if vectors.len() == inputs && vectors.iter().all(|vector| vector.len() == width) {
        return Ok(());
    }
    Err(Error::Internal(format!(
        "the model returned {} vectors for {inputs} inputs",
        vectors.len()
    )))
}
