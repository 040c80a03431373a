//! `--device` and `--threads`: where the command-line tools compute.

use inpage::{
    Result,
    device::{ComputeDevice, CpuOptions, GpuOptions},
    runtime::{ChosenDevice, DeviceChoice},
};

/// The device that `--device` names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeviceName {
    /// The devices that pages choose from.
    Of(DeviceChoice),
    /// The kernels' twins: slow and exact.
    Reference,
}

impl DeviceName {
    /// # Errors
    /// Fails when there is no such device.
    pub fn parse(name: &str) -> std::result::Result<DeviceName, String> {
        match name {
            "auto" => Ok(DeviceName::Of(DeviceChoice::Auto)),
            "gpu" => Ok(DeviceName::Of(DeviceChoice::WebGpu)),
            "cpu" => Ok(DeviceName::Of(DeviceChoice::Cpu)),
            "reference" => Ok(DeviceName::Reference),
            other => Err(format!(
                "--device is auto, gpu, cpu or reference, not {other}"
            )),
        }
    }

    /// Requests the device; on the CPU with `threads` threads, as many as there are cores if `None`.
    ///
    /// # Errors
    /// Same as [`ComputeDevice::gpu`].
    pub async fn request(self, threads: Option<usize>) -> Result<ChosenDevice> {
        let DeviceName::Of(choice) = self else {
            return Ok(ComputeDevice::reference().into());
        };
        let all = CpuOptions::default();
        let cpu = CpuOptions {
            threads: threads.unwrap_or(all.threads),
            ..all
        };
        ChosenDevice::request(choice, GpuOptions::default(), cpu).await
    }
}

/// A number of threads.
///
/// # Errors
/// Fails when the text is no number of threads.
pub fn parse_threads(given: &str) -> std::result::Result<usize, String> {
    let threads = given.parse().ok().filter(|threads| *threads > 0);
    threads.ok_or_else(|| format!("--threads is a number from 1, not {given}"))
}
