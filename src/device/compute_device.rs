//! The device that a model runs on. The only place that distinguishes a GPU, the CPU and the reference: all
//! other code asks for what a device offers.

use burn::tensor::Device;

use super::{Cpu, CpuOptions, DeviceReport, Gpu, GpuOptions, Pending};
use crate::{Error, Result};

/// The device that has the tensors and runs the ops.
#[derive(Clone)]
#[allow(clippy::large_enum_variant)] // A handful per program.
pub enum ComputeDevice {
    /// WGSL kernels on wgpu.
    Gpu(Gpu),
    /// The kernels of `inpage_cpu`, on the threads of this program.
    Cpu(Cpu),
    /// The ops' CPU twins: slow and exact. What tests compare other devices with.
    Reference {
        /// burn's device.
        device: Device,
        /// The same for every reference.
        report: DeviceReport,
    },
}

impl ComputeDevice {
    /// The fastest GPU.
    ///
    /// # Errors
    /// Same as [`Gpu::request`].
    pub async fn gpu(options: GpuOptions) -> Result<ComputeDevice> {
        Gpu::request(options).await.map(ComputeDevice::Gpu)
    }

    /// The CPU.
    pub fn cpu(options: CpuOptions) -> ComputeDevice {
        ComputeDevice::Cpu(Cpu::new(options))
    }

    /// The CPU twins.
    pub fn reference() -> ComputeDevice {
        ComputeDevice::Reference {
            device: Device::flex(),
            report: DeviceReport::reference(),
        }
    }

    /// The device for burn's tensors.
    pub fn tensors(&self) -> &Device {
        match self {
            ComputeDevice::Gpu(gpu) => gpu.device(),
            ComputeDevice::Cpu(cpu) => &cpu.device,
            ComputeDevice::Reference { device, .. } => device,
        }
    }

    /// Whether its ops are the twins that those of other devices are compared with.
    pub fn is_reference(&self) -> bool {
        matches!(self, ComputeDevice::Reference { .. })
    }

    /// Whether its ops are the kernels of the CPU device.
    pub fn is_cpu(&self) -> bool {
        matches!(self, ComputeDevice::Cpu(_))
    }

    /// The report of the device.
    pub fn report(&self) -> &DeviceReport {
        match self {
            ComputeDevice::Gpu(gpu) => gpu.report(),
            ComputeDevice::Cpu(cpu) => &cpu.report,
            ComputeDevice::Reference { report, .. } => report,
        }
    }

    /// Largest tensor that an op can see, in bytes.
    pub fn max_binding_bytes(&self) -> u64 {
        self.report().max_binding_bytes
    }

    /// The maximum number of bytes that tensors can take, where that is known before they are allocated.
    pub fn memory_bytes(&self) -> Option<u64> {
        match self {
            ComputeDevice::Cpu(_) => Cpu::memory_bytes(),
            ComputeDevice::Gpu(_) | ComputeDevice::Reference { .. } => None,
        }
    }

    /// The GPU that records graphs for this device; `None` if its ops run at once when they are called.
    pub fn recorder(&self) -> Option<&Gpu> {
        match self {
            ComputeDevice::Gpu(gpu) => Some(gpu),
            ComputeDevice::Cpu(_) | ComputeDevice::Reference { .. } => None,
        }
    }

    /// Starts compiling kernels before they are first launched, as [`Gpu::compile_ahead`]; done at
    /// once where nothing is compiled.
    pub fn compile_ahead(&self, kernels: Vec<String>) -> Pending {
        match self {
            ComputeDevice::Gpu(gpu) => gpu.compile_ahead(kernels),
            ComputeDevice::Cpu(_) | ComputeDevice::Reference { .. } => {
                Box::pin(std::future::ready(()))
            }
        }
    }

    /// Milliseconds of a monotonic clock for measuring the device. Always 0 on the reference, so that
    /// results of tests do not depend on measurements.
    pub fn now_ms(&self) -> f64 {
        match self {
            ComputeDevice::Gpu(gpu) => gpu.now_ms(),
            ComputeDevice::Cpu(cpu) => cpu.now_ms(),
            ComputeDevice::Reference { .. } => 0.0,
        }
    }

    /// Waits for all work.
    ///
    /// # Errors
    /// Fails when the device failed.
    pub async fn sync(&self) -> Result<()> {
        match self {
            ComputeDevice::Gpu(gpu) => gpu.sync().await,
            ComputeDevice::Cpu(_) | ComputeDevice::Reference { .. } => Ok(()),
        }
    }

    /// Submits everything enqueued to the device, without waiting for it.
    ///
    /// # Errors
    /// Fails when the device failed.
    pub fn flush(&self) -> Result<()> {
        match self {
            ComputeDevice::Gpu(gpu) => gpu.flush(),
            ComputeDevice::Cpu(_) | ComputeDevice::Reference { .. } => Ok(()),
        }
    }

    /// Lets other work of this thread run, where it waits for the device's computations: on the CPU.
    pub async fn give_turn(&self) {
        if let ComputeDevice::Cpu(cpu) = self {
            cpu.give_turn().await;
        }
    }

    /// Classifies a failure of the runtime, as [`Gpu::failure`].
    pub fn failure(&self, error: impl std::fmt::Display) -> Error {
        match self {
            ComputeDevice::Gpu(gpu) => gpu.failure(error),
            ComputeDevice::Cpu(_) | ComputeDevice::Reference { .. } => {
                Error::Internal(error.to_string())
            }
        }
    }
}
