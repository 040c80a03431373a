//! The browser's clock, timers and console for the endpoint.

use std::future::Future;
use std::pin::Pin;

use futures_channel::oneshot;
use gloo::timers::callback::Timeout;

use wasm_bindgen::prelude::*;

use super::picture;
use crate::api::{DecodedPicture, Host};
use crate::pictures::FileHeader;

#[wasm_bindgen]
extern "C" {
    /// Milliseconds on the browser's monotonic clock.
    #[wasm_bindgen(js_namespace = performance, js_name = now)]
    pub(super) fn now_ms() -> f64;
}

/// The browser.
pub(super) struct BrowserHost;

impl Host for BrowserHost {
    fn now_ms(&self) -> u64 {
        js_sys::Date::now() as u64
    }

    fn sleep_ms(&self, duration_ms: u32) -> Pin<Box<dyn Future<Output = ()>>> {
        let (sender, receiver) = oneshot::channel();
        let timer = Timeout::new(duration_ms, move || {
            // The receiver is gone when the future is being dropped.
            let _ = sender.send(());
        });
        Box::pin(async move {
            // Dropping the future cancels the timer.
            let _timer = timer;
            let _ = receiver.await;
        })
    }

    fn utc_offset_minutes(&self) -> i32 {
        -(js_sys::Date::new_0().get_timezone_offset() as i32)
    }

    fn decode_picture<'f>(&self, file: &'f [u8], _header: FileHeader) -> DecodedPicture<'f> {
        Box::pin(picture::decode(file))
    }

    fn warn(&self, message: &str) {
        gloo::console::warn!(message);
    }
}
