//! The kernel module as products and attention use it: the header of the work that they describe to it, and the call
//! of the module in use. See `module.rs`.

use crate::{lanes::kv, tensor_types};

/// The header that a description of work at an address begins with.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Header {
    /// [`VERSION`] of the code that fills it.
    pub(crate) version: u32,
    /// [`ATTENTION`], or the number of the tensor type of a product.
    pub(crate) kind: u32,
}

impl Header {
    pub(crate) const fn new(kind: u32) -> Header {
        Header {
            version: VERSION,
            kind,
        }
    }
}

/// The kind of an attention.
pub(crate) const ATTENTION: u32 = u32::MAX;

/// The host of the module counts parts in 8 bits.
pub(crate) const MAX_PARTS: usize = 250;

/// Floats of the stack for the memory of a part of an attention. That of 32 queries of 256 elements; larger ones are
/// computed by the main module.
pub(crate) const SCRATCH_FLOATS: usize = 43 << 10;

/// The stack of an instance. Besides that memory there are few variables.
pub const STACK_BYTES: usize = (64 << 10) + SCRATCH_FLOATS * size_of::<f32>();

/// A hash of the sources that the module is compiled from. A module of other sources refuses to compute.
pub(crate) const VERSION: u32 = {
    let sources: &[&[u8]] = &[
        include_bytes!("half.rs"),
        include_bytes!("inputs.rs"),
        include_bytes!("kernel.rs"),
        include_bytes!("kernel_module.rs"),
        include_bytes!("lanes/attention/chunks.rs"),
        include_bytes!("lanes/attention/heads.rs"),
        include_bytes!("lanes/attention/load.rs"),
        include_bytes!("lanes/attention/mod.rs"),
        include_bytes!("lanes/attention/parts.rs"),
        include_bytes!("lanes/attention/scores.rs"),
        include_bytes!("lanes/attention/softmax.rs"),
        include_bytes!("lanes/attention/values.rs"),
        include_bytes!("lanes/f32x8/mod.rs"),
        include_bytes!("lanes/f32x8/simd128.rs"),
        include_bytes!("lanes/functions.rs"),
        include_bytes!("lanes/kv/declaration.rs"),
        include_bytes!("lanes/kv/format.rs"),
        include_bytes!("lanes/kv/mod.rs"),
        include_bytes!("lanes/kv/row.rs"),
        include_bytes!("module.rs"),
        include_bytes!("product.rs"),
        include_bytes!("simd/mod.rs"),
        include_bytes!("simd/quantize.rs"),
        include_bytes!("simd/wasm.rs"),
        include_bytes!("tensor_types/block_scales.rs"),
        include_bytes!("tensor_types/codebook.rs"),
        include_bytes!("tensor_types/floats.rs"),
        include_bytes!("tensor_types/group_scales.rs"),
        include_bytes!("tensor_types/iq1.rs"),
        include_bytes!("tensor_types/iq2.rs"),
        include_bytes!("tensor_types/iq3.rs"),
        include_bytes!("tensor_types/k_scales.rs"),
        include_bytes!("tensor_types/mod.rs"),
        include_bytes!("tensor_types/planes.rs"),
        include_bytes!("tensor_types/quantized.rs"),
    ];
    let hash = fnv_1a(0x811c_9dc5, sources);
    fnv_1a(fnv_1a(hash, kv::SOURCES), tensor_types::SOURCES)
};

/// FNV-1a of all bytes, after those of `hash`.
const fn fnv_1a(mut hash: u32, sources: &[&[u8]]) -> u32 {
    let mut source = 0;
    while source < sources.len() {
        let mut at = 0;
        while at < sources[source].len() {
            hash = (hash ^ sources[source][at] as u32).wrapping_mul(0x0100_0193);
            at += 1;
        }
        source += 1;
    }
    hash
}

#[cfg(target_feature = "simd128")]
pub(crate) use registry::{Call, Module, address, instruction_set, run, set, threads};

/// The side of the main module.
#[cfg(target_feature = "simd128")]
mod registry {
    use std::cell::RefCell;

    /// Calls the module's `compute` for each of a number of parts of the work at an address. Says whether all results were
    /// not 0.
    pub(crate) type Call = Box<dyn Fn(u32, u32) -> bool>;

    /// A kernel module in use.
    pub(crate) struct Module {
        pub(crate) call: Call,
        pub(crate) threads: usize,
        pub(crate) relaxed: bool,
    }

    thread_local! {
        static MODULE: RefCell<Option<Module>> = const { RefCell::new(None) };
    }

    /// Uses a module from now on, or none.
    pub(crate) fn set(module: Option<Module>) {
        MODULE.set(module);
    }

    /// The threads that compute a product.
    pub(crate) fn threads() -> usize {
        MODULE.with_borrow(|module| module.as_ref().map_or(1, |module| module.threads))
    }

    pub(crate) fn address<T>(description: &T) -> u32 {
        std::ptr::from_ref(description) as u32
    }

    /// Whether the module computed what is described.
    pub(crate) fn run<T>(description: &T, parts: usize) -> bool {
        MODULE.with_borrow(|module| {
            let module = module.as_ref();
            module.is_some_and(|module| (module.call)(address(description), parts as u32))
        })
    }

    pub(crate) fn instruction_set() -> &'static str {
        MODULE.with_borrow(|module| {
            let relaxed = module.as_ref().is_some_and(|module| module.relaxed);
            if relaxed { "relaxed-simd" } else { "simd128" }
        })
    }
}
