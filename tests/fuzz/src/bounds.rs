//! The memory that an input may take. An input that takes more ends the process, which libFuzzer reports. libFuzzer itself
//! bounds the time.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Memory that one run may take: `base_bytes`, and `per_input_byte` for each byte of the input.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    pub base_bytes: usize,
    pub per_input_byte: usize,
}

/// The system allocator, which counts the bytes in use and ends the process at a limit.
struct Limited;

static IN_USE_BYTES: AtomicUsize = AtomicUsize::new(0);
static LIMIT_BYTES: AtomicUsize = AtomicUsize::new(usize::MAX);

// SAFETY: forwards everything to `System`; the default `alloc_zeroed` and `realloc` call these two.
unsafe impl GlobalAlloc for Limited {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let in_use = IN_USE_BYTES.fetch_add(layout.size(), Relaxed) + layout.size();
        if in_use > LIMIT_BYTES.load(Relaxed) {
            // The message allocates.
            LIMIT_BYTES.store(usize::MAX, Relaxed);
            eprintln!(
                "an allocation of {} bytes exceeds the bound: {in_use} bytes are in use",
                layout.size()
            );
            std::process::abort();
        }
        // SAFETY: the caller upholds the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        IN_USE_BYTES.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the caller upholds the contract of `dealloc`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Limited = Limited;

/// Runs `work` on an input of `input_bytes` within the bounds.
pub fn run(bounds: Bounds, input_bytes: usize, work: impl FnOnce()) {
    let allowed = bounds.base_bytes + bounds.per_input_byte * input_bytes;
    LIMIT_BYTES.store(IN_USE_BYTES.load(Relaxed) + allowed, Relaxed);
    work();
    LIMIT_BYTES.store(usize::MAX, Relaxed);
}
