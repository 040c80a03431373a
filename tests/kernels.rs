//! Every kernel against its CPU twin at awkward sizes, on the machine's Vulkan, Metal or D3D12
//! device. A missing device fails the test: a driver is part of the set-up.

use burn::tensor::{DType, Device, Int, Tensor, TensorData};
use inpage::{
    device::{Gpu, GpuOptions},
    ops::{
        Variant,
        argmax::{INVALID_TOKEN, argmax},
        attention::{AttentionShape, attention},
        copy_page::copy_page,
        embedding::embedding,
        gated_matmul::gated_matmul,
        gated_matvec::gated_matvec,
        last_row::last_row,
        matmul::matmul,
        matrix::{Format, Matrix, MatrixShape},
        matvec::{MAX_TOKENS, matvec},
        rms_norm::rms_norm,
        rope_kv::{RopeShape, rope_kv},
        rows::{ROW_MULTIPLE, rows},
        score::{RowScore, parse, score, score_words},
        step::{self, KvMemory, PAGE_TOKENS, Segment, Step},
    },
};
use pollster::block_on;

/// Deterministic values in [-1, 1).
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> f32 {
        self.0 = self
            .0
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        ((self.0 >> 40) as f32) / (1u64 << 23) as f32 - 1.0
    }

    fn floats(&mut self, n: usize) -> Vec<f32> {
        (0..n).map(|_| self.next()).collect()
    }
}

fn gpu() -> Gpu {
    block_on(Gpu::request(GpuOptions::default()))
        .expect("a GPU device (a Vulkan driver, perhaps lavapipe)")
}

fn variants(gpu: &Gpu) -> Vec<Variant> {
    let mut variants = vec![Variant::PORTABLE];
    variants.push(Variant {
        lanes_per_row: 32,
        rows_per_group: 4,
        workgroup: 128,
        ..Variant::PORTABLE
    });
    if gpu.report().subgroups {
        let lanes_per_row = gpu.report().subgroup_min_lanes.min(32);
        for rows_per_group in [1, 4] {
            variants.push(Variant {
                subgroups: true,
                lanes_per_row,
                rows_per_group,
                ..Variant::PORTABLE
            });
        }
    }
    variants
}

fn tensor<const D: usize>(values: &[f32], shape: [usize; D], device: &Device) -> Tensor<D> {
    Tensor::from_data(TensorData::new(values.to_vec(), shape), device)
}

fn ids(values: &[u32], device: &Device) -> Tensor<1, Int> {
    Tensor::from_data(
        TensorData::new(values.to_vec(), [values.len()]),
        (device, DType::U32),
    )
}

fn values<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    block_on(tensor.into_data_async())
        .expect("readable")
        .try_into_vec()
        .expect("f32")
}

fn words<const D: usize>(tensor: Tensor<D, Int>) -> Vec<u32> {
    block_on(tensor.into_data_async())
        .expect("readable")
        .try_into_vec()
        .expect("u32")
}

fn segment(position: usize, tokens: usize, pages: &[u32]) -> Segment<'_> {
    Segment {
        position,
        tokens,
        pages,
    }
}

/// A matrix of random words with sane scales and values, the same on both devices.
fn matrices(
    format: Format,
    rows: usize,
    cols: usize,
    noise: &mut Noise,
    devices: [&Device; 2],
) -> [Matrix; 2] {
    let shape = MatrixShape { format, rows, cols };
    let half_word = |a: f32, b: f32, bf: bool| {
        let bits = |v: f32| {
            if bf {
                half::bf16::from_f32(v).to_bits()
            } else {
                half::f16::from_f32(v).to_bits()
            }
        };
        u32::from(bits(a)) | u32::from(bits(b)) << 16
    };
    let row_words = shape.row_blocks() * format.block_words();
    let quants: Vec<u32> = (0..shape.quant_words())
        .map(|i| {
            let element = i % row_words * (32 / format.block_words());
            let mut value = || if element < cols { noise.next() } else { 0.0 };
            match format {
                Format::F32 => value().to_bits(),
                Format::F16 => half_word(value(), value(), false),
                Format::Bf16 => half_word(value(), value(), true),
                Format::Q8_0 | Format::Q4_0 | Format::Q6K => (noise.next() * 2e9) as i32 as u32,
            }
        })
        .collect();
    let scale = if format == Format::Q8_0 {
        1.0 / 127.0
    } else {
        0.125
    };
    let scales: Vec<u32> = if format.has_scales() {
        (0..shape.scale_words())
            .map(|i| match format {
                Format::Q6K if i % 5 != 4 => (noise.next() * 2e9) as i32 as u32,
                Format::Q6K => half_word(noise.next() / 2048.0, 0.0, false),
                _ => half_word(noise.next() * scale, noise.next() * scale, false),
            })
            .collect()
    } else {
        Vec::new()
    };
    devices.map(|device| Matrix::reserve(shape, device).write(0, quants.clone(), 0, scales.clone()))
}

