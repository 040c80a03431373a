//! The recurrence with a matrix per head: kernels for few and for many tokens against the twin, the twin against the
//! formula, and the division of a sequence into steps.

use burn::tensor::Device;
use inpage::{
    device::Gpu,
    ops::{
        Variant,
        linear_recurrence::{RecurrenceShape, linear_recurrence},
        state_memory::StateMemory,
        step::{Segment, Step},
    },
};

use crate::{
    fixture::{Noise, assert_close, gpu, segment, tensor, values, words},
    recurrent::{run, steps},
};

/// Columns of the inputs before the first query, and words of a slot before the state.
const BEFORE: usize = 4;

/// The device of an op, and its kernels.
type On<'a> = (&'a Device, Variant);

/// A recurrence, its columns, and the numbers of its heads.
struct Case {
    shape: RecurrenceShape,
    /// Columns of queries, keys and values, and of rates and shares.
    strides: [usize; 2],
    of_heads: Vec<f32>,
}

impl Case {
    /// Decays of up to `e^-decay` per unit of the rate.
    fn new(
        (heads, key_heads, key_len, value_len, is_delta): (usize, usize, usize, usize, bool),
        decay: f32,
        noise: &mut Noise,
    ) -> Case {
        let keys = key_heads * key_len;
        let numbers = 2 * heads + 5;
        let shape = RecurrenceShape {
            heads,
            key_heads,
            key_len,
            value_len,
            is_tiled: is_delta,
            is_delta,
            eps: 1e-6,
            q_scale: (key_len as f32).sqrt().recip(),
            at: [BEFORE, keys + BEFORE, 2 * keys + BEFORE],
            rates: [1, numbers],
            shares: [heads + 2, numbers],
            state_at: BEFORE,
        };
        let of_heads = (0..3 * heads).map(|i| match i < heads {
            true => noise.next().abs() * -decay,
            false => noise.next(),
        });
        Case {
            shape,
            strides: [2 * keys + heads * value_len + BEFORE, numbers],
            of_heads: of_heads.collect(),
        }
    }

    /// Inputs, rates and shares of so many rows.
    fn inputs(&self, rows: usize, noise: &mut Noise) -> [Vec<f32>; 2] {
        self.strides.map(|columns| noise.floats(rows * columns))
    }

    fn columns(&self) -> usize {
        self.shape.heads * self.shape.value_len
    }

    fn compute(
        &self,
        [x, rates]: [&[f32]; 2],
        states: &mut StateMemory,
        step: &Step,
        (device, variant): On,
    ) -> Vec<f32> {
        let rows = x.len() / self.strides[0];
        let rates = tensor(rates, [rows, self.strides[1]], device);
        values(linear_recurrence(
            tensor(x, [rows, self.strides[0]], device),
            [rates.clone(), rates],
            tensor(&self.of_heads, [self.of_heads.len()], device),
            states,
            step,
            self.shape,
            variant,
        ))
    }
}

#[test]
fn linear_recurrence_equals_its_twin() {
    let (gpu, cpu, mut noise) = (gpu(), Device::flex(), Noise(32));
    for (sizes, decay) in [
        ((6, 2, 48, 32, true), 0.5),
        ((3, 3, 32, 16, true), 0.01),
        ((2, 2, 256, 16, true), 40.0),
        ((6, 2, 16, 48, false), 0.5),
        ((2, 1, 128, 64, false), 0.02),
    ] {
        let case = Case::new(sizes, decay, &mut noise);
        let steps = steps();
        let inputs: Vec<[Vec<f32>; 2]> = steps
            .iter()
            .map(|(_, rows)| case.inputs(*rows, &mut noise))
            .collect();
        let words_of_slot = BEFORE + case.shape.state_words();
        let compute = |on: On| {
            let op = |i: usize, _, states: &mut StateMemory, step: &Step| {
                let [x, rates] = &inputs[i];
                case.compute([x, rates], states, step, on)
            };
            run(on.0, words_of_slot, case.columns(), op)
        };
        let exact = compute((&cpu, Variant::PORTABLE));
        for on in [(gpu.device(), Variant::PORTABLE), (&cpu, Variant::CPU)] {
            let found = compute(on);
            let what = format!("{sizes:?} in {:?}", on.1.name());
            assert_close(&what, &found.0, &exact.0, 1e-4);
            // The words before the recurrence are not written.
            let slots = found.1.chunks(words_of_slot);
            for (found, exact) in slots.zip(exact.1.chunks(words_of_slot)) {
                assert_close(&what, &found[BEFORE..], &exact[BEFORE..], 1e-4);
            }
        }
    }
}

/// The GPU, the reference and the CPU device.
fn places<'a>(gpu: &'a Gpu, cpu: &'a Device) -> [On<'a>; 3] {
    let (gpu, portable) = (gpu.device(), Variant::PORTABLE);
    [(gpu, portable), (cpu, portable), (cpu, Variant::CPU)]
}

/// The state in slot 1 after tokens `0..tokens` were fed in steps of the given sizes, and all results.
fn in_steps(case: &Case, inputs: &[Vec<f32>; 2], sizes: &[(usize, usize)], on: On) -> Vec<u32> {
    let device = on.0;
    let mut states = StateMemory::new(2, BEFORE + case.shape.state_words(), device);
    let mut step = Step::new(256, 8, device);
    let (mut first, mut out) = (0, Vec::new());
    for &(tokens, rows) in sizes {
        step.set(&[Segment {
            state: 1,
            ..segment(first, tokens, &[0, 1, 2, 3])
        }]);
        let mut parts = [0, 1].map(|part| {
            let columns = case.strides[part];
            inputs[part][first * columns..][..tokens * columns].to_vec()
        });
        for (part, columns) in parts.iter_mut().zip(case.strides) {
            // Padding.
            part.resize(rows * columns, f32::NAN);
        }
        let [x, rates] = &parts;
        let results = case.compute([x, rates], &mut states, &step, on);
        out.extend(
            results[..tokens * case.columns()]
                .iter()
                .map(|it| it.to_bits()),
        );
        first += tokens;
    }
    out.extend(&words(states.words())[states.slot_words() + BEFORE..][..case.shape.state_words()]);
    out
}

