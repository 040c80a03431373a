//! The relaxed-SIMD module: this crate compiled once more, with relaxed SIMD, as a wasm module of its own that works in
//! the memory of the main module. The main module calls it for products if the engine can compile it. Loading and
//! caching it is the host's.

/// Of the sources that the module is compiled from. A module of other sources refuses to compute.
pub(crate) const VERSION: u32 = {
    let sources: &[&[u8]] = &[
        include_bytes!("activations.rs"),
        include_bytes!("format.rs"),
        include_bytes!("kernel.rs"),
        include_bytes!("module.rs"),
        include_bytes!("product.rs"),
        include_bytes!("simd/mod.rs"),
        include_bytes!("simd/wasm.rs"),
        include_bytes!("formats/floats.rs"),
        include_bytes!("formats/iq4.rs"),
        include_bytes!("formats/k_scales.rs"),
        include_bytes!("formats/mod.rs"),
        include_bytes!("formats/mxfp4.rs"),
        include_bytes!("formats/planes.rs"),
        include_bytes!("formats/q2_k.rs"),
        include_bytes!("formats/q3_k.rs"),
        include_bytes!("formats/q4_0.rs"),
        include_bytes!("formats/q4_1.rs"),
        include_bytes!("formats/q4_k.rs"),
        include_bytes!("formats/q5_0.rs"),
        include_bytes!("formats/q5_1.rs"),
        include_bytes!("formats/q5_k.rs"),
        include_bytes!("formats/q6_k.rs"),
        include_bytes!("formats/q8_0.rs"),
    ];
    fnv_1a(sources)
};

/// FNV-1a of all bytes.
const fn fnv_1a(sources: &[&[u8]]) -> u32 {
    let mut hash = 0x811c_9dc5_u32;
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
pub use registry::use_module;
#[cfg(target_feature = "simd128")]
pub(crate) use registry::{instruction_set, run};

/// In the main module.
#[cfg(target_feature = "simd128")]
mod registry {
    use std::cell::RefCell;

    use crate::product::Product;

    thread_local! {
        static MODULE: RefCell<Option<Box<dyn Fn(u32) -> bool>>> = const { RefCell::new(None) };
    }

    /// Lets this thread's products be computed by the relaxed-SIMD module. `call` calls its `product` with an address
    /// in the memory of this module and says whether the result was not 0. If it says no, this module computes that
    /// product.
    pub fn use_module(call: impl Fn(u32) -> bool + 'static) {
        MODULE.set(Some(Box::new(call)));
    }

    /// Whether the module computed the product.
    pub(crate) fn run(product: &Product) -> bool {
        let address = std::ptr::from_ref(product) as u32;
        MODULE.with_borrow(|module| module.as_ref().is_some_and(|call| call(address)))
    }

    pub(crate) fn instruction_set() -> &'static str {
        let relaxed = cfg!(target_feature = "relaxed-simd");
        if relaxed || MODULE.with_borrow(Option::is_some) {
            "relaxed-simd"
        } else {
            "simd128"
        }
    }
}

/// Computes a product and gives 1, or 0 if the caller is of other sources.
///
/// # Safety
/// Must point to a [`Product`], or at least to a version.
#[cfg(target_feature = "relaxed-simd")]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn product(product: *const u8) -> u32 {
    use crate::{
        format::Format,
        product::{self, Product},
        simd::wasm::{Wasm, adds_dots},
    };

    // SAFETY: as of this function.
    unsafe {
        let product = product.cast::<Product>();
        if (*product).version != VERSION || (*product).format > Format::MXFP4 as u32 {
            return 0;
        }
        let format = std::mem::transmute::<u32, Format>((*product).format);
        if adds_dots() {
            product::run::<Wasm<0, false>>(&*product, format);
        } else {
            product::run::<Wasm<0, true>>(&*product, format);
        }
    }
    1
}
