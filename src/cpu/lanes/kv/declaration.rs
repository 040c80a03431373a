//! The declaration in the file of a format of the KV cache.

use crate::lanes::f32x8::{F32x8, LANES};

/// The sizes of a format, and how the kernels of the CPU device read it. The kernel module compiles this, too: see `module.rs`.
pub(crate) trait Elements {
    /// Elements of a block; heads have a multiple of them. At least 4.
    const BLOCK_LEN: usize;
    /// Words of a block.
    const BLOCK_WORDS: usize;

    /// Elements `8 * vector..8 * vector + 8` of the head whose first word is `head`.
    /// # Safety
    /// The head has these elements.
    unsafe fn load<L: F32x8>(head: *const u32, vector: usize) -> L;

    /// Writes the first `vectors` vectors of the head to `to`, with the bits of [`load`](Self::load).
    /// # Safety
    /// The head has these elements, and `to` a place for them.
    #[inline(always)]
    unsafe fn decode<L: F32x8>(head: *const u32, vectors: usize, to: *mut f32) {
        for vector in 0..vectors {
            // SAFETY: the caller's.
            unsafe { Self::load::<L>(head, vector).store(to.add(vector * LANES)) };
        }
    }
}

/// The other facts of a format, and its CPU twins.
pub(super) struct Declaration {
    /// The largest distance of a stored element from the original, relative to it or to 1. For tests with elements up to 16.
    pub(super) error: f64,
    /// The largest distance of attention on a device from the twin when the kernels are validated. Devices may round elements to
    /// either side.
    pub(super) tolerance: f32,
    /// The module that reads vectors on GPUs.
    pub(super) load_wgsl: &'static str,
    /// The module that writes vectors; used with `load_wgsl`.
    pub(super) store_wgsl: &'static str,
    /// Decodes the element `at` of the block in `words`: the twin of `kv_load` in the format's WGSL.
    pub(super) decode: fn(words: &[u32], at: usize) -> f32,
    /// Encodes whole blocks.
    pub(super) encode: fn(values: &[f32], words: &mut [u32]),
}
