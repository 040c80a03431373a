//! The monotonic clock of the browser.

use wasm_bindgen::prelude::*;

#[wasm_bindgen]
extern "C" {
    /// Milliseconds on the browser's monotonic clock.
    #[wasm_bindgen(js_namespace = performance, js_name = now)]
    pub(super) fn now_ms() -> f64;
}
