//! The GPU: asks for an adapter and a device with what inpage needs, hands it to burn, reports what
//! it got, and records graphs. Knows nothing of kernels or models.

mod graph;

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use burn::{backend::CubeDevice, cubecl::prelude::Client, tensor::Device};
use burn_wgpu::{MemoryConfiguration, RuntimeOptions, WgpuSetup, try_init_device};
use serde::Serialize;

use crate::{Error, Result};
pub use graph::{ALIVE, Graph};

/// What is still to come of work that was begun.
pub type Begun = Pin<Box<dyn Future<Output = ()>>>;

/// What to ask for.
#[derive(Debug, Clone, Copy)]
pub struct GpuOptions {
    /// On the web: asked, once the device is there, for what wgpu does not tell.
    pub browser: Option<fn() -> BrowserDevice>,
    /// On the web: begins to compile WGSL texts for pipelines that will be asked for, all at once and
    /// beside whatever the device does; done when all are compiled or refused.
    pub compile_ahead: Option<fn(Vec<String>) -> Begun>,
    /// Milliseconds of a monotonic clock.
    pub now_ms: fn() -> f64,
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
            browser: None,
            compile_ahead: None,
            now_ms,
        }
    }
}

/// What the browser tells JavaScript of a device, but wgpu does not tell Rust.
#[derive(Debug, Clone, Default)]
pub struct BrowserDevice {
    /// The adapter in words; may be empty.
    pub adapter: String,
    /// The device was given subgroup operations (wgpu neither asks for them nor reports them).
    pub subgroups: bool,
    /// The WGSL language feature `packed_4x8_integer_dot_product` is there.
    pub packed_dot: bool,
}

/// What was found, for `engine.info()` and for bug reports.
#[derive(Debug, Clone, Serialize)]
pub struct GpuReport {
    /// The adapter's own description.
    pub adapter: String,
    /// The API underneath: `BrowserWebGpu`, `Vulkan`, ...
    pub backend: String,
    /// The adapter computes on the CPU (SwiftShader, lavapipe, WARP).
    pub software_adapter: bool,
    /// The device has subgroup operations.
    pub subgroups: bool,
    /// Shaders can compute in f16.
    pub shader_f16: bool,
    /// Shaders can multiply four bytes at once (a language feature; in some browsers missing).
    pub packed_dot: bool,
    /// Smallest subgroup of the device, in lanes (0: unknown).
    pub subgroup_min_lanes: u32,
    /// Largest buffer, in bytes.
    pub max_buffer_bytes: u64,
    /// Largest part of a buffer that a kernel can see, in bytes.
    pub max_binding_bytes: u64,
    /// Storage buffers a kernel can have.
    pub max_storage_buffers: u32,
    /// Lanes a workgroup can have.
    pub max_workgroup_lanes: u32,
}

/// A GPU device, shared with burn.
#[derive(Clone)]
pub struct Gpu {
    device: Device,
    client: Client,
    wgpu: wgpu::Device,
    report: GpuReport,
    lost: Arc<Mutex<Option<String>>>,
    compile_ahead: Option<fn(Vec<String>) -> Begun>,
    now_ms: fn() -> f64,
}

impl Gpu {
    /// Asks for the fastest adapter and a device with all of its limits.
    ///
    /// # Errors
    /// [`Error::NoDevice`] if there is no adapter or the device is refused.
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
        let limits = adapter.limits();
        let (device, queue) = adapter
            .request_device(&wgpu::DeviceDescriptor {
                label: Some("inpage"),
                required_features: features,
                required_limits: limits.clone(),
                memory_hints: wgpu::MemoryHints::MemoryUsage,
                ..Default::default()
            })
            .await
            .map_err(|error| Error::NoDevice(error.to_string()))?;
        let browser = options.browser.map(|ask| ask()).unwrap_or_default();
        let subgroups = info.subgroup_min_size > 0
            && (features.contains(wgpu::Features::SUBGROUP) || browser.subgroups);
        let names = [browser.adapter, info.name.clone()];
        let name = names.into_iter().find(|name| !name.is_empty());
        let name = name.unwrap_or_else(|| "unnamed adapter".into());
        let report = GpuReport {
            adapter: name.clone(),
            backend: format!("{:?}", info.backend),
            software_adapter: info.device_type == wgpu::DeviceType::Cpu
                || ["swiftshader", "llvmpipe", "warp", "basic render"]
                    .iter()
                    .any(|software| name.to_lowercase().contains(software)),
            subgroups,
            shader_f16: features.contains(wgpu::Features::SHADER_F16),
            packed_dot: options.browser.is_none() || browser.packed_dot,
            subgroup_min_lanes: if subgroups { info.subgroup_min_size } else { 0 },
            max_buffer_bytes: limits.max_buffer_size,
            max_binding_bytes: limits.max_storage_buffer_binding_size,
            max_storage_buffers: limits.max_storage_buffers_per_shader_stage,
            max_workgroup_lanes: limits.max_compute_invocations_per_workgroup,
        };
        let lost = Arc::new(Mutex::new(None));
        let seen = lost.clone();
        device.set_device_lost_callback(move |reason, message| {
            // Dropping the device is not a loss.
            if reason != wgpu::DeviceLostReason::Destroyed {
                *seen.lock().unwrap_or_else(|e| e.into_inner()) = Some(message);
            }
        });
        let setup = WgpuSetup {
            instance,
            adapter,
            device: device.clone(),
            queue,
            backend: info.backend,
        };
        let runtime = RuntimeOptions {
            // One submit holds several decode steps; the default of 32 would split each of them.
            tasks_max: 4096,
            // A buffer per tensor: kernels declare their inputs read-only, and WebGPU forbids one
            // buffer to be read-only and writable in the same dispatch.
            memory_config: MemoryConfiguration::ExclusivePages,
        };
        let cube = CubeDevice::Wgpu(
            try_init_device(setup, runtime).map_err(|error| Error::NoDevice(error.to_string()))?,
        );
        Ok(Gpu {
            client: cube.client(),
            device: Device::from(cube),
            wgpu: device,
            report,
            lost,
            compile_ahead: options.compile_ahead,
            now_ms: options.now_ms,
        })
    }

    /// The device for burn's tensors.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Begins at once to compile kernels, given as WGSL texts, before they are first launched, where
    /// the platform can do that without holding up the device. A kernel that is refused is refused
    /// again, with an error, when it is launched.
    pub fn compile_ahead(&self, kernels: Vec<String>) -> Begun {
        match self.compile_ahead {
            Some(compile_ahead) => compile_ahead(kernels),
            None => Box::pin(std::future::ready(())),
        }
    }

    /// Milliseconds of a monotonic clock, for measuring the device.
    pub fn now_ms(&self) -> f64 {
        (self.now_ms)()
    }

    /// What was found.
    pub fn report(&self) -> &GpuReport {
        &self.report
    }

    /// Why the device was lost, if it was.
    pub fn lost(&self) -> Option<String> {
        self.lost.lock().unwrap_or_else(|e| e.into_inner()).clone()
    }

    /// Loses the device on purpose: what follows must fail cleanly.
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

    /// Hands everything enqueued to the device, without waiting for it.
    ///
    /// # Errors
    /// As [`Gpu::sync`].
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
