//! Ops on the rows of steps and on the KV memory.

use burn::tensor::Device;
use inpage::ops::{
    Variant,
    attention::{AttentionShape, attention},
    copy_page::copy_page,
    kv_memory::{KvFormat, KvMemory},
    last_row::last_row,
    norm::{NormParams, norm},
    rope_kv::{RopeShape, rope_kv, turns},
    rows::{ROW_MULTIPLE, rows},
    step::{PAGE_TOKENS, Segment, Step},
};

use crate::fixture::{
    Noise, assert_close, gpu, ids, new_gpu, segment, tensor, tilings, tolerance, values, words,
};

/// All elements of `pages` pages.
fn kept(kv: &KvMemory, pages: usize, kv_dim: usize) -> Vec<f32> {
    let mut elements = vec![0.0; pages * 2 * PAGE_TOKENS * kv_dim];
    kv.format().load(&words(kv.words()), 0, &mut elements);
    elements
}

/// rope_kv and attention over several steps, with pages out of order and a padded chunk.
#[test]
fn attention_equals_its_twin() {
    let (gpu, cpu, mut noise) = (gpu(), Device::flex(), Noise(7));
    use KvFormat::{F16, F32};
    for (heads, kv_heads, head_dim, neox, formats) in [
        (8, 4, 8, false, &[F32, F16][..]),
        (6, 2, 64, true, &[F32, F16]),
        (4, 1, 96, false, &KvFormat::ALL),
        (2, 2, 256, true, &[F16]),
    ] {
        let (q_dim, kv_dim) = (heads * head_dim, kv_heads * head_dim);
        let stride = q_dim + 2 * kv_dim;
        let rope = RopeShape {
            heads,
            kv_heads,
            head_dim,
            neox,
            by_parts: false,
            norm_last: false,
            norms_values: false,
            only_queries: false,
            rope_dims: head_dim,
            magnitude: 1.0,
            q_scale: (head_dim as f32).sqrt().recip(),
            temperature: None,
            at: [0, q_dim, q_dim + kv_dim],
            stride: [stride; 3],
        };
        let shape = AttentionShape {
            heads,
            kv_heads,
            head_dim,
            window: None,
            soft_cap: None,
        };
        let freqs: Vec<f32> = (0..head_dim / 2)
            .map(|i| 10_000f32.powf(-2.0 * i as f32 / head_dim as f32))
            .collect();
        // Tokens and rows of each step: a chunk, a padded chunk, and single tokens, across the end of a page.
        let steps = [(61, 61), (5, 16), (1, 1), (100, 128), (1, 1)];
        let inputs: Vec<Vec<f32>> = steps
            .iter()
            .map(|(_, rows)| noise.floats(rows * stride))
            .collect();
        let run = |device: &Device, format: KvFormat, variant: Variant| {
            let mut kv = KvMemory::new(4, kv_dim, format, device);
            let mut step = Step::new(128, 8, device);
            let (mut position, mut outputs) = (0, Vec::new());
            // The memory past a sequence's end may hold anything.
            step.set(&[segment(0, 128, &[2, 0, 3])]);
            let junk = tensor(&vec![f32::NAN; 128 * stride], [128, stride], device);
            let freqs = turns(&wide(&freqs), device);
            let qkv = [junk.clone(), junk.clone(), junk];
            rope_kv(qkv, None, freqs.clone(), &mut kv, &step, rope, variant);
            for ((tokens, rows), input) in steps.iter().zip(&inputs) {
                step.set(&[segment(position, *tokens, &[2, 0, 3])]);
                let qkv = tensor(input, [*rows, stride], device);
                let q = rope_kv(
                    [qkv.clone(), qkv.clone(), qkv],
                    None,
                    freqs.clone(),
                    &mut kv,
                    &step,
                    rope,
                    variant,
                );
                let attended = attention(q.clone(), &kv, &step, None, shape, variant);
                outputs.extend_from_slice(&values(q)[..tokens * q_dim]);
                outputs.extend_from_slice(&values(attended)[..tokens * q_dim]);
                position += tokens;
            }
            outputs
        };
        for &format in formats {
            let on_cpu = run(&cpu, format, Variant::PORTABLE);
            let rounded = run(&cpu, format, Variant::CPU);
            let what = format!("{format:?} {heads}/{kv_heads}x{head_dim} on the CPU");
            assert_close(&what, &rounded, &on_cpu, tolerance(format));
            for variant in tilings(&gpu) {
                let on_gpu = run(gpu.device(), format, variant);
                let what = format!("{format:?} {heads}/{kv_heads}x{head_dim} {variant:?}");
                assert_close(&what, &on_gpu, &on_cpu, tolerance(format));
            }
        }
    }
}

