//! Every kernel, composed for every format and variant, is valid WGSL (naga), without a GPU.

use std::collections::HashSet;

use inpage::ops::{
    Arithmetic, Kernel, Variant, argmax,
    attention::{self, AttentionShape},
    barriers, copy_page, embedding, gated_matmul, gated_matvec, last_row, matmul,
    matrix::{Format, MatrixShape},
    matvec, rms_norm,
    rope_kv::{self, RopeShape},
    sample::{self, SamplerShape},
    score,
};
use naga::AddressSpace;
use naga::valid::{Capabilities, ValidationFlags, Validator};

/// Bindings per shader stage that every WebGPU device has.
const BASE_STORAGE_BUFFERS: usize = 8;

fn variants() -> Vec<Variant> {
    let mut variants = vec![Variant::PORTABLE];
    for lanes_per_row in [4, 8, 32] {
        variants.push(Variant {
            subgroups: true,
            lanes_per_row,
            rows_per_group: 4,
            barrier_free: lanes_per_row < 32,
            ..Variant::PORTABLE
        });
    }
    for matmul in [Arithmetic::F16, Arithmetic::I8] {
        variants.push(Variant {
            matvec: Arithmetic::I8,
            matmul,
            ..Variant::PORTABLE
        });
    }
    variants
}

fn kernels() -> Vec<Kernel> {
    let mut kernels = vec![
        argmax::kernel(512, 64),
        barriers::kernel(65),
        copy_page::kernel(128 * 8),
        last_row::kernel(172),
        rms_norm::kernel(64, 1e-5),
        score::kernel(517, 0),
        score::kernel(517, 20),
    ];
    for vocab in [33, 152_064] {
        kernels.extend(sample::kernels(SamplerShape {
            slots: 8,
            vocab,
            history_tokens: 4096,
        }));
    }
    for neox in [false, true] {
        kernels.push(rope_kv::kernel(RopeShape {
            heads: 8,
            kv_heads: 4,
            head_dim: 8,
            neox,
            at: [0, 64, 96],
            stride: [128; 3],
        }));
    }
    for head_dim in [8, 64, 96, 128, 256] {
        for variant in variants() {
            let shape = AttentionShape {
                heads: 8,
                kv_heads: 2,
                head_dim,
            };
            for tokens in [1, 16] {
                kernels.push(attention::kernel(shape, tokens, variant));
            }
        }
    }
    for format in Format::ALL {
        let shape = MatrixShape {
            format,
            rows: 33,
            cols: 172usize.next_multiple_of(format.row_multiple()),
        };
        kernels.push(embedding::kernel(shape));
        for (bias, residual) in [(false, false), (true, false), (false, true), (true, true)] {
            for variant in variants() {
                for tokens in [16, 256] {
                    kernels.push(matmul::kernel(shape, tokens, bias, residual, variant));
                }
                for norm_eps in [None, Some(1e-5)] {
                    let tokens = if bias == residual {
                        1
                    } else {
                        matvec::MAX_TOKENS
                    };
                    kernels.push(matvec::kernel(
                        shape, tokens, norm_eps, bias, residual, variant,
                    ));
                }
            }
        }
        for variant in variants() {
            for tokens in [16, 256] {
                kernels.push(gated_matmul::kernel(shape, shape, tokens, variant));
            }
            for tokens in [1, matvec::MAX_TOKENS] {
                kernels.push(gated_matvec::kernel(shape, shape, tokens, 1e-5, variant));
            }
        }
    }
    // Not every variant changes every kernel.
    let mut seen = HashSet::new();
    kernels.retain(|kernel| seen.insert(kernel.wgsl()));
    kernels
}

/// Bytes of workgroup memory that every WebGPU device has.
const BASE_WORKGROUP_BYTES: u32 = 16_384;

#[test]
fn every_kernel_is_valid() {
    let kernels = kernels();
    assert!(kernels.len() > 150);
    for kernel in kernels {
        let wgsl = kernel.wgsl();
        let module = naga::front::wgsl::parse_str(&wgsl)
            .unwrap_or_else(|e| panic!("{}: {}\n{wgsl}", kernel.name(), e.emit_to_string(&wgsl)));
        let capabilities = Capabilities::SUBGROUP
            | Capabilities::SHADER_FLOAT16
            | Capabilities::SHADER_FLOAT16_IN_FLOAT32;
        Validator::new(ValidationFlags::all(), capabilities)
            .validate(&module)
            .unwrap_or_else(|e| panic!("{}: {}", kernel.name(), e.emit_to_string(&wgsl)));
        let buffers = module
            .global_variables
            .iter()
            .filter(|(_, variable)| variable.binding.is_some())
            .count();
        assert!(
            buffers <= BASE_STORAGE_BUFFERS,
            "{} has {buffers} buffers",
            kernel.name()
        );
        let workgroup_bytes: u32 = module
            .global_variables
            .iter()
            .filter(|(_, variable)| variable.space == AddressSpace::WorkGroup)
            .map(|(_, variable)| module.types[variable.ty].inner.size(module.to_ctx()))
            .sum();
        assert!(
            workgroup_bytes <= BASE_WORKGROUP_BYTES,
            "{} has {workgroup_bytes} bytes of workgroup memory",
            kernel.name()
        );
    }
}

/// tint (the WGSL compiler of Chromium) where it is installed: what one compiler accepts the other
/// may refuse.
#[test]
fn every_kernel_is_valid_for_tint() {
    let directory = std::env::temp_dir().join(format!("inpage-shaders-{}", std::process::id()));
    std::fs::create_dir_all(&directory).expect("a folder for shaders");
    if std::process::Command::new("tint")
        .arg("--version")
        .output()
        .is_err()
    {
        println!("skipped: tint is not installed");
        return;
    }
    for (i, kernel) in kernels().into_iter().enumerate() {
        let text = kernel.wgsl();
        let directive = if text.contains("subgroupShuffleXor") || text.contains("quadBroadcast") {
            "enable subgroups;\n"
        } else {
            ""
        };
        let file = directory.join(format!("{i}.wgsl"));
        std::fs::write(&file, format!("{directive}{text}")).expect("a shader file");
        let output = std::process::Command::new("tint")
            .args(["--format", "wgsl", "-o", "/dev/null"])
            .arg(&file)
            .output()
            .expect("tint runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{}: {said}\n{text}", kernel.name());
    }
    std::fs::remove_dir_all(&directory).expect("the folder is ours");
}
