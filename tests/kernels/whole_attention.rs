//! Attention of whole sequences on every device, against a formula in f64 that shares nothing with the twin. The sizes
//! fill neither workgroups nor tiles nor pages, and sequences begin and end within workgroups.

use burn::tensor::Device;
use inpage::ops::{
    Variant,
    add_token_type::add_token_type,
    attention::{AttentionShape, Window, whole_attention},
    kv_memory::{KvFormat, KvMemory},
    rope_kv::{RopeShape, rope_kv, turns},
    step::{PAGE_TOKENS, Segment, Step},
};

use crate::fixture::{Noise, assert_close, gpu, ids, segment, tensor, tolerance, values};

const PLAIN: AttentionShape = AttentionShape {
    heads: 3,
    kv_heads: 3,
    head_dim: 12,
    window: None,
    soft_cap: None,
};

/// Heads that fill no vector of eight, shared key heads, windows, caps, the longest head.
const SHAPES: [AttentionShape; 4] = [
    PLAIN,
    AttentionShape {
        heads: 6,
        kv_heads: 2,
        head_dim: 64,
        window: Some(Window::Sliding(9)),
        ..PLAIN
    },
    AttentionShape {
        heads: 2,
        kv_heads: 1,
        head_dim: 256,
        window: Some(Window::Sliding(1)),
        soft_cap: Some(0.5),
    },
    AttentionShape {
        heads: 4,
        kv_heads: 4,
        head_dim: 80,
        soft_cap: Some(20.0),
        ..PLAIN
    },
];

/// Tokens of the sequences of a step.
const STEPS: [&[usize]; 4] = [&[1], &[70, 3, 1, 130], &[17], &[5, 5, 64, 1, 200]];

fn stride(shape: AttentionShape) -> usize {
    shape.q_dim() + 2 * shape.kv_dim()
}

/// The attention of the sequences whose projections are `rows`, with padding rows after them. Each is on pages of its
/// own.
fn attended(
    shape: AttentionShape,
    lengths: &[usize],
    rows: &[f32],
    format: KvFormat,
    device: &Device,
    variant: Variant,
) -> Vec<f32> {
    let mut places = Vec::new();
    let mut next = 0;
    for length in lengths {
        let count = length.div_ceil(PAGE_TOKENS) as u32;
        // In reverse, so that block tables matter.
        places.push((0, (next..next + count).rev().collect()));
        next += count;
    }
    attended_at(&places, shape, lengths, rows, format, device, variant)
}

/// Same as [`attended`], for sequences that follow each other on the same pages.
fn attended_on_shared_pages(
    shape: AttentionShape,
    lengths: &[usize],
    rows: &[f32],
    device: &Device,
    variant: Variant,
) -> Vec<f32> {
    let tokens: usize = lengths.iter().sum();
    let pages: Vec<u32> = (0..tokens.div_ceil(PAGE_TOKENS) as u32).rev().collect();
    let mut next = 0;
    let places = lengths.iter().map(|length| {
        let begin = next;
        next += length;
        let own = begin / PAGE_TOKENS..next.div_ceil(PAGE_TOKENS);
        (begin % PAGE_TOKENS, pages[own].to_vec())
    });
    let places: Vec<_> = places.collect();
    let format = KvFormat::F32;
    attended_at(&places, shape, lengths, rows, format, device, variant)
}

/// Same as [`attended`]. `places` are the position at which each sequence begins, and its pages.
fn attended_at(
    places: &[(usize, Vec<u32>)],
    shape: AttentionShape,
    lengths: &[usize],
    rows: &[f32],
    format: KvFormat,
    device: &Device,
    variant: Variant,
) -> Vec<f32> {
    let tokens: usize = lengths.iter().sum();
    let entries = places.iter().map(|(_, pages)| pages.len()).sum();
    let mut kv = KvMemory::new(entries, shape.kv_dim(), format, device);
    let mut step = Step::new(tokens, entries, device);
    let segments = lengths.iter().zip(places);
    let segments = segments.map(|(n, (position, pages))| segment(*position, *n, pages));
    step.set(&segments.collect::<Vec<Segment>>());
    let padded = tokens + 5;
    let mut rows = rows.to_vec();
    rows.resize(padded * stride(shape), 0.5);
    let qkv = tensor(&rows, [padded, stride(shape)], device);
    let rope = RopeShape {
        heads: shape.heads,
        kv_heads: shape.kv_heads,
        head_dim: shape.head_dim,
        neox: false,
        by_parts: false,
        norm_last: false,
        norms_values: false,
        only_queries: false,
        rope_dims: 0,
        magnitude: 1.0,
        q_scale: 0.3,
        temperature: None,
        at: [0, shape.q_dim(), shape.q_dim() + shape.kv_dim()],
        stride: [stride(shape); 3],
    };
    let qkv = [qkv.clone(), qkv.clone(), qkv];
    let q = rope_kv(
        qkv,
        None,
        turns(&[0.0], device),
        &mut kv,
        &step,
        rope,
        variant,
    );
    let mut out = values(whole_attention(q, &kv, &step, shape, variant));
    out.truncate(tokens * shape.q_dim());
    out
}

