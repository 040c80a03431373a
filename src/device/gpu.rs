//! The GPU: requests an adapter and a device with what inpage needs, hands the device to burn, and
//! classifies its failures.
//!
//! A buffer per tensor (`MemoryConfiguration::ExclusivePages`). WebGPU forbids a buffer to be read-only and writable in
//! one dispatch, and kernels declare what they only read.

use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::{Arc, Mutex};

use burn::{cubecl::prelude::Client, tensor::Device};
use burn_wgpu::WgpuSetup;

use super::{BrowserDevice, DeviceKind, DeviceReport, runtime::hand_to_burn};
use crate::{Error, Result};

/// Work that was started and is done when the future completes.
pub type Pending = Pin<Box<dyn Future<Output = ()>>>;

/// The options of a request for a GPU.
#[derive(Clone)]
pub struct GpuOptions {
    /// Refuses adapters that compute on the CPU.
    pub hardware_only: bool,
    /// The functions that JavaScript adds to wgpu; only in a browser.
    pub browser: Option<BrowserWebGpu>,
    /// Milliseconds of a monotonic clock.
    pub now_ms: fn() -> f64,
}

/// Functions of JavaScript for a WebGPU device that wgpu lacks.
#[derive(Clone)]
pub struct BrowserWebGpu {
    /// The function that describes the device once it is created.
    pub describe: Rc<dyn Fn() -> BrowserDevice>,
    /// Starts compiling WGSL sources for pipelines that will be requested, all at once and while the
    /// device does other work; done when all are compiled or refused.
    pub compile_ahead: Rc<dyn Fn(Vec<String>) -> Pending>,
}

#[cfg(not(target_arch = "wasm32"))]
impl Default for GpuOptions {
    fn default() -> Self {
        fn now_ms() -> f64 {
            static START: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
            let start = START.get_or_init(std::time::Instant::now);
            start.elapsed().as_secs_f64() * 1e3
        }
        GpuOptions {
            hardware_only: false,
            browser: None,
            now_ms,
        }
    }
}

/// A GPU device, shared with burn.
#[derive(Clone)]
pub struct Gpu {
    device: Device,
    pub(super) client: Client,
    wgpu: wgpu::Device,
    report: DeviceReport,
    lost: Arc<Mutex<Option<String>>>,
    // A native program can use a device on any thread, what JavaScript does belongs to one.
    #[cfg(target_arch = "wasm32")]
    browser: Option<BrowserWebGpu>,
    now_ms: fn() -> f64,
}

impl Gpu {
    /// Requests the fastest adapter and a device with all of its limits.
    ///
    /// # Errors
    /// [`Error::NoDevice`] if there is no adapter, the device is refused, or the adapter is software where hardware is
    /// required.
    pub async fn request(options: GpuOptions) -> Result<Gpu> {
        let instance = wgpu::Instance::new(wgpu::InstanceDescriptor {
            backends: wgpu::Backends::PRIMARY,
            ..wgpu::InstanceDescriptor::new_without_display_handle()
        });
        let adapter = instance
            .request_adapter(&wgpu::RequestAdapterOptions {
                power_preference: wgpu::PowerPreference::HighPerformance,
                ..Default::default()
            })
            .await
            .map_err(|error| Error::NoDevice(error.to_string()))?;
        let info = adapter.get_info();
        let features = adapter.features() & (wgpu::Features::SUBGROUP | wgpu::Features::SHADER_F16);
        let (device, queue) = adapter
            .request_device(&wgpu::DeviceDescriptor {
                label: Some("inpage"),
                required_features: features,
                required_limits: adapter.limits(),
                memory_hints: wgpu::MemoryHints::MemoryUsage,
                ..Default::default()
            })
            .await
            .map_err(|error| Error::NoDevice(error.to_string()))?;
        let described = options.browser.as_ref().map(|browser| (browser.describe)());
        let report = report(&adapter, features, described);
        if options.hardware_only && report.software_adapter {
            device.destroy();
            return Err(Error::NoDevice(format!(
                "{} is a software adapter",
                report.adapter
            )));
        }
        let lost = Arc::new(Mutex::new(None));
        let seen = lost.clone();
        device.set_device_lost_callback(move |reason, message| {
            // Dropping the device is not a loss.
            if reason != wgpu::DeviceLostReason::Destroyed {
                *seen.lock().unwrap_or_else(|e| e.into_inner()) = Some(message);
            }
        });
        let setup = WgpuSetup {
            backend: info.backend,
            instance,
            adapter,
            device: device.clone(),
            queue,
        };
        let (cube, client) = hand_to_burn(setup).map_err(Error::NoDevice)?;
        Ok(Gpu {
            client,
            device: Device::from(cube),
            wgpu: device,
            report,
            lost,
            #[cfg(target_arch = "wasm32")]
            browser: options.browser,
            now_ms: options.now_ms,
        })
    }

