//! The declaration in the file of a format of the KV cache.

use crate::lanes::f32x8::{F32x8, LANES, Strip};

/// The sizes of a format, and how the kernels of the CPU device read it. The kernel module compiles this, too: see `module.rs`.
pub(crate) trait Elements {
    /// Elements of a block; heads have a multiple of them. At least 4.
    const BLOCK_LEN: usize;
    /// Words of a block.
    const BLOCK_WORDS: usize;

    /// A strip of elements, the first of which is element `at` of the head whose first word is `head`.
    /// # Safety
    /// The head has these elements, and `at` is a multiple of the lanes of a strip.
    unsafe fn load<S: Strip>(head: *const u32, at: usize) -> S;

    /// Whether [`load`](Self::load) has the bits of [`decode`](Self::decode) for all elements of the head. A head with NaN begins
    /// with NaN (`KvFormat::store_heads`), so this reads no other element.
    /// # Safety
    /// The head has an element.
    #[inline(always)]
    unsafe fn loads<L: F32x8>(_head: *const u32) -> bool {
        true
    }

    /// Writes the first `vectors` vectors of the head to `to`.
    /// # Safety
    /// The head has these elements, and `to` a place for them.
    #[inline(always)]
    unsafe fn decode<L: F32x8>(head: *const u32, vectors: usize, to: *mut f32) {
        for at in (0..vectors * LANES).step_by(L::Strip::LANES) {
            // SAFETY: the caller's.
            unsafe { Self::load::<L::Strip>(head, at).store(to.add(at)) };
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
