//! burn's runtime on a wgpu device, for kernels that are WGSL already.
//!
//! The runtime's own constructor brings in cubecl's kernel compiler, which no kernel here needs. This one has a compiler
//! that passes WGSL on and refuses everything else. So burn's tensor operations that need a kernel of their own fail on this
//! device: use those of `ops`, [`super::upload`] and [`super::read`].
//!
//! Kernels of burn cannot run on the GPU. burn compiles its own kernels with cubecl, whose compiler was half of the
//! wasm module. This file starts burn's runtime with a compiler that passes WGSL on and refuses everything
//! else, `device/transfer.rs` creates and reads tensors without conversions, and `src/inventory` stands in for a crate
//! whose constructors keep all of the compiler's IR linked. Clippy refuses the tensor operations of burn that need such
//! kernels (`clippy.toml`), and the budget of code in `scripts/size.mjs` notices whatever else links the compiler
//! again.

use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering};

use burn::backend::CubeDevice;
use burn::cubecl::{
    CompilationError, Compiler, CubeKernel, WgpuCompilationOptions,
    client::Client,
    device::{WgpuDevice, WgpuDeviceKind},
    ir::{
        DeviceIdentity, DeviceProperties, HardwareProperties, MemoryDeviceProperties,
        TargetProperties,
    },
    prelude::KernelDefinition,
    profile::TimingMethod,
    server::{LaunchError, ServerUtilities},
    wgpu::{AutoRepresentation, CompilerInfo, WgpuCompiler, WgpuRuntime, WgpuServer},
};
use burn_wgpu::{MemoryConfiguration, WgpuSetup};
use cubecl_common::device::{Device as _, ServiceId};
use cubecl_environment::backtrace::BackTrace;
use cubecl_server::{
    allocator::ContiguousMemoryLayoutPolicy, kernel::CompiledKernel, runtime::Runtime,
};

/// Passes WGSL on.
#[derive(Debug, Clone)]
struct FinishedWgsl;

/// The compiled form of a kernel that is not WGSL: there is none.
enum Never {}

impl fmt::Display for Never {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {}
    }
}

impl Compiler for FinishedWgsl {
    type Representation = Never;
    type CompilationOptions = WgpuCompilationOptions;

    fn compile(
        &mut self,
        kernel: KernelDefinition,
        _: &WgpuCompilationOptions,
    ) -> Result<Never, CompilationError> {
        Err(CompilationError::Generic {
            reason: format!("{} is not WGSL", kernel.settings.kernel_name),
            backtrace: BackTrace::capture(),
        })
    }

    fn extension(&self) -> &'static str {
        "wgsl"
    }

    fn lang_tag(&self) -> &'static str {
        "wgsl"
    }
}

impl WgpuCompiler for FinishedWgsl {
    fn init(_: wgpu::Backend, _: &WgpuCompilationOptions) -> Self {
        FinishedWgsl
    }

    fn compile_kernel(
        &mut self,
        _: &mut WgpuServer<Self>,
        kernel: Box<dyn CubeKernel>,
        definition: KernelDefinition,
    ) -> Result<CompiledKernel<Self>, CompilationError> {
        CompiledKernel::compile(&*kernel, definition, self, &Default::default())
    }

    fn validate_ir(&self, _: &Option<Never>, _: &DeviceProperties) -> Result<(), LaunchError> {
        Ok(())
    }

    fn normalize_repr(&self, _: Option<Never>) -> (CompilerInfo, Option<AutoRepresentation>) {
        (CompilerInfo::None, None)
    }
}

/// Tasks that are submitted together. One submit holds several decode steps; the default of 32 would split each of them.
const MAX_TASKS: usize = 4096;

/// Hands a wgpu device to burn.
///
/// # Errors
/// The reason as text if burn refuses the device.
pub(super) fn hand_to_burn(setup: WgpuSetup) -> Result<(CubeDevice, Client), String> {
    static DEVICES: AtomicU32 = AtomicU32::new(0);
    let number = DEVICES.fetch_add(1, Ordering::Relaxed);
    let device = WgpuDevice::new(WgpuDeviceKind::Existing(number));
    let client = Client::try_init(device.to_id(), server(setup, &device));
    let client = client.map_err(|error| format!("{error:?}"))?;
    Ok((CubeDevice::Wgpu(device), client))
}

/// The client of a device that [`hand_to_burn`] made.
///
/// # Panics
/// For other devices.
pub(super) fn client(device: &CubeDevice) -> Client {
    match device {
        CubeDevice::Wgpu(device) => WgpuRuntime::<FinishedWgsl>::client(device),
        other => panic!("{other:?} is not a device of wgpu"),
    }
}

/// The server of burn's runtime that a device starts with.
fn server(setup: WgpuSetup, device: &WgpuDevice) -> WgpuServer<FinishedWgsl> {
    let limits = setup.device.limits();
    let memory = MemoryDeviceProperties::new(
        limits
            .max_storage_buffer_binding_size
            .min(limits.max_buffer_size),
        u64::from(
            limits
                .min_uniform_buffer_offset_alignment
                .max(limits.min_storage_buffer_offset_alignment),
        ),
    );
    let info = setup.adapter.get_info();
    let hardware = hardware(&limits, &info);
    let identity = DeviceIdentity {
        fingerprint: format!("wgsl_{}_{}", info.vendor, info.device),
        name: info.name,
        physical: None,
    };
    // Nothing is profiled. On the web, the runtime refuses the other method.
    let timing = TimingMethod::Device;
    let properties = DeviceProperties::new(
        Default::default(),
        memory.clone(),
        hardware,
        timing,
        identity,
    );
    let (utilities, captures) = ServerUtilities::init(
        ServiceId::of::<WgpuServer<FinishedWgsl>>(device.to_id()),
        "wgpu<wgsl>",
        properties,
        TargetProperties::default(),
        Default::default(),
        ContiguousMemoryLayoutPolicy::new(memory.alignment as usize),
    );
    WgpuServer::new(
        memory,
        // A buffer per tensor: kernels declare their inputs read-only, and WebGPU forbids one buffer to be read-only and
        // writable in the same dispatch.
        MemoryConfiguration::ExclusivePages,
        WgpuCompilationOptions::default(),
        setup.device,
        setup.queue,
        MAX_TASKS,
        setup.backend,
        timing,
        utilities,
        captures,
    )
}

/// The properties by which launches are validated. A kernel's workgroup size is a constant of its source.
fn hardware(limits: &wgpu::Limits, info: &wgpu::AdapterInfo) -> HardwareProperties {
    let workgroups = limits.max_compute_workgroups_per_dimension;
    HardwareProperties {
        load_width: 128,
        vector_register_count: None,
        plane_size_min: info.subgroup_min_size,
        plane_size_max: info.subgroup_max_size,
        max_bindings: limits.max_storage_buffers_per_shader_stage,
        max_shared_memory_size: limits.max_compute_workgroup_storage_size as usize,
        max_cube_count: (workgroups, workgroups, workgroups),
        max_units_per_cube: limits.max_compute_invocations_per_workgroup,
        max_cube_dim: (
            limits.max_compute_workgroup_size_x,
            limits.max_compute_workgroup_size_y,
            limits.max_compute_workgroup_size_z,
        ),
        num_streaming_multiprocessors: None,
        num_tensor_cores: None,
        min_tensor_cores_dim: None,
        num_cpu_cores: None,
        last_level_cache_size: None,
        max_vector_size: 4,
        cube_mma_reserved_shared_memory: 0,
    }
}
