//! Captured graphs: a sequence of launches resolved once (pipelines, bind groups), without running it,
//! and replayed with nothing but dispatches.

use burn::cubecl::server::Handle;

use super::Gpu;
use crate::Result;

/// A recorded sequence of launches and the tensors it reads and writes.
///
/// A graph owns its tensors (`output`), so that a replay never uses a freed buffer; inputs that the
/// caller owns must live as long as the graph.
pub struct Graph<T> {
    recorded: burn::cubecl::client::Graph,
    output: T,
}

/// Most tensors of one size that recorded launches keep alive at a time, besides their inputs.
pub const ALIVE: usize = 6;

impl<T> Graph<T> {
    /// Records `launches`, which compiles their pipelines and runs nothing. `sizes_bytes` are the
    /// sizes of the tensors that it makes.
    ///
    /// A recording cannot allocate, and the pool gives a small tensor any page that is large
    /// enough. So memory for as many tensors of each size as can be alive at a time is allocated
    /// before.
    ///
    /// # Errors
    /// When a launch fails or the recording is refused.
    pub async fn record(
        gpu: &Gpu,
        sizes_bytes: &[usize],
        launches: impl FnOnce() -> T,
    ) -> Result<Graph<T>> {
        let client = &gpu.client;
        client.graph_prepare().map_err(|e| gpu.failure(e))?;
        let sizes = sizes_bytes.iter().flat_map(|&bytes| [bytes; ALIVE]);
        let room: Vec<Handle> = sizes.map(|bytes| client.empty(bytes)).collect();
        gpu.sync().await?;
        drop(room);
        client.start_capture().map_err(|e| gpu.failure(e))?;
        let output = launches();
        let recorded = client.stop_capture().map_err(|e| gpu.failure(e))?;
        Ok(Graph { recorded, output })
    }

    /// Enqueues the recorded launches again.
    ///
    /// # Errors
    /// When the device refuses them.
    ///
    /// # Safety
    /// Every tensor that the recorded closure captured from outside is still alive and is not
    /// being used from another thread.
    pub unsafe fn replay(&self, gpu: &Gpu) -> Result<()> {
        // SAFETY: forwarded to the caller.
        unsafe { self.recorded.replay() }.map_err(|e| gpu.failure(e))
    }

    /// What the closure returned: the tensors that every replay overwrites.
    pub fn output(&self) -> &T {
        &self.output
    }
}
