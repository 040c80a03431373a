//! Chooses the device of a load: the one that was asked for, or the best that there is.
//!
//! `auto` takes the CPU instead of a software adapter: with the embedded model in Chromium the software adapter decodes
//! 108 to 150 tokens/s and the CPU device 613. A GPU whose kernels fail the self-test is replaced in the same load.

use serde::{Deserialize, Serialize};

use crate::{
    Error, Result,
    device::{ComputeDevice, CpuOptions, GpuOptions},
};

/// The device that a load asks for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "lowercase")]
pub enum DeviceChoice {
    /// A hardware GPU whose kernels pass the self-test, else the CPU.
    #[default]
    Auto,
    /// WebGPU, on a software adapter too.
    WebGpu,
    /// The CPU.
    Cpu,
}

/// The device of a load, and why it is that one.
pub struct ChosenDevice {
    /// The device.
    pub(super) device: ComputeDevice,
    /// The reason why it is not a GPU, where a GPU would have been preferred.
    pub(super) reason: Option<String>,
    /// The CPU, if it is to be used when no kernels compute correctly on the device.
    pub(super) fallback: Option<CpuOptions>,
}

impl From<ComputeDevice> for ChosenDevice {
    /// This device and no other.
    fn from(device: ComputeDevice) -> Self {
        ChosenDevice {
            device,
            reason: None,
            fallback: None,
        }
    }
}

impl ChosenDevice {
    /// The device.
    pub fn device(&self) -> &ComputeDevice {
        &self.device
    }

    /// Requests the device that `choice` asks for.
    ///
    /// # Errors
    /// Same as [`ComputeDevice::gpu`], if the choice is [`DeviceChoice::WebGpu`].
    pub async fn request(
        choice: DeviceChoice,
        gpu: GpuOptions,
        cpu: CpuOptions,
    ) -> Result<ChosenDevice> {
        match choice {
            DeviceChoice::WebGpu => Ok(ComputeDevice::gpu(gpu).await?.into()),
            DeviceChoice::Cpu => Ok(ComputeDevice::cpu(cpu).into()),
            DeviceChoice::Auto => {
                let hardware = GpuOptions {
                    hardware_only: true,
                    ..gpu
                };
                match ComputeDevice::gpu(hardware).await {
                    Ok(device) => Ok(ChosenDevice {
                        device,
                        reason: None,
                        fallback: Some(cpu),
                    }),
                    Err(error) => Ok(ChosenDevice::cpu_because(cpu, &error)),
                }
            }
        }
    }

    /// Adds an explanation where the CPU was chosen instead of a GPU.
    #[must_use]
    pub fn because(mut self, reason: &str) -> ChosenDevice {
        if self.reason.is_some() {
            self.reason = Some(reason.to_owned());
        }
        self
    }

    /// The CPU instead of a GPU that failed.
    pub(super) fn cpu_because(cpu: CpuOptions, error: &Error) -> ChosenDevice {
        ChosenDevice {
            device: ComputeDevice::cpu(cpu),
            reason: Some(error.to_string()),
            fallback: None,
        }
    }
}