    /// The device for burn's tensors.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Starts compiling kernels, given as WGSL sources, before they are first launched, where the
    /// platform can do that without blocking the device. A kernel that is refused is refused again,
    /// with an error, when it is launched.
    pub fn compile_ahead(&self, kernels: Vec<String>) -> Pending {
        #[cfg(target_arch = "wasm32")]
        if let Some(browser) = &self.browser {
            return (browser.compile_ahead)(kernels);
        }
        drop(kernels);
        Box::pin(std::future::ready(()))
    }

    /// Milliseconds of a monotonic clock, for measuring the device.
    pub fn now_ms(&self) -> f64 {
        (self.now_ms)()
    }

    /// The report of the device.
    pub fn report(&self) -> &DeviceReport {
        &self.report
    }

    /// The reason why the device was lost; `None` if it was not.
    pub fn lost(&self) -> Option<String> {
        self.lost.lock().unwrap_or_else(|e| e.into_inner()).clone()
    }

    /// Loses the device on purpose, for tests: later calls must fail cleanly.
    pub fn destroy(&self) {
        *self.lost.lock().unwrap_or_else(|e| e.into_inner()) = Some("destroyed".into());
        self.wgpu.destroy();
    }

    /// Waits until all submitted work is done.
    ///
    /// # Errors
    /// [`Error::DeviceLost`] or [`Error::Internal`] if the work failed.
    pub async fn sync(&self) -> Result<()> {
        let done = self.client.sync().await;
        done.map_err(|error| self.failure(error))
    }

    /// Submits everything enqueued to the device, without waiting for it.
    ///
    /// # Errors
    /// Same as [`Gpu::sync`].
    pub fn flush(&self) -> Result<()> {
        self.client.flush().map_err(|error| self.failure(error))
    }

    /// Classifies a failure of the runtime: a lost device explains every other error.
    pub fn failure(&self, error: impl std::fmt::Display) -> Error {
        if let Some(why) = self.lost() {
            return Error::DeviceLost(why);
        }
        let text = error.to_string();
        let lower = text.to_lowercase();
        if lower.contains("out of memory") || lower.contains("outofmemory") {
            Error::OutOfMemory(text)
        } else if lower.contains("device") && lower.contains("lost") {
            Error::DeviceLost(text)
        } else {
            Error::Internal(text)
        }
    }
}

/// `described` is what the browser adds; `None` outside of browsers.
fn report(
    adapter: &wgpu::Adapter,
    features: wgpu::Features,
    described: Option<BrowserDevice>,
) -> DeviceReport {
    let (info, limits) = (adapter.get_info(), adapter.limits());
    // A language feature, which every native compiler has.
    let packed_dot = described.as_ref().is_none_or(|it| it.packed_dot);
    let described = described.unwrap_or_default();
    let subgroups = info.subgroup_min_size > 0
        && (features.contains(wgpu::Features::SUBGROUP) || described.subgroups);
    let names = [described.adapter, info.name];
    let name = names.into_iter().find(|name| !name.is_empty());
    let name = name.unwrap_or_else(|| "unnamed adapter".into());
    DeviceReport {
        device: DeviceKind::WebGpu,
        threads: 0,
        software_adapter: info.device_type == wgpu::DeviceType::Cpu
            || ["swiftshader", "llvmpipe", "warp", "basic render"]
                .iter()
                .any(|software| name.to_lowercase().contains(software)),
        adapter: name,
        backend: format!("{:?}", info.backend),
        subgroups,
        shader_f16: features.contains(wgpu::Features::SHADER_F16),
        packed_dot,
        subgroup_min_lanes: if subgroups { info.subgroup_min_size } else { 0 },
        max_buffer_bytes: limits.max_buffer_size,
        max_binding_bytes: limits.max_storage_buffer_binding_size,
        max_storage_buffers: limits.max_storage_buffers_per_shader_stage,
        max_workgroup_lanes: limits.max_compute_invocations_per_workgroup,
    }
}
