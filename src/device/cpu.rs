//! The CPU device: how it is set up, and how it lets other work of its thread run. Its kernels are in `inpage_cpu`.
//!
//! The same model code on burn's tensors. The CPU and the reference share burn's backend. An op calls its function
//! `cpu` instead of its twin where the matrix consists of panels, or where the variant is that of the CPU. So there is
//! no second engine, and the twins stay simple.
//!
//! The worker's events get a turn every 12 ms. On a GPU a step waits for the device, and requests and aborts arrive
//! meanwhile. On the CPU the step itself occupies the thread.

use std::cell::Cell;
use std::rc::Rc;

use burn::tensor::Device;
use inpage_cpu::{product, team};

use super::{DeviceReport, Pending};

/// Steps compute on the thread that also receives requests and aborts. After this long they let it do so.
const TURN_MS: f64 = 12.0;

/// Left for what is not tensors where addresses have 32 bits: static data, tokenizer, requests, a chunk of the file
/// that is being read. A load of 1.1 GB was measured to take 40 MiB for these; fragments of memory cannot be used.
const PROGRAM_BYTES: u64 = 192 << 20;

/// The options of the CPU device.
#[derive(Clone)]
pub struct CpuOptions {
    /// Threads that compute, the calling one included. On wasm32 the host has started them already.
    pub threads: usize,
    /// Milliseconds of a monotonic clock.
    pub now_ms: fn() -> f64,
    /// Lets the events of the thread's loop run; `None` where no loop waits for this thread.
    pub next_turn: Option<Rc<dyn Fn() -> Pending>>,
}

#[cfg(not(target_arch = "wasm32"))]
impl Default for CpuOptions {
    /// The options for all cores of the machine, without turns for other work of the thread.
    fn default() -> Self {
        CpuOptions {
            threads: std::thread::available_parallelism().map_or(1, usize::from),
            now_ms: super::GpuOptions::default().now_ms,
            next_turn: None,
        }
    }
}

/// The CPU device, shared by all users of a program.
#[derive(Clone)]
pub struct Cpu {
    pub(super) device: Device,
    pub(super) report: DeviceReport,
    options: CpuOptions,
    /// The time when the last turn of the event loop ended.
    turned_ms: Rc<Cell<f64>>,
}

impl Cpu {
    /// Starts the threads. The first call in a program decides on their number.
    pub fn new(options: CpuOptions) -> Cpu {
        team::start(options.threads);
        Cpu {
            device: Device::flex(),
            report: DeviceReport::cpu(product::threads()),
            turned_ms: Rc::new(Cell::new((options.now_ms)())),
            options,
        }
    }

    /// The maximum number of bytes that tensors can take: where addresses have 32 bits, what the rest of the program leaves.
    pub(super) fn memory_bytes() -> Option<u64> {
        (usize::BITS == 32).then_some((1 << 32) - PROGRAM_BYTES)
    }

    /// Milliseconds of a monotonic clock.
    pub fn now_ms(&self) -> f64 {
        (self.options.now_ms)()
    }

    /// Lets the events of the thread's loop run, if they have waited for long.
    pub async fn give_turn(&self) {
        let Some(next_turn) = &self.options.next_turn else {
            return;
        };
        if self.now_ms() - self.turned_ms.get() > TURN_MS {
            next_turn().await;
            self.turned_ms.set(self.now_ms());
        }
    }
}
