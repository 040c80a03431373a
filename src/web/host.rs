//! The browser's clock, timers and console for the endpoint.

use std::future::Future;
use std::pin::Pin;

use crate::api::Host;

/// The browser.
pub(super) struct BrowserHost;

impl Host for BrowserHost {
    fn now_ms(&self) -> u64 {
        js_sys::Date::now() as u64
    }

    fn sleep_ms(&self, duration_ms: u32) -> Pin<Box<dyn Future<Output = ()>>> {
        Box::pin(gloo::timers::future::TimeoutFuture::new(duration_ms))
    }

    fn warn(&self, message: &str) {
        gloo::console::warn!(message);
    }
}
