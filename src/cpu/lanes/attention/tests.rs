//! Attention against one in f64 over the decoded cache.

use std::time::Instant;

use super::*;
use crate::lanes::{
    f32x8::{backends, run_on},
    kv::PAGE_TOKENS,
    test_values::{assert_close, bits, wave},
};

/// Shuffled pages; page 2 is of no sequence.
const PAGES: [u32; 10] = [3, 0, 4, 1, 9, 10, 5, 8, 6, 7];

/// A cache with random rows in the pages of the sequence, and NaN or the like everywhere else and after token `last`.
fn cache(shape: AttentionShape, format: KvFormat, last: usize) -> Vec<u32> {
    let kv_dim = shape.kv_dim();
    let mut kv = vec![u32::MAX; 11 * format.page_words(kv_dim)];
    for position in 0..=last {
        for value in 0..2 {
            let page = PAGES[position / PAGE_TOKENS];
            let row = wave(kv_dim, (2 * position + value) as u64);
            let place = (page, position % PAGE_TOKENS);
            format.store_heads(&mut kv, place, value, &row, shape.head_dim);
        }
    }
    kv
}

/// The result for one row in f64.
fn exact(
    q: &[f32],
    kv: &[u32],
    row: Row,
    shape: AttentionShape,
    format: KvFormat,
    sinks: Option<&[f32]>,
) -> Vec<f64> {
    let dim = shape.head_dim;
    let is_seen = |other: &usize| match shape.window {
        None => true,
        Some(Window::Sliding(tokens)) => other.abs_diff(row.position()) < tokens,
        Some(Window::Chunk(tokens)) => other / tokens == row.position() / tokens,
    };
    let seen = (row.first()..row.length()).filter(is_seen);
    let load = |past: usize, value: usize| {
        let page = PAGES[past / PAGE_TOKENS];
        let mut row = vec![0.0; shape.kv_dim()];
        for (kv_head, head) in row.chunks_exact_mut(dim).enumerate() {
            let place = (page, past % PAGE_TOKENS);
            let at = format.head_at(place, value, kv_head, [shape.kv_heads, dim]);
            format.load(&kv[at..], 0, head);
        }
        row
    };
    let rows: Vec<_> = seen.map(|past| (load(past, 0), load(past, 1))).collect();
    let mut out = vec![0.0; shape.q_dim()];
    for head in 0..shape.heads {
        let kv_at = head / group(shape) * dim;
        let query = &q[head * dim..][..dim];
        let score = |k: &[f32]| {
            let products = query.iter().zip(&k[kv_at..]);
            let sum: f64 = products.map(|(a, b)| f64::from(*a) * f64::from(*b)).sum();
            shape
                .soft_cap
                .map_or(sum, |cap| f64::from(cap) * (sum / f64::from(cap)).tanh())
        };
        let weights: Vec<f64> = rows.iter().map(|(k, _)| score(k).exp()).collect();
        let sink = sinks.map_or(0.0, |sinks| f64::from(sinks[head]).exp());
        let total = weights.iter().sum::<f64>() + sink;
        for ((_, v), weight) in rows.iter().zip(&weights) {
            for i in 0..dim {
                out[head * dim + i] += weight / total * f64::from(v[kv_at + i]);
            }
        }
    }
    out
}

/// Query heads that share a key head.
fn group(shape: AttentionShape) -> usize {
    shape.heads / shape.kv_heads
}

fn shapes() -> Vec<AttentionShape> {
    let mut shapes = Vec::new();
    for (i, head_dim) in [4, 20, 36, 64, 80, 96, 128, 256].into_iter().enumerate() {
        for (j, group) in [1, 3, 8].into_iter().enumerate() {
            let (window, soft_cap) = [
                (None, None),
                (Some(Window::Sliding(70)), Some(3.0)),
                (Some(Window::Sliding(5)), None),
                (Some(Window::Chunk(37)), None),
            ][(i + j) % 4];
            shapes.push(AttentionShape {
                heads: 2 * group,
                kv_heads: 2,
                head_dim,
                window,
                soft_cap,
            });
        }
    }
    shapes
}

