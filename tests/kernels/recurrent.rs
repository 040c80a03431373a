//! Ops of recurrent layers against their twins, and the twins against the formulas.

use burn::tensor::Device;
use inpage::ops::{
    Variant,
    causal_conv::{ConvShape, causal_conv},
    copy_page::copy_state,
    gated_norm::{GatedNormShape, gated_norm},
    route_experts::{RouteShape, route_experts},
    sigmoid_gate::{GateShape, sigmoid_gate},
    state_memory::StateMemory,
    step::{Segment, Step},
};

use crate::fixture::{Noise, assert_close, gpu, ids, segment, tensor, values, words};

/// Slots of all tests.
pub(super) const SLOTS: usize = 4;

/// Segments and rows of steps: a chunk, padded chunks of many and of few tokens, single tokens, batches, a chunk shorter
/// than the taps, a slot that another sequence starts in, and chunks of several pages.
pub(super) fn steps() -> Vec<(Vec<Segment<'static>>, usize)> {
    let at = |state, position, tokens| Segment {
        state,
        ..segment(position, tokens, &[0, 1, 2, 3])
    };
    vec![
        (vec![at(2, 0, 21)], 21),
        (vec![at(0, 0, 2)], 8),
        (vec![at(2, 21, 11)], 16),
        (vec![at(2, 32, 1)], 1),
        (vec![at(0, 2, 1), at(2, 33, 1), at(1, 0, 1)], 4),
        (vec![at(1, 1, 2)], 2),
        (vec![at(1, 3, 1), at(0, 3, 1)], 8),
        (vec![at(0, 4, 9)], 9),
        (vec![at(2, 0, 1)], 1),
        (vec![at(2, 1, 7)], 8),
        (vec![at(1, 0, 100)], 128),
        (vec![at(1, 100, 65)], 65),
        (vec![at(2, 8, 64)], 64),
        (vec![at(1, 165, 1)], 1),
    ]
}

/// Runs an op through all steps. It gets the number of a step, the rows of its tensors, the states and the step; what it
/// returns has so many columns. Then all states.
pub(super) fn run(
    device: &Device,
    words_of_slot: usize,
    columns: usize,
    op: impl Fn(usize, usize, &mut StateMemory, &Step) -> Vec<f32>,
) -> (Vec<f32>, Vec<f32>) {
    let mut states = StateMemory::new(SLOTS, words_of_slot, device);
    let mut step = Step::new(128, 64, device);
    let mut out = Vec::new();
    for (i, (segments, rows)) in steps().iter().enumerate() {
        step.set(segments);
        let live: usize = segments.iter().map(|it| it.tokens).sum();
        out.extend_from_slice(&op(i, *rows, &mut states, &step)[..live * columns]);
    }
    let kept = words(states.words());
    // The last slot belongs to nobody, and slots may be padded.
    let slots = kept.chunks_exact(states.slot_words()).take(SLOTS - 1);
    let used = slots.flat_map(|slot| &slot[..words_of_slot]);
    (out, used.map(|word| f32::from_bits(*word)).collect())
}

