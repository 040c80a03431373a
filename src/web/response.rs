//! One response, its body returned chunk by chunk.

use std::cell::RefCell;
use std::pin::Pin;
use std::rc::Rc;

use futures_core::Stream;
use futures_util::StreamExt;
use futures_util::stream::{AbortHandle, Abortable};
use js_sys::Uint8Array;
use wasm_bindgen::prelude::*;

use super::errors::to_js;
use crate::api::{Body, Progress, Response};

type Pieces = Abortable<Pin<Box<dyn Stream<Item = Vec<u8>>>>>;

/// One response of the engine.
#[wasm_bindgen]
pub struct InpageResponse {
    status: u16,
    headers: Vec<(String, String)>,
    /// `None` while `next` waits for a piece, and at the end.
    pieces: RefCell<Option<Pieces>>,
    cancel: AbortHandle,
    progress: Rc<Progress>,
}

impl InpageResponse {
    pub(super) fn new(response: Response) -> InpageResponse {
        let stream: Pin<Box<dyn Stream<Item = Vec<u8>>>> = match response.body {
            Body::Full(bytes) if bytes.is_empty() => Box::pin(futures_util::stream::empty()),
            Body::Full(bytes) => Box::pin(futures_util::stream::iter([bytes])),
            Body::Stream(stream) => stream,
        };
        let (cancel, registration) = AbortHandle::new_pair();
        InpageResponse {
            status: response.status,
            headers: response.headers,
            pieces: RefCell::new(Some(Abortable::new(stream, registration))),
            cancel,
            progress: response.progress,
        }
    }
}

#[wasm_bindgen]
impl InpageResponse {
    /// The status code.
    #[wasm_bindgen(getter)]
    pub fn status(&self) -> u16 {
        self.status
    }

    /// The headers, as `[name, value][]`.
    #[wasm_bindgen(getter)]
    pub fn headers(&self) -> Result<JsValue, JsValue> {
        Ok(serde_wasm_bindgen::to_value(&self.headers)?)
    }

    /// The position of the answer after the piece that `next` returned last: an opaque text for `handle`;
    /// `undefined` if it cannot be continued.
    #[wasm_bindgen(getter)]
    pub fn position(&self) -> Option<String> {
        self.progress.position()
    }

    /// The error that the response reports, in its status or in the piece that `next` returned last.
    #[wasm_bindgen(getter)]
    pub fn failure(&self) -> JsValue {
        let failure = self.progress.failure();
        failure.map_or(JsValue::UNDEFINED, |error| to_js(&error))
    }

    /// The next piece of the body; `undefined` at its end, after `cancel()`, and while another
    /// call waits.
    pub async fn next(&self) -> Option<Uint8Array> {
        let mut pieces = self.pieces.borrow_mut().take()?;
        let piece = pieces.next().await?;
        if !self.cancel.is_aborted() {
            *self.pieces.borrow_mut() = Some(pieces);
        }
        Some(Uint8Array::from(piece.as_slice()))
    }

    /// Stops the generation behind the body; a waiting `next` ends.
    pub fn cancel(&self) {
        self.cancel.abort();
        // Dropping the body is what stops it. A waiting `next` holds it, and drops it when woken.
        self.pieces.borrow_mut().take();
    }
}
