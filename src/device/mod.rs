//! The devices that models compute on: one type for all, their reports, and captured graphs.
//! Kernels and models belong to the modules above.
//!
//! | file | part |
//! |---|---|
//! | `compute_device` | the GPU, the CPU or the reference, and all that may be asked of them |
//! | `cpu` | the CPU: its threads, its turns |
//! | `gpu` | the adapter, the wgpu device, its loss |
//! | `report` | what was found |
//! | `runtime` | burn's runtime on a wgpu device, without a kernel compiler |
//! | `graph` | recorded launches |
//! | `transfer` | tensors from values and values from tensors |

mod compute_device;
mod cpu;
mod gpu;
mod graph;
mod report;
mod runtime;
mod transfer;

pub use compute_device::ComputeDevice;
pub use cpu::{Cpu, CpuOptions};
pub use gpu::{BrowserWebGpu, Gpu, GpuOptions, Pending};
pub use graph::Graph;
pub use report::{BrowserDevice, DeviceKind, DeviceReport};
pub use transfer::{read, read_all, reserve_words, upload, upload_words};
