//! Runs code that launches kernels without launching them, to learn its needs.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashSet};

use burn::cubecl::server::Handle;
use burn_wgpu::{CubeTensor, KernelSource};

use super::compose::Kernel;

thread_local! {
    /// The recording of this thread's dry run, while there is one.
    static RECORDING: RefCell<Option<Recording>> = const { RefCell::new(None) };
}

#[derive(Default)]
struct Recording {
    kernels: Vec<Kernel>,
    /// Tensors that have not been dropped.
    live: Vec<LiveTensor>,
    /// Sizes of the tensors that were live together, ascending, after each allocation.
    live_sizes_bytes: BTreeSet<Vec<usize>>,
}

struct LiveTensor {
    size_bytes: usize,
    is_live: Box<dyn Fn() -> bool>,
}

/// The result of a dry run.
#[derive(Debug)]
pub struct DryRun {
    /// The distinct kernels, in the order of their first launches.
    pub kernels: Vec<Kernel>,
    /// Sizes of buffers that must be free for the memory pool to serve every allocation without
    /// growing, whichever free buffer it selects for a smaller tensor.
    pub scratch_bytes: Vec<usize>,
}

/// Runs `launches` without launching a kernel or allocating a tensor, so the resulting tensors must not
/// be read.
pub fn dry_run<T>(launches: impl FnOnce() -> T) -> DryRun {
    RECORDING.set(Some(Recording::default()));
    let output = launches();
    let recording = RECORDING.take().unwrap_or_default();
    drop(output);
    let mut kernels = recording.kernels;
    let mut seen = HashSet::new();
    kernels.retain(|kernel| seen.insert(kernel.id()));
    DryRun {
        kernels,
        scratch_bytes: scratch_bytes(&recording.live_sizes_bytes),
    }
}

/// The buffers to keep free. For each size, as many as there are at most live tensors of that size or
/// smaller. When another tensor is allocated, the live ones cannot occupy all of them.
fn scratch_bytes(live_sizes_bytes: &BTreeSet<Vec<usize>>) -> Vec<usize> {
    let sizes: BTreeSet<usize> = live_sizes_bytes.iter().flatten().copied().collect();
    let buffers = |size: usize| {
        let live = live_sizes_bytes.iter();
        let counts = live.map(|live| live.partition_point(|&other| other <= size));
        std::iter::repeat_n(size, counts.max().unwrap_or(0))
    };
    sizes.into_iter().flat_map(buffers).collect()
}

/// Records a kernel that must not be launched. Returns the kernel if there is no dry run.
pub(super) fn record(kernel: Kernel) -> Option<Kernel> {
    RECORDING.with_borrow_mut(|recording| match recording {
        Some(recording) => {
            recording.kernels.push(kernel);
            None
        }
        None => Some(kernel),
    })
}

/// Memory for a tensor on the device of `like`. In a dry run the handle has no memory.
pub(crate) fn allocate(like: &CubeTensor, size_bytes: usize) -> Handle {
    RECORDING.with_borrow_mut(|recording| match recording {
        Some(recording) => {
            let (service, stream) = (like.handle.service, like.handle.stream);
            let handle = Handle::new(service, stream, size_bytes as u64);
            let memory = handle.memory.clone().binding().downgrade();
            recording.live.retain(|tensor| (tensor.is_live)());
            recording.live.push(LiveTensor {
                size_bytes,
                is_live: Box::new(move || memory.is_alive()),
            });
            let live = recording.live.iter();
            let mut sizes_bytes: Vec<usize> = live.map(|tensor| tensor.size_bytes).collect();
            sizes_bytes.sort_unstable();
            recording.live_sizes_bytes.insert(sizes_bytes);
            handle
        }
        None => like.client.empty(size_bytes),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scratch_suffices_whichever_buffer_the_pool_selects() {
        let live = BTreeSet::from([vec![4, 4, 16], vec![4, 16, 16], vec![8, 8]]);
        assert_eq!(scratch_bytes(&live), [4, 4, 8, 8, 16, 16, 16]);
        assert!(scratch_bytes(&BTreeSet::new()).is_empty());
    }
}
