//! Every kernel, composed for every format and variant, is valid WGSL (naga), without a GPU.

use std::collections::HashSet;

use inpage::{
    ops::{
        Activation, Arithmetic, Finish, Kernel, Variant, add_positions, argmax,
        attention::{self, AttentionShape},
        attention_split, barriers, copy_page, embedding, expert_gated_matmul, expert_gated_matvec,
        expert_matmul, expert_matvec, gated_matmul, gated_matvec, group_experts,
        kv_memory::KvFormat,
        last_row, layer_norm, matmul,
        matrix::MatrixShape,
        matvec, rms_norm,
        rope_kv::{self, RopeShape},
        route_experts::{self, MAX_EXPERTS, MAX_USED, RouteShape},
        sample::{self, SamplerShape},
        score,
        store::Store,
        sum_experts,
    },
    tensor_types::TensorType,
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

/// Whether a format's module is made of parts that it shares with Q4_0 or Q6_K.
fn is_of_parts(format: TensorType) -> bool {
    use TensorType::*;
    !matches!(format, F32 | F16 | BF16 | Q8_0 | Q4_0 | Q6_K)
}

fn kernels() -> Vec<Kernel> {
    let mut kernels = vec![
        argmax::kernel(512, 64),
        barriers::kernel(65),
        copy_page::kernel(128 * 8),
        group_experts::kernel(MAX_EXPERTS),
        last_row::kernel(172),
        rms_norm::kernel(64, 1e-5, false),
        rms_norm::kernel(64, 1e-5, true),
        layer_norm::kernel(172, 1e-5),
        score::kernel(517, 0),
        score::kernel(517, 20),
        sum_experts::kernel(172, 8),
    ];
    for renormalize in [false, true] {
        kernels.push(route_experts::kernel(RouteShape {
            experts: MAX_EXPERTS,
            used: MAX_USED,
            renormalize,
        }));
    }
    for vocab in [33, 152_064] {
        kernels.extend(sample::kernels(SamplerShape {
            slots: 8,
            vocab,
            history_tokens: 4096,
        }));
    }
    for (head_dim, rope_dims, neox) in [
        (8, 8, false),
        (64, 64, true),
        (80, 20, true),
        (96, 0, false),
        (128, 128, true),
        (256, 256, true),
    ] {
        let rope = RopeShape {
            heads: 8,
            kv_heads: 2,
            head_dim,
            neox,
            rope_dims,
            magnitude: 1.0,
            q_scale: 0.1,
            at: [0, 8 * head_dim, 10 * head_dim],
            stride: [12 * head_dim; 3],
        };
        for (window, soft_cap, norm_eps) in [(None, None, None), (Some(70), Some(50.0), Some(1e-6))]
        {
            let shape = AttentionShape {
                heads: 8,
                kv_heads: 2,
                head_dim,
                window,
                soft_cap,
            };
            let suits = |format: &KvFormat| head_dim % format.head_multiple() == 0;
            for format in KvFormat::ALL.into_iter().filter(suits) {
                kernels.push(rope_kv::kernel(rope, format, norm_eps));
                kernels.extend(attention_split::kernels(
                    rope, shape, norm_eps, format, 4096,
                ));
                for variant in variants() {
                    for tokens in [1, 16] {
                        kernels.push(attention::kernel(shape, tokens, format, variant));
                    }
                }
            }
        }
    }
    for &format in TensorType::ALL {
        let shape = MatrixShape {
            ty: format,
            rows: 33,
            cols: 172usize.next_multiple_of(format.row_multiple()),
        };
        kernels.push(embedding::kernel(shape, 1.0));
        kernels.push(add_positions::kernel(shape));
        // Every combination for the formats whose modules stand alone; those of shared parts meet both
        // tilings once.
        let (variants, extras) = match is_of_parts(format) {
            false => (
                variants(),
                [
                    (false, false, false),
                    (true, false, true),
                    (false, true, true),
                    (true, true, false),
                    (true, true, true),
                ]
                .to_vec(),
            ),
            true => (variants().drain(..2).collect(), vec![(true, true, true)]),
        };
        for (bias, residual, delta) in extras {
            let store = Store {
                bias,
                delta,
                finish: match (bias, residual) {
                    (false, false) => Finish::SoftCap {
                        scale: 1.0,
                        cap: 30.0,
                    },
                    (true, false) => Finish::Activation(Activation::Gelu),
                    (false, true) => Finish::Scale(0.5),
                    (true, true) => Finish::Plain,
                },
                residual,
            };
            for &variant in &variants {
                for tokens in [16, 256] {
                    kernels.push(matmul::kernel(shape, tokens, store, variant));
                }
                for norm_eps in [None, Some(1e-5)] {
                    let tokens = if bias == residual {
                        1
                    } else {
                        matvec::MAX_TOKENS
                    };
                    kernels.push(matvec::kernel(shape, tokens, norm_eps, store, variant));
                }
            }
        }
        for variant in variants {
            for tokens in [16, 256] {
                let activation = Activation::Gelu;
                for delta in [false, true] {
                    kernels.push(gated_matmul::kernel(
                        shape, shape, delta, activation, tokens, variant,
                    ));
                }
            }
            kernels.push(expert_gated_matmul::kernel(shape, shape, 8, variant));
            kernels.push(expert_gated_matvec::kernel(shape, shape, 8, 1e-5, variant));
            kernels.push(expert_matmul::kernel(shape, variant));
            kernels.push(expert_matvec::kernel(shape, 8, variant));
            for tokens in [1, matvec::MAX_TOKENS] {
                let (activation, norm_eps) = match tokens {
                    1 => (Activation::Silu, Some(1e-5)),
                    _ => (Activation::Gelu, None),
                };
                for delta in [false, true] {
                    kernels.push(gated_matvec::kernel(
                        shape, shape, delta, activation, tokens, norm_eps, variant,
                    ));
                }
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
    if std::process::Command::new("tint")
        .arg("--version")
        .output()
        .is_err()
    {
        println!("skipped: tint is not installed");
        return;
    }
    // What a failing test leaves there shows the shader.
    let directory = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("tint");
    std::fs::create_dir_all(&directory).expect("a folder for shaders");
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
