//! A measurement, not a test: `cargo test --release -p inpage-cpu recurrent_speed -- --ignored --nocapture`. Prints JSON: for
//! the kernels of a recurrent layer of Qwen3.5-0.8B, microseconds for some numbers of tokens of plain loops over the
//! formulas, of the kernels on one thread and on all, and the ratios of the first to the last two.

use std::hint::black_box;
use std::time::{Duration, Instant};

use super::{
    convolution::{ConvShape, ConvolutionInputs, ConvolutionRows, convolution},
    gated_norm::{GatedNormShape, gated_norm},
    recurrence::{RecurrenceInputs, RecurrenceRows, RecurrenceShape, recurrence},
    test_values::wave,
};
use crate::team::Team;

const HEADS: usize = 16;
const LEN: usize = 128;
const INNER: usize = HEADS * LEN;
const CHANNELS: usize = 3 * INNER;
const TAPS: usize = 4;

/// The least time of several runs, in microseconds.
fn least(mut run: impl FnMut()) -> f64 {
    let mut least = Duration::MAX;
    let start = Instant::now();
    while start.elapsed() < Duration::from_millis(400) {
        let start = Instant::now();
        run();
        least = least.min(start.elapsed());
    }
    least.as_nanos() as f64 / 1e3
}

fn report(name: &str, tokens: usize, plain: f64, kernel: impl Fn(&Team)) {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let [one, all] = [1, cores].map(|threads| {
        let team = Team::new(threads);
        least(|| kernel(&team))
    });
    println!(
        "{{\"kernel\":\"{name}\",\"tokens\":{tokens},\"threads\":{cores},\"plain_us\":{plain:.1},\
         \"one_thread_us\":{one:.1},\"all_threads_us\":{all:.1},\"ratio_one\":{:.1},\"ratio_all\":{:.1}}}",
        plain / one,
        plain / all
    );
}

fn silu(x: f32) -> f32 {
    x / (1.0 + (-x).exp())
}

/// The delta rule of a token and head. The state is decayed, read, changed and read again.
fn plain_token(state: &mut [f32], [query, key, value]: [&[f32]; 3], out: &mut [f32]) {
    let [decay, share] = [(-0.7f32).exp(), 1.0 / (1.0 + 0.3f32.exp())];
    let unit = |vector: &[f32]| -> Vec<f32> {
        let square: f32 = vector.iter().map(|v| v * v).sum();
        let scale = (square + 1e-6).sqrt().recip();
        vector.iter().map(|v| v * scale).collect()
    };
    let (query, key) = (unit(query), unit(key));
    state.iter_mut().for_each(|s| *s *= decay);
    let mut rest = value.to_vec();
    for (row, key) in state.chunks_exact(LEN).zip(&key) {
        rest.iter_mut()
            .zip(row)
            .for_each(|(rest, s)| *rest -= s * key);
    }
    out.fill(0.0);
    for (row, (key, query)) in state.chunks_exact_mut(LEN).zip(key.iter().zip(&query)) {
        for ((s, rest), out) in row.iter_mut().zip(&rest).zip(out.iter_mut()) {
            *s += key * share * rest;
            *out += *s * query;
        }
    }
}

