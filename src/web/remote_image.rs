//! Fetches an image's file with the page's `fetch`, which `www/src/worker/fetch_image.ts` calls.

use js_sys::Uint8Array;
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;
use web_sys::AbortSignal;

use super::errors::message_of;
use super::options::EngineStart;
use crate::api::ImageError;

#[wasm_bindgen]
extern "C" {
    type AbortController;

    #[wasm_bindgen(constructor)]
    fn new() -> AbortController;

    #[wasm_bindgen(method, getter)]
    fn signal(this: &AbortController) -> AbortSignal;

    #[wasm_bindgen(method)]
    fn abort(this: &AbortController);
}

/// The file at `url`, of at most `max_bytes`. Dropping the future aborts the request.
pub(super) async fn fetch(
    options: EngineStart,
    url: String,
    max_bytes: usize,
) -> Result<Vec<u8>, ImageError> {
    let failed = |thrown: JsValue| ImageError::Invalid(message_of(&thrown));
    let abort = Abort(AbortController::new());
    let fetching = options
        .fetch_image(&url, max_bytes as f64, &abort.0.signal())
        .map_err(failed)?;
    let file = JsFuture::from(fetching).await.map_err(failed)?;
    Ok(file.unchecked_into::<Uint8Array>().to_vec())
}

/// Aborts when it is dropped. That has no effect on a request that has ended.
struct Abort(AbortController);

impl Drop for Abort {
    fn drop(&mut self) {
        self.0.abort();
    }
}
