//! The browser's clock, timers, console, decoder and network for the endpoint.

use std::future::Future;
use std::pin::Pin;

use futures_channel::oneshot;
use gloo::timers::callback::Timeout;

use super::options::EngineOptions;
use super::{picture, remote_picture};
use crate::api::{DecodedPicture, FetchedPicture, Host};
use crate::pictures::FileHeader;

/// The browser, or the program around the package.
pub(super) struct BrowserHost {
    options: EngineOptions,
}

impl BrowserHost {
    /// `options` has what decodes and fetches pictures.
    pub(super) fn new(options: EngineOptions) -> BrowserHost {
        BrowserHost { options }
    }
}

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

    fn decode_picture<'f>(&self, file: &'f [u8], header: FileHeader) -> DecodedPicture<'f> {
        match self.options.decode_picture() {
            None => Box::pin(picture::decode(file)),
            Some(decoder) => Box::pin(picture::decode_with(decoder, file, header)),
        }
    }

    fn fetch_picture(&self, url: &str, max_bytes: usize) -> FetchedPicture {
        Box::pin(remote_picture::fetch(
            self.options.again(),
            url.to_owned(),
            max_bytes,
        ))
    }

    fn warn(&self, message: &str) {
        gloo::console::warn!(message);
    }
}
