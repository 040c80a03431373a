//! The browser's clock, timers, console, decoder and network for the endpoint.

use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;

use futures_channel::oneshot;
use gloo::timers::callback::Timeout;
use wasm_bindgen_futures::spawn_local;

use super::options::EngineStart;
use super::{clock, image, remote_image};
use crate::api::{DecodedImage, FetchedImage, Host, ImageError};
use crate::engine::{Clock, Permit};
use crate::images::FileHeader;

/// The browser, or the program around the package.
pub(super) struct BrowserHost {
    options: EngineStart,
}

impl BrowserHost {
    /// `options` has what decodes and fetches images.
    pub(super) fn new(options: EngineStart) -> BrowserHost {
        BrowserHost { options }
    }
}

impl Clock for BrowserHost {
    fn now_ms(&self) -> u64 {
        js_sys::Date::now() as u64
    }

    fn monotonic_ms(&self) -> f64 {
        clock::now_ms()
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
}

impl Host for BrowserHost {
    fn utc_offset_minutes(&self) -> i32 {
        -(js_sys::Date::new_0().get_timezone_offset() as i32)
    }

    fn decode_image(&self, file: Rc<[u8]>, header: FileHeader, turn: Rc<Permit>) -> DecodedImage {
        let decoder = self.options.decode_image();
        let (sender, receiver) = oneshot::channel();
        // Neither decoder can be stopped, so this goes on after the future was dropped.
        spawn_local(async move {
            let decoded = match decoder {
                None => image::decode(&file, || sender.is_canceled()).await,
                Some(decoder) => image::decode_with(decoder, &file, header).await,
            };
            drop(turn);
            // The receiver is gone if the request was cancelled.
            let _ = sender.send(decoded);
        });
        Box::pin(async move {
            let ended = || Err(ImageError::Invalid("the decoder has ended".into()));
            receiver.await.unwrap_or_else(|_| ended())
        })
    }

    fn fetch_image(&self, url: &str, max_bytes: usize) -> FetchedImage {
        Box::pin(remote_image::fetch(
            self.options.again(),
            url.to_owned(),
            max_bytes,
        ))
    }

    fn warn(&self, message: &str) {
        gloo::console::warn!(message);
    }
}
