//! The tuner at start-up: a variant that computes incorrectly on a device is not used.

use inpage::{
    device::ComputeDevice,
    ops::{Arithmetic, Variant, barriers::barriers, dry_run, kv_memory::KvFormat, launches},
    tensor_types::TensorType,
    tuner::{Needs, Precision, barrier_us, best_variant, choose, quickest},
};
use pollster::block_on;

use crate::fixture::{gpu, ids, words};

fn device() -> ComputeDevice {
    ComputeDevice::Gpu(gpu())
}

#[test]
fn a_variant_that_computes_incorrectly_is_skipped() {
    let device = device();
    // A reduction over more lanes than a subgroup has misses the lanes of other subgroups.
    let broken = Variant {
        subgroups: true,
        lanes_per_row: 64,
        ..Variant::PORTABLE
    };
    let types = [TensorType::Q4_0];
    let needs = Needs {
        types: &types,
        experts: false,
        whole_attention: false,
        kv_format: KvFormat::default(),
        precision: Precision::F32,
    };
    let choose = |candidates: &[Variant]| block_on(choose(&device, candidates, needs));
    let chosen = choose(&[broken, Variant::PORTABLE]);
    assert_eq!(chosen.expect("the next one"), Variant::PORTABLE);
    let error = choose(&[broken]).expect_err("nothing is left");
    assert!(error.to_string().contains("computes correctly"), "{error}");
}

#[test]
fn the_best_variant_of_this_device_is_validated() {
    let device = device();
    for (kv_format, whole_attention) in KvFormat::ALL
        .into_iter()
        .flat_map(|format| [(format, false), (format, true)])
    {
        // Matrices do not depend on the rest, so all types are validated once.
        let is_first = kv_format == KvFormat::ALL[0] && !whole_attention;
        let types = [TensorType::Q4_0];
        let needs = Needs {
            types: if is_first { TensorType::ALL } else { &types },
            experts: true,
            whole_attention,
            kv_format,
            precision: Precision::Auto,
        };
        let variant = block_on(best_variant(&device, needs)).expect("a variant");
        assert!(
            variant.subgroups || !device.report().subgroups,
            "{variant:?}"
        );
    }
}

#[test]
fn barriers_are_counted_and_their_cost_is_measured() {
    let device = device();
    let counted = words(barriers(ids(&[7; 5], device.tensors()), 70));
    assert_eq!(counted, [70; 5]);
    let barrier_us = block_on(barrier_us(&device)).expect("measured");
    assert!((0.0..1e3).contains(&barrier_us), "{barrier_us}");
}

/// Arithmetic that is chosen by measurement is validated, and f32 is used where nothing else is available.
#[test]
fn the_quickest_arithmetic_is_one_that_the_device_supports() {
    let device = device();
    let variant = Variant::PORTABLE;
    let chosen = block_on(quickest(&device, variant, &[TensorType::Q8_0])).expect("a variant");
    assert_ne!(chosen.matvec, Arithmetic::F16);
    assert!(chosen.matmul != Arithmetic::F16 || device.report().shader_f16);
    assert!(chosen.large_tiles_from > 1);
    let rest = Variant {
        large_tiles_from: variant.large_tiles_from,
        matvec: variant.matvec,
        matmul: variant.matmul,
        ..chosen
    };
    assert_eq!(rest, variant);
    let barrier_free = Variant {
        barrier_free: true,
        ..variant
    };
    let chosen = block_on(quickest(&device, barrier_free, &[TensorType::Q8_0])).expect("a variant");
    assert_eq!(chosen, barrier_free);
}

#[test]
fn a_dry_run_records_kernels_once_each_and_launches_none() {
    let gpu = gpu();
    let launched = launches();
    let run = dry_run(|| {
        for count in [3, 5, 3] {
            barriers(ids(&[7; 5], gpu.device()), count);
        }
    });
    let texts: Vec<String> = run.kernels.iter().map(|kernel| kernel.wgsl()).collect();
    assert_eq!(texts.len(), 2);
    assert!(texts[0].contains("BARRIERS: u32 = 3u") && texts[1].contains("BARRIERS: u32 = 5u"));
    assert_eq!(launches(), launched);
    assert_eq!(words(barriers(ids(&[7; 5], gpu.device()), 3)), [3; 5]);
}

#[test]
fn the_reference_runs_the_portable_variant() {
    let device = ComputeDevice::reference();
    let needs = Needs {
        types: &[TensorType::Q4_0],
        experts: false,
        whole_attention: false,
        kv_format: KvFormat::default(),
        precision: Precision::Auto,
    };
    let variant = block_on(best_variant(&device, needs)).expect("a variant");
    assert_eq!(variant, Variant::PORTABLE);
}