#[test]
fn causal_conv_equals_its_twin_and_the_formula() {
    let (gpu, cpu, mut noise) = (gpu(), Device::flex(), Noise(31));
    for (channels, taps, is_gated) in [(70, 3, true), (130, 4, false), (65, 2, false)] {
        let stride = channels * if is_gated { 3 } else { 1 } + 9;
        let shape = ConvShape {
            channels,
            taps,
            is_gated,
            at: 5,
            stride,
        };
        let weights = noise.floats(channels * taps);
        let bias = noise.floats(channels);
        let inputs: Vec<Vec<f32>> = steps()
            .iter()
            .map(|(_, rows)| noise.floats(rows * stride))
            .collect();
        let on = |device: &Device, variant| {
            run(
                device,
                shape.state_words(),
                channels,
                |i, rows, states, step| {
                    values(causal_conv(
                        tensor(&inputs[i], [rows, stride], device),
                        tensor(&weights, [channels * taps], device),
                        tensor(&bias, [channels], device),
                        states,
                        step,
                        shape,
                        variant,
                    ))
                },
            )
        };
        let on_cpu = on(&cpu, Variant::PORTABLE);
        let what = format!("{channels} channels, {taps} taps");
        for found in [on(gpu.device(), Variant::PORTABLE), on(&cpu, Variant::CPU)] {
            assert_close(&what, &found.0, &on_cpu.0, 1e-5);
            assert_close(&what, &found.1, &on_cpu.1, 1e-5);
        }
        // The third token of the first sequence.
        let input = |row: usize, channel: usize| {
            let row = &inputs[0][row * stride + shape.at..];
            match is_gated {
                true => row[channel] * row[2 * channels + channel],
                false => row[channel],
            }
        };
        for channel in 0..channels {
            let earlier = taps.min(3);
            let sum: f32 = (0..earlier)
                .map(|back| weights[channel * taps + taps - 1 - back] * input(2 - back, channel))
                .sum();
            let sum = sum + bias[channel];
            let wanted = match is_gated {
                true => sum * inputs[0][2 * stride + shape.at + channels + channel],
                false => sum / (1.0 + (-sum).exp()),
            };
            let found = on_cpu.0[2 * channels + channel];
            assert!((found - wanted).abs() < 1e-5, "{what}: {found}, {wanted}");
        }
    }
}

#[test]
fn gated_norm_equals_its_twin_and_the_formula() {
    let (gpu, cpu, mut noise) = (gpu(), Device::flex(), Noise(33));
    for (group, groups, shared, gates_first, normalizes) in [
        (48, 3, true, false, true),
        (100, 2, false, true, true),
        (20, 2, true, true, false),
    ] {
        let (rows, columns) = (5, group * groups);
        let stride = columns + 13;
        let shape = GatedNormShape {
            group,
            normalizes,
            gates_first,
            eps: 1e-5,
            at: 6,
            stride,
        };
        let (x, gate) = (noise.floats(rows * columns), noise.floats(rows * stride));
        let norm = noise.floats(if shared { group } else { columns });
        let on = |device: &Device, variant| {
            values(gated_norm(
                tensor(&x, [rows, columns], device),
                tensor(&gate, [rows, stride], device),
                tensor(&norm, [norm.len()], device),
                shape,
                variant,
            ))
        };
        let on_cpu = on(&cpu, Variant::PORTABLE);
        for found in [on(gpu.device(), Variant::PORTABLE), on(&cpu, Variant::CPU)] {
            assert_close("gated_norm", &found, &on_cpu, 1e-5);
        }
        // The last element.
        let silu = |column: usize| {
            let gate = gate[4 * stride + 6 + column];
            gate / (1.0 + (-gate).exp())
        };
        let first = columns - group;
        let of_group = (first..columns).map(|column| {
            let value = x[4 * columns + column];
            if gates_first {
                value * silu(column)
            } else {
                value
            }
        });
        let of_group: Vec<f32> = of_group.collect();
        let mean = of_group.iter().map(|v| v * v).sum::<f32>() / group as f32;
        let gate = if gates_first { 1.0 } else { silu(columns - 1) };
        let scale = if normalizes {
            (mean + 1e-5).sqrt()
        } else {
            1.0
        };
        let wanted = of_group[group - 1] / scale * norm[norm.len() - 1] * gate;
        let found = on_cpu[on_cpu.len() - 1];
        assert!((found - wanted).abs() < 1e-5, "{found}, {wanted}");
    }
}