fn cases() -> impl Iterator<Item = (AttentionShape, KvFormat)> {
    let all = shapes()
        .into_iter()
        .flat_map(|s| KvFormat::ALL.map(|f| (s, f)));
    all.filter(|(shape, format)| shape.head_dim % format.head_multiple() == 0)
}

fn rows(positions: &[usize]) -> Vec<Row<'static>> {
    let row = |position: &usize| Row::new(*position, &PAGES);
    positions.iter().map(row).collect()
}

/// Queries that have scores between about -6 and 6.
fn queries(rows: usize, shape: AttentionShape) -> Vec<f32> {
    let scale = 1.5 / (shape.head_dim as f32).sqrt();
    wave(rows * shape.q_dim(), 77)
        .iter()
        .map(|v| v * scale)
        .collect()
}

#[test]
fn rows_attend_to_what_they_see_alike_on_all_lanes() {
    for (shape, format) in cases() {
        let positions = [0, 63, 64, 200, 255, 256, 600];
        let kv = cache(shape, format, 600);
        let q = queries(8, shape);
        let rows = rows(&positions);
        let mut out = vec![9.0; 8 * shape.q_dim()];
        attention(&q, &kv, &rows, shape, format, &mut out);
        let (written, padding) = out.split_at(7 * shape.q_dim());
        assert!(padding.iter().all(|v| *v == 9.0));
        for (i, row) in rows.iter().enumerate() {
            let cells = i * shape.q_dim()..(i + 1) * shape.q_dim();
            let exact = exact(&q[cells.clone()], &kv, *row, shape, format, None);
            for (value, exact) in written[cells].iter().zip(exact) {
                assert_close(*value, exact, 4e-6);
            }
        }
        for backend in backends() {
            let mut again = vec![0.0; out.len()];
            let parts = AttentionParts::new(&q, &kv, &rows, shape, format, &mut again);
            let mut scratch = vec![f32::NAN; parts.scratch_floats()];
            for part in 0..parts.parts() {
                // SAFETY: the part exists, and the memory has the size.
                if let Some(heads) = unsafe { parts.heads(part, 0, scratch.as_mut_ptr()) } {
                    run_on(backend, heads);
                }
            }
            run_on(backend, Join(&parts));
            drop(parts);
            let again = &again[..written.len()];
            assert_eq!(
                bits(again),
                bits(written),
                "{backend:?} {shape:?} {format:?}"
            );
        }
    }
}

#[test]
fn rows_of_a_prompt_have_the_bits_of_single_rows_on_any_team() {
    let positions = (50..=140)
        .chain([7, 8, 9])
        .chain(245..=280)
        .chain(508..=515);
    let positions: Vec<usize> = positions.collect();
    let rows = rows(&positions);
    let team = Team::new(3);
    for (shape, format) in cases() {
        let kv = cache(shape, format, 515);
        let q = queries(rows.len(), shape);
        let mut out = vec![0.0; q.len()];
        attention_with(&team, &q, &kv, &rows, shape, format, None, &mut out);
        for i in (0..rows.len()).step_by(3) {
            let cells = i * shape.q_dim()..(i + 1) * shape.q_dim();
            let mut alone = vec![0.0; shape.q_dim()];
            attention(
                &q[cells.clone()],
                &kv,
                &rows[i..=i],
                shape,
                format,
                &mut alone,
            );
            assert_eq!(
                bits(&out[cells]),
                bits(&alone),
                "row {i} {shape:?} {format:?}"
            );
        }
    }
}

