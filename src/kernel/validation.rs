//! Checks that kernels are valid WGSL within the limits of every WebGPU device. Needs no GPU.

use std::{
    collections::HashSet, fs, hash::BuildHasher, hash::BuildHasherDefault, hash::DefaultHasher,
    path::Path, process::Command, sync::LazyLock,
};

use naga::{
    AddressSpace,
    valid::{Capabilities, ValidationFlags, Validator},
};

use super::Kernel;

/// Bindings per shader stage that every WebGPU device has.
const BASE_STORAGE_BUFFERS: usize = 8;
/// Bytes of workgroup memory that every WebGPU device has.
const BASE_WORKGROUP_BYTES: u32 = 16_384;

/// Panics unless naga accepts every kernel. If tint, the WGSL compiler of Chromium, is installed, it
/// must accept them too: each compiler refuses some kernels that the other accepts. With `INPAGE_WRITE_KERNELS` in the
/// environment, the kernels are also written to the folder of that name, to compare them with those of another version.
pub(crate) fn assert_valid(kernels: impl IntoIterator<Item = Kernel>) {
    let mut seen = HashSet::new();
    for kernel in kernels {
        let wgsl = kernel.wgsl();
        // Several variants may share the text of a kernel.
        if seen.insert(wgsl.clone()) {
            if let Some(folder) = std::env::var_os("INPAGE_WRITE_KERNELS") {
                let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(&wgsl);
                let file = format!("{}-{hash:016x}.wgsl", kernel.name());
                fs::write(Path::new(&folder).join(file), &wgsl).expect("a folder of kernels");
            }
            assert_valid_for_naga(kernel.name(), &wgsl);
            assert_valid_for_tint(kernel.name(), &wgsl);
        }
    }
    assert!(!seen.is_empty(), "no kernels to validate");
}

fn assert_valid_for_naga(name: &str, wgsl: &str) {
    let module = naga::front::wgsl::parse_str(wgsl)
        .unwrap_or_else(|e| panic!("{name}: {}\n{wgsl}", e.emit_to_string(wgsl)));
    let capabilities = Capabilities::SUBGROUP
        | Capabilities::SHADER_FLOAT16
        | Capabilities::SHADER_FLOAT16_IN_FLOAT32;
    Validator::new(ValidationFlags::all(), capabilities)
        .validate(&module)
        .unwrap_or_else(|e| panic!("{name}: {}", e.emit_to_string(wgsl)));
    let variables = || module.global_variables.iter().map(|(_, variable)| variable);
    let buffers = variables().filter(|variable| variable.binding.is_some());
    let buffers = buffers.count();
    assert!(
        buffers <= BASE_STORAGE_BUFFERS,
        "{name} has {buffers} buffers"
    );
    let workgroup_bytes: u32 = variables()
        .filter(|variable| variable.space == AddressSpace::WorkGroup)
        .map(|variable| module.types[variable.ty].inner.size(module.to_ctx()))
        .sum();
    assert!(
        workgroup_bytes <= BASE_WORKGROUP_BYTES,
        "{name} has {workgroup_bytes} bytes of workgroup memory"
    );
}

static HAS_TINT: LazyLock<bool> = LazyLock::new(|| {
    let found = Command::new("tint").arg("--version").output().is_ok();
    if !found {
        println!("tint is not installed: kernels are validated by naga alone");
    }
    found
});

fn assert_valid_for_tint(name: &str, wgsl: &str) {
    if !*HAS_TINT {
        return;
    }
    let directive = if wgsl.contains("subgroupShuffleXor") || wgsl.contains("quadBroadcast") {
        "enable subgroups;\n"
    } else {
        ""
    };
    let file = format!("inpage-{}-{name}.wgsl", std::process::id());
    let file = std::env::temp_dir().join(file);
    fs::write(&file, format!("{directive}{wgsl}")).expect("a shader file");
    let output = Command::new("tint")
        .args(["--format", "wgsl", "-o", "/dev/null"])
        .arg(&file)
        .output()
        .expect("tint runs");
    let stderr = String::from_utf8_lossy(&output.stderr);
    // The file of a failing kernel is kept.
    assert!(output.status.success(), "{name}: {stderr}\n{wgsl}");
    fs::remove_file(&file).expect("the file just written");
}