#[test]
fn sigmoid_gate_equals_its_twin_and_the_formula() {
    let (gpu, cpu, mut noise) = (gpu(), Device::flex(), Noise(34));
    for (is_per_token, has_residual) in [(false, false), (true, true)] {
        let (rows, columns, stride) = (3, 70, 75);
        let shape = GateShape {
            is_per_token,
            at: 4,
            stride,
        };
        let (x, gate) = (noise.floats(rows * columns), noise.floats(rows * stride));
        let residual = noise.floats(rows * columns);
        let on = |device: &Device| {
            let residual = has_residual.then(|| tensor(&residual, [rows, columns], device));
            values(sigmoid_gate(
                tensor(&x, [rows, columns], device),
                tensor(&gate, [rows, stride], device),
                residual,
                shape,
            ))
        };
        let (on_cpu, on_gpu) = (on(&cpu), on(gpu.device()));
        assert_close("sigmoid_gate", &on_gpu, &on_cpu, 1e-5);
        let at = 2 * columns + 69;
        let gate = gate[2 * stride + 4 + if is_per_token { 0 } else { 69 }];
        let added = if has_residual { residual[at] } else { 0.0 };
        let wanted = x[at] / (1.0 + (-gate).exp()) + added;
        assert!((on_cpu[at] - wanted).abs() < 1e-6);
    }
}

#[test]
fn copy_state_equals_its_twin() {
    let (gpu, cpu, mut noise) = (gpu(), Device::flex(), Noise(35));
    let shape = ConvShape {
        channels: 37,
        taps: 3,
        is_gated: false,
        at: 0,
        stride: 37,
    };
    let x = noise.floats(9 * 37);
    for device in [gpu.device(), &cpu] {
        let mut states = StateMemory::new(3, shape.state_words(), device);
        let mut step = Step::new(9, 1, device);
        step.set(&[Segment {
            state: 2,
            ..segment(0, 9, &[0])
        }]);
        let weights = tensor(&[1.0; 37 * 3], [37 * 3], device);
        let bias = tensor(&[0.0; 37], [37], device);
        let x = tensor(&x, [9, 37], device);
        causal_conv(
            x,
            weights,
            bias,
            &mut states,
            &step,
            shape,
            Variant::PORTABLE,
        );
        copy_state(&mut states, ids(&[2, 0], device));
        let words = words(states.words());
        let slots: Vec<&[u32]> = words.chunks_exact(states.slot_words()).collect();
        assert_eq!(slots.len(), 3);
        assert_eq!(slots[0][..74], slots[2][..74]);
        assert!(slots[0][..74].iter().all(|word| *word != 0));
        assert!(slots[1].iter().all(|word| *word == 0));
    }
}

/// A bias changes which experts are selected, not their shares, which are sigmoids divided by their sum.
#[test]
fn sigmoid_routes_equal_their_twin_and_the_formula() {
    let (gpu, cpu, mut noise) = (gpu(), Device::flex(), Noise(36));
    for (experts, used, has_bias) in [(5, 3, true), (64, 8, true), (33, 2, false)] {
        let tokens = 7;
        let logits = noise.floats(tokens * experts);
        let bias = noise.floats(experts);
        let shape = RouteShape {
            groups: None,
            experts,
            used,
            renormalize: true,
            is_sigmoid: true,
            scale: 1.5,
        };
        let on = |device: &Device| {
            let bias = has_bias.then(|| tensor(&bias, [experts], device));
            let routes = route_experts(
                tensor(&logits, [tokens, experts], device),
                bias,
                None,
                shape,
            );
            (words(routes.experts), values(routes.shares))
        };
        let (on_cpu, on_gpu) = (on(&cpu), on(gpu.device()));
        assert_eq!(on_gpu.0, on_cpu.0, "{shape:?}");
        assert_close("shares", &on_gpu.1, &on_cpu.1, 1e-5);
        let sigmoid = |expert: u32| 1.0 / (1.0 + (-logits[expert as usize]).exp());
        let score = |expert: &u32| {
            sigmoid(*expert)
                + if has_bias {
                    bias[*expert as usize]
                } else {
                    0.0
                }
        };
        let mut order: Vec<u32> = (0..experts as u32).collect();
        order.sort_by(|a, b| score(b).total_cmp(&score(a)));
        assert_eq!(on_cpu.0[..used], order[..used], "{shape:?}");
        let sum: f32 = order[..used].iter().map(|expert| sigmoid(*expert)).sum();
        for (share, expert) in on_cpu.1.iter().zip(&order[..used]) {
            assert!((share - 1.5 * sigmoid(*expert) / sum).abs() < 1e-4);
        }
    }
}
