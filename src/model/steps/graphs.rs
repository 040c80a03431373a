//! The captured graphs of steps.

use burn::tensor::Tensor;

use crate::{
    Result,
    device::{Gpu, Graph},
    ops::launches,
};

/// The captured steps of one number of rows.
pub(super) struct StepGraphs {
    /// Feeds the rows; returns the residual stream.
    pub(super) body: Graph<Tensor<2>>,
    /// Logits after the step's last token.
    pub(super) last: Graph<Tensor<2>>,
    /// Logits after every token, for the sizes of batches.
    pub(super) every: Option<Graph<Tensor<2>>>,
    /// Chooses from `last`'s logits and prepares the next one-token step.
    pub(super) choose: Graph<()>,
}

/// Decode steps in one captured graph. Each replay is a submit, which costs as much as many
/// dispatches.
const GRAPH_STEPS: usize = 4;

/// Whole decode steps, which read the ids and positions that the previous choice wrote on the
/// device.
pub(super) struct DecodeGraphs {
    /// Dispatches of one step.
    pub(super) dispatches: usize,
    one: Graph<()>,
    several: Graph<()>,
}

impl DecodeGraphs {
    pub(super) async fn record(gpu: &Gpu, mut step: impl FnMut()) -> Result<Self> {
        let before = launches();
        let one = Graph::record(gpu, &mut step).await?;
        let dispatches = (launches() - before) as usize;
        let several = || (0..GRAPH_STEPS).for_each(|_| step());
        let several = Graph::record(gpu, several).await?;
        Ok(Self {
            dispatches,
            one,
            several,
        })
    }

    /// # Safety
    /// Same as [`Graph::replay`].
    pub(super) unsafe fn replay(&self, gpu: &Gpu, steps: usize) -> Result<()> {
        for _ in 0..steps / GRAPH_STEPS {
            // SAFETY: forwarded to the caller.
            unsafe { self.several.replay(gpu)? };
        }
        for _ in 0..steps % GRAPH_STEPS {
            // SAFETY: forwarded to the caller.
            unsafe { self.one.replay(gpu)? };
        }
        Ok(())
    }
}
