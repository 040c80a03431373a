//! GPU devices for tests, shared by the tests of a process. A device of cubecl has threads that poll until the process ends,
//! and compiles each kernel once: a device per test would take most of the cores' time.

use std::sync::{Mutex, PoisonError};

use inpage::device::{Gpu, GpuOptions};
use pollster::block_on;

/// Devices that no test is using.
static IDLE: Mutex<Vec<Gpu>> = Mutex::new(Vec::new());

/// A device that a test has for itself until its thread ends. Its memory is shared with later tests.
struct Lease(Gpu);

impl Lease {
    fn take() -> Lease {
        let idle = IDLE.lock().unwrap_or_else(PoisonError::into_inner).pop();
        Lease(idle.unwrap_or_else(new_gpu))
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        // A test that lost its device must not pass it on.
        if self.0.lost().is_none() {
            let mut idle = IDLE.lock().unwrap_or_else(PoisonError::into_inner);
            idle.push(self.0.clone());
        }
    }
}

thread_local! {
    static LEASE: Lease = Lease::take();
}

/// A device that no other test uses, whose memory is zero.
pub fn new_gpu() -> Gpu {
    block_on(Gpu::request(GpuOptions::default()))
        .expect("a GPU device (a Vulkan driver, perhaps lavapipe)")
}

/// The device of this test, which runs on a thread of its own.
pub fn gpu() -> Gpu {
    LEASE.with(|lease| lease.0.clone())
}