fn assert_close(what: &str, gpu: &[f32], cpu: &[f32], tolerance: f32) {
    assert_eq!(gpu.len(), cpu.len(), "{what}");
    assert!(
        cpu.iter().any(|v| *v != 0.0),
        "{what}: the twin is all zeros"
    );
    for (i, (a, b)) in gpu.iter().zip(cpu).enumerate() {
        assert!(
            (a - b).abs() <= tolerance * (1.0 + b.abs()),
            "{what}[{i}]: {a} on the GPU, {b} on the CPU"
        );
    }
}

/// Rows and columns that fill no tile, no workgroup and (unquantized) no block.
fn sizes(format: Format) -> Vec<(usize, usize)> {
    let mut sizes: Vec<(usize, usize)> = vec![(1, 32), (37, 96), (130, 1056), (37, 172)];
    for (_, cols) in &mut sizes {
        *cols = cols.next_multiple_of(format.row_multiple());
    }
    sizes
}

#[test]
fn embedding_equals_its_twin() {
    let (gpu, cpu, mut noise) = (gpu(), Device::flex(), Noise(1));
    for format in Format::ALL {
        for (rows, cols) in sizes(format) {
            let [on_gpu, on_cpu] = matrices(format, rows, cols, &mut noise, [gpu.device(), &cpu]);
            let wanted = [0, rows as u32 - 1, rows as u32 / 2, 0, 0];
            let a = values(embedding(ids(&wanted, gpu.device()), &on_gpu));
            let b = values(embedding(ids(&wanted, &cpu), &on_cpu));
            assert_close(&format!("embedding {format:?} {rows}x{cols}"), &a, &b, 1e-6);
        }
    }
}

#[test]
fn rms_norm_equals_its_twin() {
    let (gpu, cpu, mut noise) = (gpu(), Device::flex(), Noise(2));
    for (tokens, cols) in [(1, 4), (3, 172), (5, 260), (2, 2048)] {
        let (x, norm) = (noise.floats(tokens * cols), noise.floats(cols));
        let run = |device: &Device| {
            values(rms_norm(
                tensor(&x, [tokens, cols], device),
                tensor(&norm, [cols], device),
                1e-5,
            ))
        };
        assert_close("rms_norm", &run(gpu.device()), &run(&cpu), 1e-5);
    }
}

#[test]
fn matvec_equals_its_twin() {
    let (gpu, cpu, mut noise) = (gpu(), Device::flex(), Noise(3));
    for variant in variants(&gpu) {
        for format in Format::ALL {
            for (rows, cols) in sizes(format) {
                let [on_gpu, on_cpu] =
                    matrices(format, rows, cols, &mut noise, [gpu.device(), &cpu]);
                let (x, norm) = (noise.floats(cols), noise.floats(cols));
                let (bias, residual) = (noise.floats(rows), noise.floats(rows));
                // Every combination at one size, all at once at the others: pipelines take time.
                for extras in if rows == 130 && format == Format::Q8_0 {
                    0..8
                } else {
                    7..8
                } {
                    let run = |device: &Device, weights: &Matrix| {
                        let norm = (extras & 1 != 0).then(|| (tensor(&norm, [cols], device), 1e-5));
                        let bias = (extras & 2 != 0).then(|| tensor(&bias, [rows], device));
                        let residual =
                            (extras & 4 != 0).then(|| tensor(&residual, [1, rows], device));
                        values(matvec(
                            tensor(&x, [1, cols], device),
                            norm,
                            weights,
                            bias,
                            residual,
                            variant,
                        ))
                    };
                    let what =
                        format!("matvec {format:?} {rows}x{cols} extras {extras} {variant:?}");
                    assert_close(
                        &what,
                        &run(gpu.device(), &on_gpu),
                        &run(&cpu, &on_cpu),
                        1e-4,
                    );
                }
            }
        }
    }
}

