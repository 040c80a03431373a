//! The rotation against one in f64, in every format of the cache and on all lanes.

use super::*;
use crate::lanes::{
    f32x8::{backends, run_on},
    test_values::{assert_close, bits, wave},
};

fn shapes() -> Vec<RopeShape> {
    let mut shapes = Vec::new();
    for (head_dim, rope_dims) in [
        (4, 4),
        (20, 12),
        (36, 36),
        (64, 64),
        (80, 20),
        (96, 0),
        (128, 128),
        (256, 64),
    ] {
        for neox in [false, true] {
            shapes.push(RopeShape {
                heads: 6,
                kv_heads: 2,
                head_dim,
                neox,
                by_parts: false,
                norm_last: head_dim % 5 == 0,
                norms_values: false,
                only_queries: false,
                rope_dims,
                magnitude: 1.25,
                q_scale: 0.1,
                temperature: (head_dim % 32 == 0).then_some(Temperature {
                    tokens: 3,
                    offset: 1,
                    growth: 0.3,
                }),
                at: [4, 6 * head_dim, 8 * head_dim],
                stride: [10 * head_dim + 4; 3],
            });
        }
    }
    shapes
}

/// One head in f64: normalized, rotated, scaled.
fn exact(
    head: &[f32],
    weights: Option<(&[f32], f32)>,
    turns: &[u32],
    position: usize,
    shape: RopeShape,
    factor: f64,
) -> Vec<f64> {
    let mut head: Vec<f64> = head.iter().map(|v| f64::from(*v)).collect();
    if let Some((weights, eps)) = weights {
        let mean = head.iter().map(|v| v * v).sum::<f64>() / head.len() as f64;
        let scale = (mean + f64::from(eps)).sqrt().recip();
        for (v, w) in head.iter_mut().zip(weights) {
            *v *= scale * if shape.norm_last { 1.0 } else { f64::from(*w) };
        }
    }
    let mut out: Vec<f64> = head.iter().map(|v| v * factor).collect();
    let half = shape.rope_dims / 2;
    for i in 0..half {
        let (a, b) = if shape.neox {
            (i, i + half)
        } else {
            (2 * i, 2 * i + 1)
        };
        let turned = (position as u32).wrapping_mul(turns[i]) as i32;
        let (sin, cos) = (f64::from(turned) / 4294967296.0 * std::f64::consts::TAU).sin_cos();
        let factor = factor * f64::from(shape.magnitude);
        out[a] = (head[a] * cos - head[b] * sin) * factor;
        out[b] = (head[a] * sin + head[b] * cos) * factor;
    }
    if let Some((weights, _)) = weights.filter(|_| shape.norm_last) {
        for (v, w) in out.iter_mut().zip(weights) {
            *v *= f64::from(*w);
        }
    }
    out
}

fn turns(shape: RopeShape) -> Vec<u32> {
    let angle = |i: usize| 10000f64.powf(-2.0 * i as f64 / shape.rope_dims as f64);
    let turn = |i| (angle(i) / std::f64::consts::TAU * 4294967296.0).round() as u32;
    (0..shape.rope_dims / 2).map(turn).collect()
}

#[test]
fn heads_are_rotated_and_stored() {
    let rows = [0, 63, 64, 200].map(|position| Row::new(position, &[3, 0, 4, 1]));
    for (shape, format) in shapes()
        .into_iter()
        .flat_map(|s| KvFormat::ALL.map(|f| (s, f)))
    {
        if shape.head_dim % format.head_multiple() != 0 {
            continue;
        }
        // A padding row follows.
        let tensor = wave(5 * shape.stride[0], 7);
        let turns = turns(shape);
        let weights = wave(2 * shape.head_dim, 8);
        for norm in [None, Some((&weights[..], 1e-6f32))] {
            let mut seen = Vec::new();
            for backend in backends() {
                let mut kv = vec![0xdead_beef; 5 * format.page_words(shape.kv_dim())];
                let mut q_out = vec![9.0; 5 * shape.q_dim()];
                let input = Input {
                    qkv: [&tensor; 3],
                    norm,
                    turns: &turns,
                    rows: &rows,
                };
                run_on(
                    backend,
                    Rope {
                        input,
                        kv: &mut kv,
                        shape,
                        format,
                        q_out: &mut q_out,
                    },
                );
                assert!(q_out[4 * shape.q_dim()..].iter().all(|v| *v == 9.0));
                check(&tensor, norm, &turns, &rows, shape, format, &kv, &q_out);
                seen.push((kv, bits(&q_out)));
            }
            assert!(seen.iter().all(|out| *out == seen[0]));
        }
    }
}

/// The further factor of a query.
fn temperature(shape: RopeShape, position: usize) -> f64 {
    shape.temperature.map_or(1.0, |it| {
        let steps = ((position + it.offset) / it.tokens) as f64;
        1.0 + f64::from(it.growth) * steps.ln_1p()
    })
}

#[expect(clippy::too_many_arguments)]
fn check(
    tensor: &[f32],
    norm: Option<(&[f32], f32)>,
    turns: &[u32],
    rows: &[Row],
    shape: RopeShape,
    format: KvFormat,
    kv: &[u32],
    q_out: &[f32],
) {
    let dim = shape.head_dim;
    let words = format.words(shape.kv_dim());
    for (i, row) in rows.iter().enumerate() {
        for head in 0..shape.heads {
            let from = &tensor[i * shape.stride[0] + shape.at[0] + head * dim..][..dim];
            let exact = exact(
                from,
                norm,
                turns,
                row.position(),
                shape,
                f64::from(shape.q_scale) * temperature(shape, row.position()),
            );
            for (at, exact) in exact.into_iter().enumerate() {
                assert_close(q_out[(i * shape.heads + head) * dim + at], exact, 1e-6);
            }
        }
        let place = (row.pages()[row.position() / 64], row.position() % 64);
        let head_at = |value, head| format.head_at(place, value, head, [shape.kv_heads, dim]);
        for head in 0..shape.kv_heads {
            let mut stored = vec![0.0; dim];
            format.load(&kv[head_at(0, head)..], 0, &mut stored);
            let from = &tensor[i * shape.stride[1] + shape.at[1] + head * dim..][..dim];
            let norm = norm.map(|(weights, eps)| (&weights[dim..], eps));
            let exact = exact(from, norm, turns, row.position(), shape, 1.0);
            for (at, exact) in exact.into_iter().enumerate() {
                assert_close(stored[at], exact, format.error());
            }
            let values = &tensor[i * shape.stride[2] + shape.at[2] + head * dim..][..dim];
            let mut encoded = vec![0; format.words(dim)];
            format.store(&mut encoded, values);
            assert_eq!(kv[head_at(1, head)..][..encoded.len()], encoded);
        }
    }
    let written = kv.iter().filter(|word| **word != 0xdead_beef).count();
    assert_eq!(
        written,
        2 * rows.len() * words,
        "words of no row are changed"
    );
}
