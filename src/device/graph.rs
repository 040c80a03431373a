//! Captured graphs: a sequence of launches resolved once (pipelines, bind groups), without running it,
//! and replayed with nothing but dispatches.

use burn::cubecl::server::Handle;

use super::Gpu;
use crate::{Result, kernel::dry_run};

/// A recorded sequence of launches and the tensors it reads and writes.
///
/// A graph owns its tensors (`output`), so that a replay never uses a freed buffer; inputs that the
/// caller owns must live as long as the graph.
pub struct Graph<T> {
    recorded: burn::cubecl::client::Graph,
    output: T,
}

impl<T> Graph<T> {
    /// Records `launches`, which compiles their pipelines and runs nothing. Calls it twice: a
    /// recording cannot allocate, so a dry run finds the sizes of the tensors that it makes, and
    /// buffers for them are left free.
    ///
    /// # Errors
    /// Fails when a launch fails or the recording is refused.
    pub async fn record(gpu: &Gpu, mut launches: impl FnMut() -> T) -> Result<Graph<T>> {
        let scratch_bytes = dry_run(&mut launches).scratch_bytes;
        let client = &gpu.client;
        client.graph_prepare().map_err(|e| gpu.failure(e))?;
        let scratch: Vec<Handle> = scratch_bytes
            .into_iter()
            .map(|bytes| client.empty(bytes))
            .collect();
        gpu.sync().await?;
        drop(scratch);
        client.start_capture().map_err(|e| gpu.failure(e))?;
        let output = launches();
        let recorded = client.stop_capture().map_err(|e| gpu.failure(e))?;
        Ok(Graph { recorded, output })
    }

    /// Enqueues the recorded launches again.
    ///
    /// # Errors
    /// Fails when the device refuses them.
    ///
    /// # Safety
    /// Every tensor that the recorded closure captured from outside is still alive and is not
    /// being used from another thread.
    pub unsafe fn replay(&self, gpu: &Gpu) -> Result<()> {
        // SAFETY: forwarded to the caller.
        unsafe { self.recorded.replay() }.map_err(|e| gpu.failure(e))
    }

    /// The result of the closure: the tensors that every replay overwrites.
    pub fn output(&self) -> &T {
        &self.output
    }
}