/// Batches with rows of several sequences that share a page, and with padding that must not be written.
#[test]
fn batched_attention_equals_its_twin() {
    for (head_dim, format) in [
        (12, KvFormat::F32),
        (12, KvFormat::F16),
        (96, KvFormat::Q8_0),
    ] {
        batched_attention(head_dim, format);
    }
}

fn batched_attention(head_dim: usize, format: KvFormat) {
    let (cpu, mut noise) = (Device::flex(), Noise(11));
    let (heads, kv_heads) = (6, 2);
    let (q_dim, kv_dim) = (heads * head_dim, kv_heads * head_dim);
    let stride = q_dim + 2 * kv_dim;
    let rope = RopeShape {
        heads,
        kv_heads,
        head_dim,
        neox: false,
        by_parts: false,
        norm_last: false,
        norms_values: false,
        only_queries: false,
        rope_dims: head_dim,
        magnitude: 1.0,
        q_scale: (head_dim as f32).sqrt().recip(),
        temperature: None,
        at: [0, q_dim, q_dim + kv_dim],
        stride: [stride; 3],
    };
    let shape = AttentionShape {
        heads,
        kv_heads,
        head_dim,
        window: None,
        soft_cap: None,
    };
    let freqs = noise.floats(head_dim / 2);
    // A prompt of 70 tokens whose first page two sequences share, then steps of single tokens in tensors
    // of more rows, then a chunk beside a single token.
    let tables: [&[u32]; 3] = [&[4, 1], &[4, 0], &[3, 2]];
    let steps: Vec<(Vec<Segment>, usize)> = vec![
        (vec![segment(0, 70, tables[0])], 70),
        (vec![segment(0, 2, tables[2])], 8),
        (
            vec![
                segment(64, 1, tables[1]),
                segment(70, 1, tables[0]),
                segment(2, 1, tables[2]),
            ],
            4,
        ),
        (
            vec![segment(71, 1, tables[0]), segment(65, 1, tables[1])],
            8,
        ),
        (
            vec![segment(3, 60, tables[2]), segment(66, 1, tables[1])],
            64,
        ),
    ];
    let inputs: Vec<Vec<f32>> = steps
        .iter()
        .map(|(_, rows)| noise.floats(rows * stride))
        .collect();
    let run = |device: &Device, variant: Variant| {
        let mut kv = KvMemory::new(5, kv_dim, format, device);
        let mut step = Step::new(128, 16, device);
        let mut outputs = Vec::new();
        for ((segments, rows), input) in steps.iter().zip(&inputs) {
            step.set(segments);
            let live: usize = segments.iter().map(|segment| segment.tokens).sum();
            let qkv = tensor(input, [*rows, stride], device);
            let q = rope_kv(
                [qkv.clone(), qkv.clone(), qkv],
                None,
                turns(&wide(&freqs), device),
                &mut kv,
                &step,
                rope,
                variant,
            );
            let attended = attention(q, &kv, &step, None, shape, variant);
            outputs.extend_from_slice(&values(attended)[..live * q_dim]);
        }
        (outputs, kept(&kv, 5, kv_dim))
    };
    let on_cpu = run(&cpu, Variant::PORTABLE);
    for variant in tilings(&gpu()) {
        let gpu = new_gpu();
        let on_gpu = run(gpu.device(), variant);
        let what = format!("{format:?} {variant:?}");
        assert_close(&what, &on_gpu.0, &on_cpu.0, tolerance(format));
        // Whole pages are compared, with their unwritten parts, because padding must write nothing.
        assert_close(&what, &on_gpu.1, &on_cpu.1, tolerance(format));
    }
}

