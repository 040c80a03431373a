//! What the endpoint needs from its environment: the time, timers and a log. The browser's
//! implementation is in `web`; the one here is for native tests and tools.

use std::future::Future;
use std::pin::Pin;

/// The environment of a handler.
pub trait Host {
    /// Milliseconds since 1970.
    fn now_ms(&self) -> u64;
    /// Completes after `duration_ms`.
    fn sleep_ms(&self, duration_ms: u32) -> Pin<Box<dyn Future<Output = ()>>>;
    /// How many minutes local clocks are ahead of UTC. Only dates in chat templates depend on it.
    fn utc_offset_minutes(&self) -> i32 {
        0
    }
    /// Warns the page's developer (`console.warn`).
    fn warn(&self, message: &str);
}

/// The operating system's clock, a thread per timer, and standard error.
#[cfg(not(target_arch = "wasm32"))]
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemHost;

#[cfg(not(target_arch = "wasm32"))]
impl Host for SystemHost {
    fn now_ms(&self) -> u64 {
        std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .map_or(0, |elapsed| elapsed.as_millis() as u64)
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

    fn warn(&self, message: &str) {
        eprintln!("{message}");
    }
}
