//! Ops of models that take images: rotary positions of parts, and values that are added to outputs of layers.

use burn::tensor::Device;
use inpage::ops::{
    Activation, Finish, InPlace, Variant,
    add_given::{GivenRows, add_given},
    attention::{AttentionShape, attention},
    attention_split::attention_split,
    gate_columns::gate_columns,
    kv_memory::{KvFormat, KvMemory},
    limit::limit,
    rope_kv::{RopeShape, rope_kv, turns, turns_by_parts},
    step::{Rotary, Segment, Step},
    word_rows::word_rows,
};

use crate::fixture::{Noise, assert_close, gpu, ids, tensor, tilings, tolerance, values};

#[test]
fn add_given_equals_its_twin() {
    let (gpu, cpu, mut noise) = (gpu(), Device::flex(), Noise(21));
    for cols in [36, 64, 300] {
        let x = noise.floats(5 * cols);
        let given = noise.floats(6 * cols);
        let rows = GivenRows {
            table_rows: 320,
            first: 3,
        };
        // The last one is beyond the given rows, as ids of padding may be.
        let wanted = [321, 319, 0, 320, 400];
        let run = |device: &Device| {
            let words = given.iter().map(|value| value.to_bits()).collect();
            let given = InPlace::upload(words, device);
            let x = tensor(&x, [5, cols], device);
            values(add_given(x, ids(&wanted, device), &given, rows))
        };
        let [a, b] = [run(gpu.device()), run(&cpu)];
        assert_close("add_given", &a, &b, 1e-6);
        let row = |values: &[f32], row: usize| values[row * cols..(row + 1) * cols].to_vec();
        assert_eq!(row(&a, 1), row(&x, 1));
        assert_eq!(row(&a, 2), row(&x, 2));
        let sum = |at: usize, of: usize| -> Vec<f32> {
            let sums = row(&x, at).into_iter().zip(row(&given, of));
            sums.map(|(x, given)| x + given).collect()
        };
        assert_eq!(row(&a, 0), sum(0, 4));
        assert_eq!(row(&a, 3), sum(3, 3));
    }
}

const HEAD_DIM: usize = 24;
const PAIRS: usize = HEAD_DIM / 2;
const HEADS: usize = 4;
const KV_HEADS: usize = 2;
const Q_DIM: usize = HEADS * HEAD_DIM;
const KV_DIM: usize = KV_HEADS * HEAD_DIM;
const STRIDE: usize = Q_DIM + 2 * KV_DIM;

fn rope(by_parts: bool) -> RopeShape {
    RopeShape {
        heads: HEADS,
        kv_heads: KV_HEADS,
        head_dim: HEAD_DIM,
        neox: true,
        by_parts,
        norm_last: false,
        norms_values: false,
        only_queries: false,
        rope_dims: HEAD_DIM,
        magnitude: 1.0,
        q_scale: 0.2,
        temperature: None,
        at: [0, Q_DIM, Q_DIM + KV_DIM],
        stride: [STRIDE; 3],
    }
}

/// The queries and the attention of three steps: a chunk, a few tokens, a single one.
fn attended(
    device: &Device,
    variant: Variant,
    by_parts: bool,
    inputs: &[Vec<f32>; 3],
    rotary: [Rotary; 3],
) -> Vec<f32> {
    let shape = AttentionShape {
        heads: HEADS,
        kv_heads: KV_HEADS,
        head_dim: HEAD_DIM,
        window: None,
        soft_cap: None,
    };
    let radians: Vec<f64> = (0..PAIRS).map(|pair| 0.7f64.powi(pair as i32)).collect();
    let parts: Vec<u32> = (0..PAIRS).map(|pair| pair as u32 % 3).collect();
    let turns = match by_parts {
        true => turns_by_parts(&radians, &parts, device),
        false => turns(&radians, device),
    };
    let mut kv = KvMemory::new(3, KV_DIM, KvFormat::F32, device).with_context(192);
    let mut step = Step::new(70, 3, device);
    let (mut position, mut outputs) = (0, Vec::new());
    for (input, rotary) in inputs.iter().zip(rotary) {
        let tokens = input.len() / STRIDE;
        step.set(&[Segment {
            position,
            tokens,
            pages: &[2, 0, 1],
            state: 0,
            is_seen_whole: false,
            rotary,
        }]);
        let qkv = tensor(input, [tokens, STRIDE], device);
        let qkv = [qkv.clone(), qkv.clone(), qkv];
        let attended = match tokens {
            1 if !variant.cpu => attention_split(
                qkv,
                None,
                turns.clone(),
                &mut kv,
                &step,
                None,
                rope(by_parts),
                shape,
            ),
            _ => {
                let q = rope_kv(
                    qkv,
                    None,
                    turns.clone(),
                    &mut kv,
                    &step,
                    rope(by_parts),
                    variant,
                );
                outputs.extend(values(q.clone()));
                attention(q, &kv, &step, None, shape, variant)
            }
        };
        outputs.extend(values(attended));
        position += tokens;
    }
    outputs
}

