//! Launches composed kernels.

use std::cell::Cell;

use burn::cubecl::{
    CubeCount, CubeDim,
    server::{Handle, KernelArguments},
};
use burn_wgpu::{CubeTensor, SourceKernel};

use super::{compose::Kernel, dry_run::record};

thread_local! {
    static LAUNCHES: Cell<u64> = const { Cell::new(0) };
}

/// Kernels this thread has launched so far, for benchmarks. The launches of a captured graph count
/// once, when it is recorded.
pub fn launches() -> u64 {
    LAUNCHES.get()
}

impl Kernel {
    /// Launches on the buffers of `tensors`, in the order of the declared bindings, over a grid of
    /// workgroups.
    pub(crate) fn launch(self, tensors: &[&CubeTensor], grid: [u32; 3]) {
        debug_assert_eq!(tensors.len(), self.bindings() as usize, "{}", self.name());
        let Some(kernel) = record(self) else {
            return;
        };
        let client = tensors[0].client.clone();
        let mut arguments = KernelArguments::new();
        for tensor in tensors {
            let handle: Handle = tensor.handle.clone();
            arguments = arguments.with_buffer(handle.binding());
        }
        // The workgroup size is a constant of the shader; cubecl ignores this one.
        let dim = CubeDim::new_1d(1);
        LAUNCHES.set(LAUNCHES.get() + 1);
        client.launch(
            Box::new(SourceKernel::new(kernel, dim)),
            CubeCount::Static(grid[0], grid[1], grid[2]),
            arguments,
        );
    }
}

/// Spreads `count` workgroups over x and y so that neither exceeds WebGPU's limit.
pub fn grid(count: usize) -> [u32; 3] {
    const LIMIT: usize = 65_535;
    let y = count.div_ceil(LIMIT).max(1);
    let x = count.div_ceil(y).max(1);
    [x as u32, y as u32, 1]
}
