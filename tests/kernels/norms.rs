//! Norms, and learned positions.

use burn::tensor::Device;
use inpage::{
    ops::{
        NormKind, Variant,
        add_positions::add_positions,
        norm::{NormParams, Onto, norm},
        step::Step,
    },
    tensor_types::TensorType,
};

use crate::fixture::{Noise, assert_close, gpu, matrices, segment, tensor, values};

const SIZES: [(usize, usize); 4] = [(1, 4), (3, 172), (5, 260), (2, 2048)];

#[test]
fn norms_equal_their_twins() {
    let (gpu, cpu, mut noise) = (gpu(), Device::flex(), Noise(2));
    for kind in NormKind::ALL {
        for (tokens, cols) in SIZES {
            let x = noise.floats(tokens * cols);
            let [weight, bias] = [cols; 2].map(|cols| noise.floats(cols));
            let residual = noise.floats(tokens * cols);
            for (onto, scaled) in [(false, false), (true, false), (true, true)] {
                if onto && !kind.adds_residual() {
                    continue;
                }
                let run = |device: &Device, variant| {
                    let params = NormParams {
                        kind,
                        weight: tensor(&weight, [cols], device),
                        bias: kind.has_bias().then(|| tensor(&bias, [cols], device)),
                        eps: 1e-5,
                    };
                    let onto = onto.then(|| Onto {
                        residual: tensor(&residual, [tokens, cols], device),
                        scale: scaled.then(|| tensor(&[-0.7], [1], device)),
                    });
                    let x = tensor(&x, [tokens, cols], device);
                    values(norm(x, params, onto, variant))
                };
                let twin = run(&cpu, Variant::PORTABLE);
                let on_gpu = run(gpu.device(), Variant::PORTABLE);
                assert_close(kind.name(), &on_gpu, &twin, 1e-5);
                let on_cpu = run(&cpu, Variant::CPU);
                assert_close("a norm on the CPU", &on_cpu, &twin, 1e-5);
            }
        }
    }
}

#[test]
fn layer_norm_equals_its_twin_and_the_formula() {
    let (gpu, cpu, mut noise) = (gpu(), Device::flex(), Noise(3));
    for (tokens, cols) in SIZES {
        // Far from zero, where the variance must not be computed from a difference of squares.
        let x: Vec<f32> = noise
            .floats(tokens * cols)
            .iter()
            .map(|v| v + 100.0)
            .collect();
        let (weight, bias) = (noise.floats(cols), noise.floats(cols));
        let run = |device: &Device, variant| {
            let params = NormParams {
                kind: NormKind::Layer,
                weight: tensor(&weight, [cols], device),
                bias: Some(tensor(&bias, [cols], device)),
                eps: 1e-5,
            };
            values(norm(
                tensor(&x, [tokens, cols], device),
                params,
                None,
                variant,
            ))
        };
        let on_cpu = run(&cpu, Variant::PORTABLE);
        assert_close(
            "layer_norm",
            &run(gpu.device(), Variant::PORTABLE),
            &on_cpu,
            1e-3,
        );
        assert_close(
            "layer_norm on the CPU",
            &run(&cpu, Variant::CPU),
            &on_cpu,
            1e-3,
        );
        for (row, out) in x.chunks(cols).zip(on_cpu.chunks(cols)) {
            let row: Vec<f64> = row.iter().map(|v| f64::from(*v)).collect();
            let mean = row.iter().sum::<f64>() / cols as f64;
            let variance = row.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / cols as f64;
            for (i, out) in out.iter().enumerate() {
                let wanted = (row[i] - mean) / (variance + 1e-5).sqrt() * f64::from(weight[i]);
                assert!((f64::from(*out - bias[i]) - wanted).abs() < 1e-3);
            }
        }
    }
}

#[test]
fn each_row_gets_the_position_in_its_sequence() {
    let (gpu, cpu, mut noise) = (gpu(), Device::flex(), Noise(4));
    for (format, cols) in [
        (TensorType::F32, 172),
        (TensorType::F16, 68),
        (TensorType::Q8_0, 96),
    ] {
        let [on_gpu, on_cpu] = matrices(format, 20, cols, &mut noise, [gpu.device(), &cpu]);
        let x = noise.floats(5 * cols);
        let run = |device: &Device, table| {
            let mut step = Step::new(8, 4, device);
            // Rows of two sequences, then one of padding.
            step.set(&[segment(17, 3, &[0]), segment(0, 1, &[1])]);
            values(add_positions(tensor(&x, [5, cols], device), table, &step))
        };
        let (a, b) = (run(gpu.device(), &on_gpu), run(&cpu, &on_cpu));
        assert_close("add_positions", &a[..4 * cols], &b[..4 * cols], 1e-6);
        assert_ne!(b[..cols], x[..cols]);
    }
}