#[test]
fn sinks_join_the_softmax_without_a_value() {
    let rows = rows(&[0, 64, 139, 140, 300]);
    let team = Team::new(3);
    for (shape, format) in cases() {
        let kv = cache(shape, format, 300);
        let q = queries(rows.len(), shape);
        let mut out = vec![0.0; q.len()];
        // Some outweigh all that a row sees.
        let sinks: Vec<f32> = wave(shape.heads, 5).iter().map(|v| 9.0 * v).collect();
        let some = Some(&sinks[..]);
        attention_with(&team, &q, &kv, &rows, shape, format, some, &mut out);
        for (i, row) in rows.iter().enumerate() {
            let cells = i * shape.q_dim()..(i + 1) * shape.q_dim();
            let exact = exact(&q[cells.clone()], &kv, *row, shape, format, some);
            for (value, exact) in out[cells].iter().zip(exact) {
                assert_close(*value, exact, 4e-6);
            }
        }
    }
}

/// Two sequences of 130 and 5 tokens, as an encoder feeds them; those of the shorter one are on the page that is last
/// of the longer one's table. Then three that begin and end within pages and share them: each sees its own tokens.
#[test]
fn whole_sequences_see_the_tokens_after_them_too() {
    let row = |length: usize, pages: &'static [u32]| {
        (0..length).map(move |position| Row::new(position, pages).seeing(length))
    };
    let part = |begin: usize, end: usize| {
        let positions = begin..end;
        positions.map(move |at| Row::new(at, &PAGES[..3]).seeing(end).since(begin))
    };
    let rows: Vec<Row> = row(130, &PAGES[..3]).chain(row(5, &PAGES[..1])).collect();
    let parts = part(3, 9).chain(part(9, 100)).chain(part(100, 129));
    let rows: Vec<Row> = rows.into_iter().chain(parts).collect();
    let team = Team::new(3);
    for (shape, format) in cases() {
        let kv = cache(shape, format, 130);
        let q = queries(rows.len(), shape);
        let mut out = vec![0.0; q.len()];
        attention_with(&team, &q, &kv, &rows, shape, format, None, &mut out);
        for i in [
            0, 1, 62, 64, 100, 128, 129, 130, 134, 135, 140, 141, 200, 231, 232, 260,
        ] {
            let cells = i * shape.q_dim()..(i + 1) * shape.q_dim();
            let exact = exact(&q[cells.clone()], &kv, rows[i], shape, format, None);
            for (value, exact) in out[cells.clone()].iter().zip(exact) {
                assert_close(*value, exact, 4e-6);
            }
            let mut alone = vec![0.0; shape.q_dim()];
            let row = &rows[i..=i];
            attention(&q[cells.clone()], &kv, row, shape, format, &mut alone);
            assert_eq!(
                bits(&out[cells]),
                bits(&alone),
                "row {i} {shape:?} {format:?}"
            );
        }
    }
}

/// Prints how fast K and V are read in decode: `cargo test -p inpage-cpu -- --ignored --nocapture speed`.
#[test]
#[ignore = "measures time"]
fn speed_of_decode() {
    let shape = AttentionShape {
        heads: 9,
        kv_heads: 3,
        head_dim: 64,
        window: None,
        soft_cap: None,
    };
    let pages: Vec<u32> = (0..16).map(|i| i * 7 % 16).collect();
    let rows = [Row::new(1023, &pages)];
    let q = queries(1, shape);
    for format in KvFormat::ALL {
        let mut kv = vec![0; 16 * format.page_words(shape.kv_dim())];
        for (i, row) in kv
            .chunks_exact_mut(format.words(shape.kv_dim()))
            .enumerate()
        {
            format.store(row, &wave(shape.kv_dim(), i as u64));
        }
        for threads in [1, 2] {
            let team = Team::new(threads);
            let mut out = vec![0.0; q.len()];
            let mut best = f64::INFINITY;
            for _ in 0..300 {
                let begin = Instant::now();
                for _ in 0..10 {
                    attention_with(&team, &q, &kv, &rows, shape, format, None, &mut out);
                }
                best = best.min(begin.elapsed().as_secs_f64() / 10.0);
            }
            let gb_per_s = (kv.len() * 4) as f64 / best / 1e9;
            let micros = best * 1e6;
            println!(
                r#"{{"format":"{format:?}","threads":{threads},"us":{micros:.1},"gb_per_s":{gb_per_s:.1}}}"#
            );
        }
    }
}