#[test]
fn copy_page_equals_its_twin() {
    let (cpu, mut noise) = (Device::flex(), Noise(12));
    for (kv_dim, format) in [
        (12, KvFormat::F32),
        (12, KvFormat::F16),
        (96, KvFormat::Q8_0),
    ] {
        let gpu = new_gpu();
        let rope = RopeShape {
            heads: 1,
            kv_heads: 1,
            head_dim: kv_dim,
            neox: true,
            by_parts: false,
            norm_last: false,
            norms_values: false,
            only_queries: false,
            rope_dims: kv_dim,
            magnitude: 1.0,
            q_scale: (kv_dim as f32).sqrt().recip(),
            temperature: None,
            at: [0; 3],
            stride: [kv_dim; 3],
        };
        let (x, freqs) = (noise.floats(PAGE_TOKENS * kv_dim), noise.floats(kv_dim / 2));
        let run = |device: &Device| {
            let mut kv = KvMemory::new(4, kv_dim, format, device);
            let mut step = Step::new(64, 1, device);
            step.set(&[segment(0, PAGE_TOKENS, &[2])]);
            let x = tensor(&x, [PAGE_TOKENS, kv_dim], device);
            let freqs = turns(&wide(&freqs), device);
            let qkv = [x.clone(), x.clone(), x];
            rope_kv(qkv, None, freqs, &mut kv, &step, rope, Variant::PORTABLE);
            copy_page(&mut kv, ids(&[2, 1], device));
            words(kv.words())
        };
        for memory in [run(gpu.device()), run(&cpu)] {
            let pages: Vec<&[u32]> = memory.chunks_exact(format.page_words(kv_dim)).collect();
            assert_eq!(pages.len(), 4);
            assert!(pages[2].iter().any(|word| *word != 0));
            assert_eq!(pages[1], pages[2]);
            for untouched in [0, 3] {
                assert!(pages[untouched].iter().all(|word| *word == 0));
            }
        }
    }
}

/// Values that f16 cannot represent are stored as the largest finite f16.
#[test]
fn keys_and_values_stay_finite() {
    let (gpu, cpu) = (gpu(), Device::flex());
    let rope = RopeShape {
        heads: 1,
        kv_heads: 1,
        head_dim: 4,
        neox: false,
        by_parts: false,
        norm_last: false,
        norms_values: false,
        only_queries: false,
        rope_dims: 4,
        magnitude: 1.0,
        q_scale: 0.5,
        temperature: None,
        at: [0; 3],
        stride: [4; 3],
    };
    for (device, variant) in [
        (gpu.device(), Variant::PORTABLE),
        (&cpu, Variant::PORTABLE),
        (&cpu, Variant::CPU),
    ] {
        let mut kv = KvMemory::new(1, 4, KvFormat::F16, device);
        let mut step = Step::new(1, 1, device);
        step.set(&[segment(0, 1, &[0])]);
        let x = tensor(&[65536.0, -3e38, 65504.0, 1.5], [1, 4], device);
        let freqs = turns(&[1.0, 0.1], device);
        let qkv = [x.clone(), x.clone(), x];
        rope_kv(qkv, None, freqs, &mut kv, &step, rope, variant);
        let elements = kept(&kv, 1, 4);
        // Position 0 rotates nothing.
        let expected = [65504.0, -65504.0, 65504.0, 1.5];
        assert_eq!(elements[..4], expected);
        assert_eq!(elements[PAGE_TOKENS * 4..][..4], expected);
    }
}

#[test]
fn rows_equals_its_twin() {
    let (gpu, cpu, mut noise) = (gpu(), Device::flex(), Noise(13));
    for (tokens, cols, first, count) in [(8, 172, 0, 3), (64, 4, 16, 48), (48, 172, 32, 1)] {
        assert_eq!(first % ROW_MULTIPLE, 0);
        let (x, weight) = (noise.floats(tokens * cols), vec![1.0; cols]);
        let run = |device: &Device| {
            let view = rows(tensor(&x, [tokens, cols], device), first, count);
            // The view is read back, and read by a kernel.
            let weight = NormParams::rms(tensor(&weight, [cols], device), 1e-5);
            (
                values(view.clone()),
                values(norm(view, weight, None, Variant::PORTABLE)),
            )
        };
        let (on_gpu, on_cpu) = (run(gpu.device()), run(&cpu));
        assert_eq!(on_gpu.0, x[first * cols..(first + count) * cols]);
        assert_eq!(on_gpu.0, on_cpu.0);
        assert_close("rms_norm of rows", &on_gpu.1, &on_cpu.1, 1e-5);
    }
}

#[test]
fn last_row_equals_its_twin() {
    let (gpu, cpu, mut noise) = (gpu(), Device::flex(), Noise(8));
    for (rows, tokens, cols) in [(16, 16, 64), (16, 3, 172), (64, 1, 260)] {
        let x = noise.floats(rows * cols);
        let run = |device: &Device| {
            let mut step = Step::new(rows, 2, device);
            step.set(&[segment(7, tokens, &[0])]);
            values(last_row(tensor(&x, [rows, cols], device), &step))
        };
        assert_eq!(run(gpu.device()), run(&cpu));
        assert_eq!(run(&cpu), x[(tokens - 1) * cols..tokens * cols]);
    }
}

fn wide(radians: &[f32]) -> Vec<f64> {
    radians.iter().map(|radians| f64::from(*radians)).collect()
}
