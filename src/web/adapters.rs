//! Low-rank adapters as the worker passes them.

use wasm_bindgen::prelude::*;

use super::source::PageFiles;
use crate::runtime::AdapterFiles;

#[wasm_bindgen]
extern "C" {
    /// `{ name, files, scale }` of `worker/worker_host.ts`.
    pub type PageAdapter;

    #[wasm_bindgen(method, getter)]
    fn name(this: &PageAdapter) -> String;

    #[wasm_bindgen(method, getter)]
    fn files(this: &PageAdapter) -> PageFiles;

    #[wasm_bindgen(method, getter)]
    fn scale(this: &PageAdapter) -> f64;
}

/// The adapters in the form that the loader takes.
pub(super) fn adapter_files(given: &[PageAdapter]) -> Vec<AdapterFiles<PageFiles>> {
    let adapters = given.iter().map(|adapter| AdapterFiles {
        name: adapter.name(),
        files: adapter.files(),
        scale: adapter.scale() as f32,
    });
    adapters.collect()
}