#[test]
fn gated_matvec_equals_its_twin() {
    let (gpu, cpu, mut noise) = (gpu(), Device::flex(), Noise(4));
    for variant in variants(&gpu) {
        for format in Format::ALL {
            for (rows, cols) in sizes(format) {
                let [gate_gpu, gate_cpu] =
                    matrices(format, rows, cols, &mut noise, [gpu.device(), &cpu]);
                let [up_gpu, up_cpu] =
                    matrices(format, rows, cols, &mut noise, [gpu.device(), &cpu]);
                let (x, norm) = (noise.floats(cols), noise.floats(cols));
                let run = |device: &Device, gate: &Matrix, up: &Matrix| {
                    let norm = (tensor(&norm, [cols], device), 1e-5);
                    values(gated_matvec(
                        tensor(&x, [1, cols], device),
                        norm,
                        gate,
                        up,
                        variant,
                    ))
                };
                let (a, b) = (
                    run(gpu.device(), &gate_gpu, &up_gpu),
                    run(&cpu, &gate_cpu, &up_cpu),
                );
                assert_close(
                    &format!("gated_matvec {format:?} {rows}x{cols}"),
                    &a,
                    &b,
                    2e-4,
                );
            }
        }
    }
}

/// A few tokens at once: as the twins say, and for each token what it gets alone, to the last bit.
#[test]
fn matvec_gives_a_token_the_same_in_any_company() {
    let (gpu, cpu, mut noise) = (gpu(), Device::flex(), Noise(10));
    let variants = variants(&gpu);
    for (i, format) in Format::ALL.into_iter().enumerate() {
        for (rows, cols) in [sizes(format)[1], sizes(format)[3]] {
            // All variants and formats, but not each with each: pipelines take time.
            let variant = variants[i % variants.len()];
            let [gate_gpu, gate_cpu] =
                matrices(format, rows, cols, &mut noise, [gpu.device(), &cpu]);
            let [up_gpu, up_cpu] = matrices(format, rows, cols, &mut noise, [gpu.device(), &cpu]);
            let (x, norm) = (noise.floats(MAX_TOKENS * cols), noise.floats(cols));
            let (bias, residual) = (noise.floats(rows), noise.floats(MAX_TOKENS * rows));
            let run = |device: &Device, [gate, up]: [&Matrix; 2], from: usize, tokens: usize| {
                let part = |values: &[f32], width: usize| {
                    let values = &values[from * width..(from + tokens) * width];
                    tensor(values, [tokens, width], device)
                };
                let norm = (tensor(&norm, [cols], device), 1e-5);
                let bias = Some(tensor(&bias, [rows], device));
                let residual = Some(part(&residual, rows));
                let x = part(&x, cols);
                let plain = matvec(x.clone(), Some(norm.clone()), gate, bias, residual, variant);
                [
                    values(plain),
                    values(gated_matvec(x, norm, gate, up, variant)),
                ]
            };
            let on_gpu = |from, tokens| run(gpu.device(), [&gate_gpu, &up_gpu], from, tokens);
            let on_cpu = |from, tokens| run(&cpu, [&gate_cpu, &up_cpu], from, tokens);
            for tokens in [3, MAX_TOKENS] {
                let what = format!("{tokens} tokens, {format:?} {rows}x{cols} {variant:?}");
                let (a, b) = (on_gpu(0, tokens), on_cpu(0, tokens));
                assert_close(&format!("matvec, {what}"), &a[0], &b[0], 1e-4);
                assert_close(&format!("gated_matvec, {what}"), &a[1], &b[1], 2e-4);
                for token in [0, tokens - 1] {
                    for (many, alone) in [(&a, on_gpu(token, 1)), (&b, on_cpu(token, 1))] {
                        for (many, alone) in many.iter().zip(&alone) {
                            assert_eq!(many[token * rows..][..rows], *alone, "{token} of {what}");
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn matmul_equals_its_twin() {
    let (gpu, cpu, mut noise) = (gpu(), Device::flex(), Noise(5));
    for format in Format::ALL {
        for (rows, cols) in sizes(format) {
            for tokens in if rows == 37 {
                vec![2, 33, 64]
            } else {
                vec![33]
            } {
                let [on_gpu, on_cpu] =
                    matrices(format, rows, cols, &mut noise, [gpu.device(), &cpu]);
                let x = noise.floats(tokens * cols);
                let (bias, residual) = (noise.floats(rows), noise.floats(tokens * rows));
                for extras in if tokens == 33 && format == Format::Q4_0 {
                    0..4
                } else {
                    3..4
                } {
                    let run = |device: &Device, weights: &Matrix| {
                        let bias = (extras & 1 != 0).then(|| tensor(&bias, [rows], device));
                        let residual =
                            (extras & 2 != 0).then(|| tensor(&residual, [tokens, rows], device));
                        values(matmul(
                            tensor(&x, [tokens, cols], device),
                            weights,
                            bias,
                            residual,
                        ))
                    };
                    let what = format!("matmul {format:?} {tokens}x{rows}x{cols} extras {extras}");
                    assert_close(
                        &what,
                        &run(gpu.device(), &on_gpu),
                        &run(&cpu, &on_cpu),
                        1e-4,
                    );
                }
            }
        }
    }
}

#[test]
fn gated_matmul_equals_its_twin() {
    let (gpu, cpu, mut noise) = (gpu(), Device::flex(), Noise(6));
    for format in Format::ALL {
        for (rows, cols) in sizes(format) {
            let tokens = 33;
            let [gate_gpu, gate_cpu] =
                matrices(format, rows, cols, &mut noise, [gpu.device(), &cpu]);
            let [up_gpu, up_cpu] = matrices(
                Format::Q8_0,
                rows,
                cols.next_multiple_of(32),
                &mut noise,
                [gpu.device(), &cpu],
            );
            // Formats of the two may differ where both can hold the columns.
            let (up_gpu, up_cpu) = if cols.is_multiple_of(32) {
                (up_gpu, up_cpu)
            } else {
                (gate_gpu.clone(), gate_cpu.clone())
            };
            let x = noise.floats(tokens * cols);
            let run = |device: &Device, gate: &Matrix, up: &Matrix| {
                values(gated_matmul(tensor(&x, [tokens, cols], device), gate, up))
            };
            let (a, b) = (
                run(gpu.device(), &gate_gpu, &up_gpu),
                run(&cpu, &gate_cpu, &up_cpu),
            );
            assert_close(
                &format!("gated_matmul {format:?} {rows}x{cols}"),
                &a,
                &b,
                2e-4,
            );
        }
    }
}

/// rope_kv and attention over several steps, with pages out of order and a padded chunk.
#[test]
fn attention_equals_its_twin() {
    let (gpu, cpu, mut noise) = (gpu(), Device::flex(), Noise(7));
    for (heads, kv_heads, head_dim, neox) in [
        (8, 4, 8, false),
        (6, 2, 64, true),
        (4, 1, 96, false),
        (2, 2, 256, true),
    ] {
        let (q_dim, kv_dim) = (heads * head_dim, kv_heads * head_dim);
        let stride = q_dim + 2 * kv_dim;
        let rope = RopeShape {
            heads,
            kv_heads,
            head_dim,
            neox,
            at: [0, q_dim, q_dim + kv_dim],
            stride: [stride; 3],
        };
        let shape = AttentionShape {
            heads,
            kv_heads,
            head_dim,
        };
        let freqs: Vec<f32> = (0..head_dim / 2)
            .map(|i| 10_000f32.powf(-2.0 * i as f32 / head_dim as f32))
            .collect();
        // Tokens fed and rows of each step: a chunk, a padded chunk, single tokens, over a page's end.
        let steps = [(61, 61), (5, 16), (1, 1), (100, 128), (1, 1)];
        let inputs: Vec<Vec<f32>> = steps
            .iter()
            .map(|(_, rows)| noise.floats(rows * stride))
            .collect();
        let run = |device: &Device| {
            let (mut kv, mut step) = (KvMemory::new(4, kv_dim, device), Step::new(128, 8, device));
            let (mut position, mut outputs) = (0, Vec::new());
            for ((tokens, rows), input) in steps.iter().zip(&inputs) {
                step.set(&[segment(position, *tokens, &[2, 0, 3])]);
                let qkv = tensor(input, [*rows, stride], device);
                let q = rope_kv(
                    [qkv.clone(), qkv.clone(), qkv],
                    tensor(&freqs, [freqs.len()], device),
                    &mut kv,
                    &step,
                    rope,
                );
                let attended = attention(q.clone(), &kv, &step, shape);
                outputs.extend_from_slice(&values(q)[..tokens * q_dim]);
                outputs.extend_from_slice(&values(attended)[..tokens * q_dim]);
                position += tokens;
            }
            outputs
        };
        assert_close(
            &format!("attention {heads}/{kv_heads}x{head_dim}"),
            &run(gpu.device()),
            &run(&cpu),
            2e-4,
        );
    }
}

/// Batches: rows of several sequences that share a page, and padding that must leave no trace.
#[test]
fn batched_attention_equals_its_twin() {
    let (gpu, cpu, mut noise) = (gpu(), Device::flex(), Noise(11));
    let (heads, kv_heads, head_dim) = (6, 2, 12);
    let (q_dim, kv_dim) = (heads * head_dim, kv_heads * head_dim);
    let stride = q_dim + 2 * kv_dim;
    let rope = RopeShape {
        heads,
        kv_heads,
        head_dim,
        neox: false,
        at: [0, q_dim, q_dim + kv_dim],
        stride: [stride; 3],
    };
    let shape = AttentionShape {
        heads,
        kv_heads,
        head_dim,
    };
    let freqs = noise.floats(head_dim / 2);
    // A prompt of 70 tokens whose first page three sequences share; then steps of a token each in
    // tensors of more rows; then a chunk beside them.
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
    let run = |device: &Device| {
        let mut kv = KvMemory::new(5, kv_dim, device);
        let mut step = Step::new(128, 16, device);
        let mut outputs = Vec::new();
        for ((segments, rows), input) in steps.iter().zip(&inputs) {
            step.set(segments);
            let live: usize = segments.iter().map(|segment| segment.tokens).sum();
            let qkv = tensor(input, [*rows, stride], device);
            let q = rope_kv(
                [qkv.clone(), qkv.clone(), qkv],
                tensor(&freqs, [freqs.len()], device),
                &mut kv,
                &step,
                rope,
            );
            let attended = attention(q, &kv, &step, shape);
            outputs.extend_from_slice(&values(attended)[..live * q_dim]);
        }
        (outputs, values(kv.read()))
    };
    let (on_gpu, on_cpu) = (run(gpu.device()), run(&cpu));
    assert_close("attention", &on_gpu.0, &on_cpu.0, 2e-4);
    // Whole pages, the unwritten rests included: padding wrote nothing.
    assert_close("KV memory", &on_gpu.1, &on_cpu.1, 2e-4);
}

#[test]
fn copy_page_equals_its_twin() {
    let (gpu, cpu, mut noise) = (gpu(), Device::flex(), Noise(12));
    let kv_dim = 12;
    let page = 2 * PAGE_TOKENS * kv_dim;
    let rope = RopeShape {
        heads: 1,
        kv_heads: 1,
        head_dim: kv_dim,
        neox: true,
        at: [0; 3],
        stride: [kv_dim; 3],
    };
    let (x, freqs) = (noise.floats(PAGE_TOKENS * kv_dim), noise.floats(kv_dim / 2));
    let run = |device: &Device| {
        let (mut kv, mut step) = (KvMemory::new(4, kv_dim, device), Step::new(64, 1, device));
        step.set(&[segment(0, PAGE_TOKENS, &[2])]);
        let x = tensor(&x, [PAGE_TOKENS, kv_dim], device);
        let freqs = tensor(&freqs, [freqs.len()], device);
        rope_kv([x.clone(), x.clone(), x], freqs, &mut kv, &step, rope);
        copy_page(&mut kv, ids(&[2, 1], device), kv_dim);
        values(kv.read())
    };
    for memory in [run(gpu.device()), run(&cpu)] {
        let pages: Vec<&[f32]> = memory.chunks_exact(page).collect();
        assert!(pages[2].iter().any(|value| *value != 0.0));
        assert_eq!(pages[1], pages[2]);
        for untouched in [0, 3] {
            assert!(pages[untouched].iter().all(|value| *value == 0.0));
        }
    }
}

#[test]
fn rows_equals_its_twin() {
    let (gpu, cpu, mut noise) = (gpu(), Device::flex(), Noise(13));
    for (tokens, cols, first, count) in [(8, 172, 0, 3), (64, 4, 16, 48), (48, 172, 32, 1)] {
        assert_eq!(first % ROW_MULTIPLE, 0);
        let (x, norm) = (noise.floats(tokens * cols), vec![1.0; cols]);
        let run = |device: &Device| {
            let view = rows(tensor(&x, [tokens, cols], device), first, count);
            // Read back, and read by a kernel.
            let norm = tensor(&norm, [cols], device);
            (values(view.clone()), values(rms_norm(view, norm, 1e-5)))
        };
        let (on_gpu, on_cpu) = (run(gpu.device()), run(&cpu));
        assert_eq!(on_gpu.0, x[first * cols..(first + count) * cols]);
        assert_eq!(on_gpu.0, on_cpu.0);
        assert_close("rms_norm of rows", &on_gpu.1, &on_cpu.1, 1e-5);
    }
}

/// The definition, in f64.
fn expected_score(logits: &[f32], next: u32, top: usize) -> Option<RowScore> {
    let finite = logits.iter().any(|logit| logit.is_finite());
    if !finite || logits.iter().any(|l| l.is_nan() || *l == f32::INFINITY) {
        return None;
    }
    let sum: f64 = logits.iter().map(|l| f64::from(*l).exp()).sum();
    let logprob = |id: u32| (f64::from(logits[id as usize]) - sum.ln()) as f32;
    let mut order: Vec<u32> = (0..logits.len() as u32).collect();
    order.sort_by(|a, b| {
        let (x, y) = (logits[*a as usize], logits[*b as usize]);
        y.partial_cmp(&x).unwrap().then(a.cmp(b))
    });
    order.truncate(top);
    Some(RowScore {
        logprob: logprob(next),
        top: order.into_iter().map(|id| (id, logprob(id))).collect(),
    })
}

#[test]
fn score_equals_its_twin_and_the_definition() {
    let (gpu, cpu, mut noise) = (gpu(), Device::flex(), Noise(14));
    let infinite = f32::NEG_INFINITY;
    let mut cases: Vec<(usize, usize, Vec<f32>, Vec<u32>)> = Vec::new();
    for (vocab, tokens, top) in [
        (1, 2, 1),
        (255, 3, 0),
        (257, 9, 20),
        (300, 2, 300),
        (4097, 33, 5),
    ] {
        let logits = noise
            .floats(tokens * vocab)
            .iter()
            .map(|v| v * 20.0)
            .collect();
        let next = (0..tokens).map(|i| (i * 131 % vocab) as u32).collect();
        cases.push((vocab, top, logits, next));
    }
    // Ties, at zero of either sign too; -inf among the best; rows that are invalid.
    let mut tied = vec![-3.0; 300];
    (tied[299], tied[7], tied[280]) = (1.5, 1.5, 1.5);
    (tied[100], tied[20]) = (0.0, -0.0);
    let mut few = vec![infinite; 300];
    (few[40], few[200]) = (-7.0, 90.0);
    let mut rows_of = vec![tied.clone(), few.clone(), vec![infinite; 300]];
    for bad in [f32::NAN, -f32::NAN, f32::INFINITY] {
        rows_of.push(few.clone());
        rows_of.last_mut().unwrap()[299] = bad;
    }
    rows_of.push(tied);
    cases.push((300, 7, rows_of.concat(), vec![280, 3, 0, 40, 40, 40, 20]));
    for (vocab, top, logits, next) in cases {
        let tokens = next.len();
        let run = |device: &Device| -> Vec<Option<RowScore>> {
            let logits = tensor(&logits, [tokens, vocab], device);
            let words = words(score(logits, ids(&next, device), top));
            words.chunks_exact(score_words(top)).map(parse).collect()
        };
        let (on_gpu, on_cpu) = (run(gpu.device()), run(&cpu));
        for (i, &next) in next.iter().enumerate() {
            let row = &logits[i * vocab..][..vocab];
            let expected = expected_score(row, next, top);
            for (device, got) in [("GPU", &on_gpu[i]), ("CPU", &on_cpu[i])] {
                let what = format!("row {i} of {tokens}x{vocab} on the {device}");
                assert_eq!(got.is_some(), expected.is_some(), "{what}: {got:?}");
                let (Some(got), Some(expected)) = (got, &expected) else {
                    continue;
                };
                let close = |a: f32, b: f32| a == b || (a - b).abs() < 1e-4;
                assert!(
                    got.logprob <= 0.0 && close(got.logprob, expected.logprob),
                    "{what}"
                );
                assert_eq!(got.top.len(), expected.top.len(), "{what}");
                for (a, b) in got.top.iter().zip(&expected.top) {
                    assert_eq!(a.0, b.0, "{what}: {got:?}");
                    assert!(a.1 <= 0.0 && close(a.1, b.1), "{what}: {a:?}, not {b:?}");
                    if a.0 == next {
                        assert_eq!(a.1.to_bits(), got.logprob.to_bits(), "{what}");
                    }
                }
            }
        }
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

#[test]
fn argmax_equals_its_twin() {
    let (gpu, cpu, mut noise) = (gpu(), Device::flex(), Noise(9));
    let mut rows: Vec<(Vec<f32>, Option<u32>)> = Vec::new();
    for vocab in [1, 255, 4097] {
        rows.push((noise.floats(vocab), None));
    }
    let mut tied = vec![-1.0; 1000];
    tied[997] = 2.5;
    tied[301] = 2.5;
    rows.push((tied.clone(), Some(301)));
    rows.push((vec![f32::NEG_INFINITY; 300], Some(INVALID_TOKEN)));
    for bad in [f32::NAN, f32::INFINITY] {
        tied[640] = bad;
        rows.push((tied.clone(), Some(INVALID_TOKEN)));
    }
    tied[640] = f32::NEG_INFINITY;
    rows.push((tied, Some(301)));
    for (logits, expected) in rows {
        let run = |device: &Device| {
            let mut step = Step::new(3, 2, device);
            step.set(&[segment(40, 3, &[6, 1])]);
            let mut chosen = Some(ids(&[9; 4], device));
            let mut next = Some(ids(&[7], device));
            for _ in 0..5 {
                argmax(
                    tensor(&logits, [1, logits.len()], device),
                    &mut next,
                    &mut step,
                    &mut chosen,
                );
            }
            let state = words(step.read());
            (words(next.unwrap()), words(chosen.unwrap()), state)
        };
        let (on_gpu, on_cpu) = (run(gpu.device()), run(&cpu));
        assert_eq!(on_gpu, on_cpu);
        let row = &on_gpu.2[step::ROWS..];
        assert_eq!(row[0], 40 + 3 + 4, "position");
        assert_eq!(on_gpu.2[row[1] as usize..][..2], [6, 1], "block table");
        assert_eq!(on_gpu.2[step::TOKENS], 1);
        assert_eq!(on_gpu.2[step::CHOSEN], 5);
        if let Some(expected) = expected {
            assert_eq!(on_gpu.0, [expected]);
        }
    }
}