/// Steps of many tokens begin where pages do. Where they end, and how they are padded, changes no bit.
#[test]
fn the_division_into_steps_at_page_ends_changes_no_bit() {
    let (gpu, cpu, mut noise) = (gpu(), Device::flex(), Noise(41));
    for sizes in [(4, 2, 32, 32, true), (4, 2, 32, 32, false)] {
        let case = Case::new(sizes, 0.1, &mut noise);
        let inputs = case.inputs(150, &mut noise);
        for on in places(&gpu, &cpu) {
            let whole = in_steps(&case, &inputs, &[(150, 150)], on);
            for parts in [
                &[(64, 64), (86, 128)][..],
                &[(128, 256), (22, 32)],
                &[(64, 128), (64, 64), (22, 22)],
            ] {
                let found = in_steps(&case, &inputs, parts, on);
                assert!(found == whole, "{sizes:?} in {parts:?}");
            }
            // The tokens before the end of a step do not depend on those after it.
            let shorter = in_steps(&case, &inputs, &[(77, 77)], on);
            let results = 77 * case.columns();
            assert!(shorter[..results] == whole[..results], "{sizes:?}");
        }
    }
}

/// Keys that all tokens share, shares of almost 1 and no decay: what a token adds is taken away by the next one.
#[test]
fn equal_keys_stay_precise() {
    let (gpu, cpu, mut noise) = (gpu(), Device::flex(), Noise(42));
    let mut case = Case::new((2, 1, 32, 16, true), 0.0, &mut noise);
    case.of_heads[4..].fill(0.0);
    let [mut x, mut rates] = case.inputs(128, &mut noise);
    let keys = BEFORE + 32..BEFORE + 64;
    let first = x[keys.clone()].to_vec();
    for row in x.chunks_exact_mut(case.strides[0]) {
        row[keys.clone()].copy_from_slice(&first);
    }
    for row in rates.chunks_exact_mut(case.strides[1]) {
        row[case.shape.shares[0]..][..2].fill(12.0);
    }
    let [on_gpu, exact, on_cpu] = places(&gpu, &cpu).map(|on| {
        let found = in_steps(&case, &[x.clone(), rates.clone()], &[(128, 128)], on);
        found.into_iter().map(f32::from_bits).collect::<Vec<f32>>()
    });
    assert_close("equal keys", &on_gpu, &exact, 1e-5);
    assert_close("equal keys", &on_cpu, &exact, 1e-5);
}

/// Two tokens of one head by hand, with keys of a single element that is not zero.
#[test]
fn the_delta_rule_replaces_what_a_key_returns() {
    let cpu = Device::flex();
    let shape = RecurrenceShape {
        heads: 1,
        key_heads: 1,
        key_len: 16,
        value_len: 16,
        is_tiled: true,
        is_delta: true,
        eps: 0.0,
        q_scale: 1.0,
        at: [0, 16, 32],
        rates: [0, 2],
        shares: [1, 2],
        state_at: 0,
    };
    let mut x = vec![0.0; 2 * 48];
    for (row, value) in [(0, 3.0), (1, 5.0)] {
        (x[row * 48], x[row * 48 + 16], x[row * 48 + 32]) = (2.0, 4.0, value);
    }
    let mut states = StateMemory::new(1, 256, &cpu);
    let mut step = Step::new(2, 1, &cpu);
    step.set(&[segment(0, 2, &[0])]);
    // The rate is softplus(0) = ln 2, so that the decay is 1/2; the share is sigmoid(0) = 1/2.
    let case = Case {
        shape,
        strides: [48, 2],
        of_heads: vec![-1.0, 0.0, 0.0],
    };
    let out = case.compute(
        [&x, &[0.0; 4]],
        &mut states,
        &step,
        (&cpu, Variant::PORTABLE),
    );
    assert!((out[0] - 1.5).abs() < 1e-6, "{out:?}");
    // 0.75 remains; half of 5 - 0.75 is added.
    assert!((out[16] - (0.75 + 2.125)).abs() < 1e-6, "{out:?}");
}

/// A measurement, not a test: `cargo test --release --features test-hooks --test kernels recurrence_speed -- --ignored
/// --nocapture`. Prints JSON: milliseconds of 256 tokens of a layer of Qwen3.5-0.8B, in chunks and as steps of 8 tokens,
/// which pass through their tokens one after the other.
#[test]
#[ignore = "a measurement"]
fn recurrence_speed() {
    let (gpu, mut noise) = (gpu(), Noise(43));
    let case = Case::new((16, 16, 128, 128, true), 0.1, &mut noise);
    let inputs = case.inputs(256, &mut noise);
    let on = (gpu.device(), Variant::PORTABLE);
    let [chunks, single] = [vec![(256, 256)], vec![(8, 8); 32]].map(|steps| {
        in_steps(&case, &inputs, &steps, on);
        let runs = (0..3).map(|_| {
            let begun = std::time::Instant::now();
            in_steps(&case, &inputs, &steps, on);
            begun.elapsed().as_secs_f64() * 1e3
        });
        runs.fold(f64::INFINITY, f64::min)
    });
    let ratio = single / chunks;
    println!("{{\"chunks_ms\":{chunks:.1},\"steps_of_8_ms\":{single:.1},\"ratio\":{ratio:.2}}}");
}
