//! The environment of the endpoint: the time, timers and a log. The browser's
//! implementation is in `web`; the one here is for native tests and tools.

use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;

use crate::engine::{Clock, Permit};
use crate::images::{FileHeader, Image};

/// An image that is being decoded.
pub type DecodedImage = Pin<Box<dyn Future<Output = Result<Image, ImageError>>>>;

/// The file of an image that is being fetched. Dropping it ends the request.
pub type FetchedImage = Pin<Box<dyn Future<Output = Result<Vec<u8>, ImageError>>>>;

/// The reason why there are no pixels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ImageError {
    /// The file or the URL cannot be used.
    Invalid(String),
    /// This host decodes no images.
    Unsupported(String),
}

impl From<String> for ImageError {
    fn from(reason: String) -> ImageError {
        ImageError::Invalid(reason)
    }
}

/// The environment of a handler.
pub trait Host: Clock {
    /// Minutes by which local clocks are ahead of UTC. Only dates in chat templates depend on it.
    fn utc_offset_minutes(&self) -> i32 {
        0
    }
    /// Decodes an image's file: its first frame, in the orientation that it names, on white. A decoder that goes on after
    /// the future was dropped keeps `_turn` until it has ended: meanwhile nothing else is decoded.
    fn decode_image(
        &self,
        _file: Rc<[u8]>,
        _header: FileHeader,
        _turn: Rc<Permit>,
    ) -> DecodedImage {
        let reason = "images are not decoded here".to_owned();
        Box::pin(async { Err(ImageError::Unsupported(reason)) })
    }
    /// Fetches the file of an image, which may have `max_bytes`, from an `http:` or `https:` URL.
    fn fetch_image(&self, _url: &str, _max_bytes: usize) -> FetchedImage {
        let reason = "URLs are fetched in web pages only: send a data: URL".to_owned();
        Box::pin(async { Err(ImageError::Unsupported(reason)) })
    }
    /// Warns the page's developer (`console.warn`).
    fn warn(&self, message: &str);
}

/// The operating system's clock, a thread per timer, and standard error.
#[cfg(not(target_arch = "wasm32"))]
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemHost;

#[cfg(not(target_arch = "wasm32"))]
impl Clock for SystemHost {
    fn now_ms(&self) -> u64 {
        std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .map_or(0, |elapsed| elapsed.as_millis() as u64)
    }

    fn monotonic_ms(&self) -> f64 {
        static START: std::sync::LazyLock<std::time::Instant> =
            std::sync::LazyLock::new(std::time::Instant::now);
        START.elapsed().as_secs_f64() * 1000.0
    }

    fn sleep_ms(&self, duration_ms: u32) -> Pin<Box<dyn Future<Output = ()>>> {
        let (sender, receiver) = futures_channel::oneshot::channel();
        std::thread::spawn(move || {
            std::thread::sleep(std::time::Duration::from_millis(duration_ms.into()));
            // An error means that the timer was dropped.
            let _ = sender.send(());
        });
        Box::pin(async move {
            let _ = receiver.await;
        })
    }
}

#[cfg(not(target_arch = "wasm32"))]
impl Host for SystemHost {
    fn decode_image(&self, file: Rc<[u8]>, header: FileHeader, _turn: Rc<Permit>) -> DecodedImage {
        Box::pin(async move { Ok(Image::decode(&file, header)?) })
    }

    fn warn(&self, message: &str) {
        eprintln!("{message}");
    }
}
