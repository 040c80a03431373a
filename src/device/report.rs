//! The report of a device.

use serde::Serialize;

/// Facts about a device that the browser tells JavaScript, but wgpu does not tell Rust.
#[derive(Debug, Clone, Default)]
pub struct BrowserDevice {
    /// The adapter's name; may be empty.
    pub adapter: String,
    /// The device was given subgroup operations (wgpu neither asks for them nor reports them).
    pub subgroups: bool,
    /// The WGSL language feature `packed_4x8_integer_dot_product` is supported.
    pub packed_dot: bool,
}

/// The kind of device that a model computes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "lowercase")]
pub enum DeviceKind {
    /// A GPU, or a software adapter, through WebGPU.
    WebGpu,
    /// The kernels for the CPU.
    Cpu,
    /// The kernels' twins: slow and exact, for tests.
    Reference,
}

/// A device's description, for `engine.info()` and for bug reports.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "camelCase")]
pub struct DeviceReport {
    /// The kind of the device.
    pub device: DeviceKind,
    /// Threads that compute; 0 where that is not known.
    pub threads: usize,
    /// The adapter's own description.
    pub adapter: String,
    /// The API underneath: `BrowserWebGpu`, `Vulkan`, ...; `Cpu`; `Reference` for the CPU twins.
    pub backend: String,
    /// The adapter computes on the CPU (SwiftShader, lavapipe, WARP).
    pub software_adapter: bool,
    /// The device has subgroup operations.
    pub subgroups: bool,
    /// Shaders can compute in f16.
    pub shader_f16: bool,
    /// Shaders can multiply four bytes at once (a language feature that some browsers lack).
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

impl DeviceReport {
    /// The CPU, which is limited by the address space only.
    pub(super) fn cpu(threads: usize) -> DeviceReport {
        let max_bytes = isize::MAX as u64;
        DeviceReport {
            device: DeviceKind::Cpu,
            threads,
            adapter: format!("CPU ({})", inpage_cpu::product::instruction_set()),
            backend: "Cpu".into(),
            software_adapter: false,
            max_buffer_bytes: max_bytes,
            max_binding_bytes: max_bytes,
            ..DeviceReport::reference()
        }
    }

    /// The CPU twins: no limits that matter, and none of a GPU's features.
    pub(super) fn reference() -> DeviceReport {
        DeviceReport {
            device: DeviceKind::Reference,
            threads: 1,
            adapter: "CPU reference".into(),
            backend: "Reference".into(),
            software_adapter: true,
            subgroups: false,
            shader_f16: false,
            packed_dot: false,
            subgroup_min_lanes: 0,
            max_buffer_bytes: u64::MAX,
            max_binding_bytes: u64::MAX,
            max_storage_buffers: u32::MAX,
            max_workgroup_lanes: 1,
        }
    }
}