/// The formula.
fn naive(shape: AttentionShape, lengths: &[usize], rows: &[f32]) -> Vec<f32> {
    let mut out = Vec::new();
    let mut rows = rows.chunks_exact(stride(shape));
    for &length in lengths {
        let own: Vec<&[f32]> = rows.by_ref().take(length).collect();
        for i in 0..length {
            for head in 0..shape.heads {
                let q = &own[i][head * shape.head_dim..][..shape.head_dim];
                let kv_at = head / (shape.heads / shape.kv_heads) * shape.head_dim;
                let part = |j: usize, at: usize| &own[j][at + kv_at..][..shape.head_dim];
                let window = shape.window.map_or(usize::MAX, Window::tokens);
                let seen = (0..length).filter(|j| j.abs_diff(i) < window);
                let weighted = seen.map(|j| {
                    let products = q.iter().zip(part(j, shape.q_dim()));
                    let sum: f64 = products.map(|(a, b)| f64::from(*a) * f64::from(*b)).sum();
                    let score = 0.3 * sum;
                    let score = match shape.soft_cap.map(f64::from) {
                        Some(cap) => cap * (score / cap).tanh(),
                        None => score,
                    };
                    (score.exp(), part(j, shape.q_dim() + shape.kv_dim()))
                });
                let weighted: Vec<(f64, &[f32])> = weighted.collect();
                let total: f64 = weighted.iter().map(|(weight, _)| weight).sum();
                out.extend((0..shape.head_dim).map(|e| {
                    let sum: f64 = weighted.iter().map(|(w, v)| w * f64::from(v[e])).sum();
                    (sum / total) as f32
                }));
            }
        }
    }
    out
}

#[test]
fn tokens_attend_to_their_whole_sequence() {
    let gpu = gpu();
    let mut noise = Noise(11);
    for shape in SHAPES {
        for lengths in STEPS {
            let tokens: usize = lengths.iter().sum();
            let rows = noise.floats(tokens * stride(shape));
            let expected = naive(shape, lengths, &rows);
            for (name, device, variant) in [
                ("reference", &Device::flex(), Variant::PORTABLE),
                ("CPU", &Device::flex(), Variant::CPU),
                ("GPU", gpu.device(), Variant::PORTABLE),
            ] {
                let run = |lengths: &[usize], rows: &[f32]| {
                    attended(shape, lengths, rows, KvFormat::F32, device, variant)
                };
                let found = run(lengths, &rows);
                let what = format!("{lengths:?} of {shape:?} on {name}");
                assert_close(&what, &found, &expected, tolerance(KvFormat::F32));
                // Bits do not depend on the other sequences of the step.
                let on_shared_pages =
                    attended_on_shared_pages(shape, lengths, &rows, device, variant);
                assert_close(
                    &format!("{what}, shared pages"),
                    &on_shared_pages,
                    &expected,
                    tolerance(KvFormat::F32),
                );
                let last = lengths[lengths.len() - 1];
                let own = &rows[(tokens - last) * stride(shape)..];
                let alone = run(&[last], own);
                assert_eq!(
                    found[(tokens - last) * shape.q_dim()..],
                    alone[..],
                    "{what}"
                );
            }
        }
    }
}

#[test]
fn all_formats_of_keys_and_values_are_read() {
    let gpu = gpu();
    let shape = SHAPES[1];
    let rows = Noise(12).floats(75 * stride(shape));
    for format in KvFormat::ALL {
        let run =
            |device: &Device, variant| attended(shape, &[70, 5], &rows, format, device, variant);
        let expected = run(&Device::flex(), Variant::PORTABLE);
        let close =
            |what: &str, found: &[f32]| assert_close(what, found, &expected, tolerance(format));
        close("GPU", &run(gpu.device(), Variant::PORTABLE));
        close("CPU", &run(&Device::flex(), Variant::CPU));
    }
}

#[test]
fn the_row_of_its_type_is_added_to_each_token() {
    let gpu = gpu();
    for (tokens, cols) in [(1, 4), (3, 36), (70, 260)] {
        let mut noise = Noise(13);
        let (x, table) = (noise.floats(tokens * cols), noise.floats(3 * cols));
        let types: Vec<u32> = (0..tokens as u32).map(|token| token * 5 % 3).collect();
        let row = |i: usize| types[i / cols] as usize * cols + i % cols;
        let expected: Vec<f32> = (0..x.len()).map(|i| x[i] + table[row(i)]).collect();
        for device in [&Device::flex(), gpu.device()] {
            let x = tensor(&x, [tokens, cols], device);
            let table = tensor(&table, [3, cols], device);
            assert_eq!(
                values(add_token_type(x, ids(&types, device), table)),
                expected
            );
        }
    }
}
