//! Where a model computes: a GPU with the kernels proven on it, or the ops' CPU twins. Knows no
//! layers.

use burn::tensor::Device;

use crate::{Error, Result, device::Gpu, ops::Variant};

/// Where a model computes.
#[allow(clippy::large_enum_variant)] // A handful per program.
#[derive(Clone)]
pub enum Compute {
    /// WGSL kernels.
    Gpu {
        /// The device.
        gpu: Gpu,
        /// The form of the kernels that was proven on it.
        variant: Variant,
    },
    /// The ops' CPU twins.
    Cpu(Device),
}

impl Compute {
    /// The reference on the CPU.
    pub fn cpu() -> Compute {
        Compute::Cpu(Device::flex())
    }

    /// The device of the tensors.
    pub fn device(&self) -> &Device {
        match self {
            Compute::Gpu { gpu, .. } => gpu.device(),
            Compute::Cpu(device) => device,
        }
    }

    /// The form of the kernels.
    pub fn variant(&self) -> Variant {
        match self {
            Compute::Gpu { variant, .. } => *variant,
            Compute::Cpu(_) => Variant::PORTABLE,
        }
    }

    /// Largest tensor a kernel can see, in bytes.
    pub fn max_binding_bytes(&self) -> u64 {
        match self {
            Compute::Gpu { gpu, .. } => gpu.report().max_binding_bytes,
            Compute::Cpu(_) => u64::MAX,
        }
    }

    /// Milliseconds of a monotonic clock; the CPU backend has none, and nothing runs ahead there.
    pub fn now_ms(&self) -> f64 {
        match self {
            Compute::Gpu { gpu, .. } => gpu.now_ms(),
            Compute::Cpu(_) => 0.0,
        }
    }

    /// Waits for all work.
    ///
    /// # Errors
    /// When the device failed.
    pub async fn sync(&self) -> Result<()> {
        match self {
            Compute::Gpu { gpu, .. } => gpu.sync().await,
            Compute::Cpu(_) => Ok(()),
        }
    }

    /// Hands everything enqueued to the device, without waiting for it.
    ///
    /// # Errors
    /// When the device failed.
    pub fn flush(&self) -> Result<()> {
        match self {
            Compute::Gpu { gpu, .. } => gpu.flush(),
            Compute::Cpu(_) => Ok(()),
        }
    }

    pub(super) fn failure(&self, error: impl std::fmt::Display) -> Error {
        match self {
            Compute::Gpu { gpu, .. } => gpu.failure(error),
            Compute::Cpu(_) => Error::Internal(error.to_string()),
        }
    }
}