#[test]
fn rotary_positions_of_parts_equal_their_twin() {
    let (gpu, cpu, mut noise) = (gpu(), Device::flex(), Noise(23));
    let inputs = [66, 5, 1].map(|tokens| noise.floats(tokens * STRIDE));
    let place = |at: u32| [at / 20, at / 5 % 4, at % 5];
    let first: Vec<[u32; 3]> = (0..66).map(place).collect();
    let second: Vec<[u32; 3]> = (66..71).map(place).collect();
    let rotary = |rows, offset: i32| Rotary {
        offset: offset as u32,
        rows,
    };
    let rotary = [
        rotary(&first[..], -9),
        rotary(&second[..], -12),
        rotary(&[], -12),
    ];
    let on_cpu = attended(&cpu, Variant::PORTABLE, true, &inputs, rotary);
    let rounded = attended(&cpu, Variant::CPU, true, &inputs, rotary);
    assert_eq!(rounded.len(), on_cpu.len() + Q_DIM);
    let same = on_cpu.len() - Q_DIM;
    let what = "the CPU";
    assert_close(
        what,
        &rounded[..same],
        &on_cpu[..same],
        tolerance(KvFormat::F32),
    );
    let (a, b) = (&rounded[same + Q_DIM..], &on_cpu[same..]);
    assert_close(what, a, b, tolerance(KvFormat::F32));
    for variant in tilings(&gpu) {
        let on_gpu = attended(gpu.device(), variant, true, &inputs, rotary);
        let what = format!("{variant:?}");
        assert_close(&what, &on_gpu, &on_cpu, tolerance(KvFormat::F32));
    }
    let plain = attended(
        &cpu,
        Variant::PORTABLE,
        true,
        &inputs,
        [Rotary::default(); 3],
    );
    assert!(plain.iter().zip(&on_cpu).any(|(a, b)| (a - b).abs() > 0.1));
}

/// A text has the same bits whether its model's positions have parts or not.
#[test]
fn equal_parts_are_indices() {
    let (gpu, cpu, mut noise) = (gpu(), Device::flex(), Noise(24));
    let inputs = [66, 5, 1].map(|tokens| noise.floats(tokens * STRIDE));
    for (device, variant) in [
        (&cpu, Variant::PORTABLE),
        (&cpu, Variant::CPU),
        (gpu.device(), Variant::PORTABLE),
    ] {
        let run = |by_parts| attended(device, variant, by_parts, &inputs, [Rotary::default(); 3]);
        assert_eq!(run(true), run(false), "{variant:?}");
    }
}

#[test]
fn columns_of_a_wider_tensor_gate_as_their_twin() {
    let (gpu, cpu, mut noise) = (gpu(), Device::flex(), Noise(33));
    let (tokens, cols, wide_cols) = (5, 36, 3 * 36);
    let (x, wide) = (
        noise.floats(tokens * cols),
        noise.floats(tokens * wide_cols),
    );
    for first in [0, 36, 72] {
        let run = |device: &Device| {
            let x = tensor(&x, [tokens, cols], device);
            let wide = tensor(&wide, [tokens, wide_cols], device);
            values(gate_columns(x, wide, ids(&[first], device)))
        };
        let exact = (0..tokens * cols).map(|i| {
            let (token, column) = (i / cols, i % cols);
            x[i] * wide[token * wide_cols + first as usize + column]
        });
        let exact: Vec<f32> = exact.collect();
        assert_eq!(run(gpu.device()), exact, "from column {first}");
        assert_eq!(run(&cpu), exact, "from column {first}");
    }
}

#[test]
fn limited_values_are_those_of_their_twin() {
    let (gpu, cpu, mut noise) = (gpu(), Device::flex(), Noise(35));
    let (tokens, cols) = (5, 36);
    let x = noise.floats(tokens * cols);
    let gelu = Finish::Activation(Activation::Gelu);
    for (bounds, finish) in [
        ([-0.25, 0.5], Finish::Plain),
        ([f32::MIN, 0.125], Finish::Plain),
        ([-0.5, f32::MAX], gelu),
    ] {
        let run = |device: &Device| {
            let bounds = tensor(&bounds, [2], device);
            values(limit(tensor(&x, [tokens, cols], device), bounds, finish))
        };
        let exact = x.iter().map(|x| match finish {
            Finish::Plain => x.clamp(bounds[0], bounds[1]),
            _ => Activation::Gelu.apply(x.clamp(bounds[0], bounds[1])),
        });
        let exact: Vec<f32> = exact.collect();
        assert_eq!(run(&cpu), exact, "{bounds:?}");
        for (found, exact) in run(gpu.device()).iter().zip(&exact) {
            assert!(
                (found - exact).abs() <= 1e-6,
                "{found} for {exact}, {bounds:?}"
            );
        }
    }
}

#[test]
fn words_are_rows_of_floats() {
    let mut noise = Noise(34);
    let floats = noise.floats(7 * 36);
    for device in [gpu().device(), &Device::flex()] {
        let words = floats.iter().map(|value| value.to_bits()).collect();
        let words = InPlace::upload(words, device);
        for rows in [1, 5, 7] {
            let found = word_rows(&words, [rows, 36]);
            assert_eq!(
                values(found),
                floats[..rows * 36],
                "{rows} rows on {device:?}"
            );
        }
    }
}