fn recurrences(tokens: usize) {
    let (x, numbers) = (wave(tokens * CHANNELS, 1), wave(tokens * 2 * HEADS, 2));
    let of_heads = [vec![-0.5; HEADS], vec![0.1; HEADS], vec![0.0; HEADS]].concat();
    let mut states = vec![0.0; HEADS * LEN * LEN];
    let mut out = vec![0.0; tokens * INNER];
    let plain = least(|| {
        for (head, state) in states.chunks_exact_mut(LEN * LEN).enumerate() {
            for token in 0..tokens {
                let part = |at: usize| &x[token * CHANNELS + at * INNER + head * LEN..][..LEN];
                let out = &mut out[token * INNER + head * LEN..][..LEN];
                plain_token(state, [part(0), part(1), part(2)], out);
            }
        }
        black_box(&out);
    });
    let shape = RecurrenceShape {
        heads: HEADS,
        key_heads: HEADS,
        key_len: LEN,
        value_len: LEN,
        is_tiled: true,
        is_delta: true,
        eps: 1e-6,
        q_scale: 0.09,
        at: [0, INNER, 2 * INNER],
        rates: [0, 2 * HEADS],
        shares: [HEADS, 2 * HEADS],
        state_at: 0,
    };
    let inputs = RecurrenceInputs {
        x: &x,
        stride: CHANNELS,
        rates: &numbers,
        shares: &numbers,
        of_heads: &of_heads,
    };
    let memory = std::cell::RefCell::new((states, out));
    report("recurrence", tokens, plain, |team| {
        let (states, out) = &mut *memory.borrow_mut();
        let rows = RecurrenceRows {
            rows: 0..tokens,
            slot: states,
            is_new: false,
        };
        recurrence(team, inputs, vec![rows], shape, out);
    });
}

fn convolutions(tokens: usize) {
    let (x, weights) = (wave(tokens * CHANNELS, 1), wave(CHANNELS * TAPS, 2));
    let bias = wave(CHANNELS, 3);
    let mut kept = vec![0.0; (TAPS - 1) * CHANNELS];
    let mut out = vec![0.0; tokens * CHANNELS];
    let plain = least(|| {
        for channel in 0..CHANNELS {
            let before = (0..TAPS - 1).map(|i| kept[i * CHANNELS + channel]);
            let mut inputs: Vec<f32> = before.collect();
            inputs.extend((0..tokens).map(|row| x[row * CHANNELS + channel]));
            let weights = &weights[channel * TAPS..][..TAPS];
            for (row, inputs) in inputs.windows(TAPS).enumerate() {
                let products = inputs.iter().zip(weights).map(|(input, tap)| input * tap);
                out[row * CHANNELS + channel] = silu(bias[channel] + products.sum::<f32>());
            }
            for (i, input) in inputs[tokens..].iter().enumerate() {
                kept[i * CHANNELS + channel] = *input;
            }
        }
        black_box(&out);
    });
    let shape = ConvShape {
        channels: CHANNELS,
        taps: TAPS,
        is_gated: false,
        at: 0,
        stride: CHANNELS,
    };
    let inputs = ConvolutionInputs {
        x: &x,
        weights: &weights,
        bias: &bias,
    };
    let memory = std::cell::RefCell::new((kept, out));
    report("convolution", tokens, plain, |team| {
        let (kept, out) = &mut *memory.borrow_mut();
        let rows = ConvolutionRows {
            rows: 0..tokens,
            kept,
            is_new: false,
        };
        convolution(team, inputs, vec![rows], shape, out);
    });
}

fn gated_norms(tokens: usize) {
    let (x, gate) = (wave(tokens * INNER, 1), wave(tokens * INNER, 2));
    let norm = wave(LEN, 3);
    let plain = least(|| {
        let mut out = x.clone();
        for (group, gate) in out.chunks_exact_mut(LEN).zip(gate.chunks_exact(LEN)) {
            let mean = group.iter().map(|v| v * v).sum::<f32>() / LEN as f32;
            let scale = (mean + 1e-6).sqrt().recip();
            for ((value, norm), gate) in group.iter_mut().zip(&norm).zip(gate) {
                *value *= scale * norm * silu(*gate);
            }
        }
        black_box(&out);
    });
    let shape = GatedNormShape {
        group: LEN,
        normalizes: true,
        gates_first: false,
        eps: 1e-6,
        at: 0,
        stride: INNER,
    };
    report("gated_norm", tokens, plain, |team| {
        let mut out = x.clone();
        gated_norm(team, &mut out, INNER, &gate, &norm, shape);
        black_box(&out);
    });
}

#[test]
#[ignore = "a measurement"]
fn recurrent_speed() {
    for tokens in [1, 256] {
        recurrences(tokens);
        convolutions(tokens);
        gated_norms(tokens);
    }
}
