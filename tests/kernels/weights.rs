//! Ops with weights.

use burn::tensor::Device;
use inpage::{
    ops::{
        Activation, Addends, Finish, InPlace, MAX_SMALL_TOKENS, Variant,
        embedding::embedding,
        embedding_or_row::embedding_or_row,
        gated_product::{gated_matmul, gated_matvec},
        matrix::Matrix,
        matvec::MAX_TOKENS,
        product::{matmul, matvec},
    },
    tensor_types::TensorType,
};

use crate::fixture::{
    Noise, assert_close, assert_near, gpu, ids, is_thorough, matmuls, matrices, sizes, tensor,
    values, variants, variants_for, variants_with_sizes,
};

#[test]
fn embedding_equals_its_twin() {
    let (gpu, cpu, mut noise) = (gpu(), Device::flex(), Noise(1));
    for &format in TensorType::ALL {
        for (rows, cols) in sizes(format) {
            let [on_gpu, on_cpu] = matrices(format, rows, cols, &mut noise, [gpu.device(), &cpu]);
            let wanted = [0, rows as u32 - 1, rows as u32 / 2, 0, 0];
            let a = values(embedding(ids(&wanted, gpu.device()), &on_gpu, 1.5));
            let b = values(embedding(ids(&wanted, &cpu), &on_cpu, 1.5));
            assert_close(&format!("embedding {format:?} {rows}x{cols}"), &a, &b, 1e-6);
        }
    }
}

#[test]
fn embedding_or_row_equals_its_twin() {
    let (gpu, cpu, mut noise) = (gpu(), Device::flex(), Noise(2));
    for &format in TensorType::ALL {
        for (rows, cols) in sizes(format) {
            let [on_gpu, on_cpu] = matrices(format, rows, cols, &mut noise, [gpu.device(), &cpu]);
            let words: Vec<u32> = noise.floats(3 * cols).iter().map(|x| x.to_bits()).collect();
            let of = |row: u32| rows as u32 + row;
            // The last one is beyond the given rows, as ids of padding may be.
            let wanted = [of(1), rows as u32 - 1, of(0), of(2), 0, of(9)];
            let run = |device: &Device, table| {
                let given = InPlace::upload(words.clone(), device);
                values(embedding_or_row(ids(&wanted, device), table, &given, 1.5))
            };
            let [a, b] = [run(gpu.device(), &on_gpu), run(&cpu, &on_cpu)];
            assert_close(
                &format!("embedding_or_row {format:?} {rows}x{cols}"),
                &a,
                &b,
                1e-6,
            );
            let given = |row: usize| words[row * cols..(row + 1) * cols].to_vec();
            let bits = |token: usize| {
                let row = &a[token * cols..(token + 1) * cols];
                row.iter().map(|x| x.to_bits()).collect::<Vec<_>>()
            };
            assert_eq!([bits(0), bits(2), bits(3)], [given(1), given(0), given(2)]);
        }
    }
}

/// The finish of a product, which depends on the combination of extras.
fn finish(extras: usize) -> Finish {
    let (scale, cap) = (0.7, 3.0);
    match extras % 4 {
        0 => Finish::Scale(scale),
        1 => Finish::SoftCap { scale, cap },
        2 => Finish::Activation(Activation::Gelu),
        _ => Finish::Plain,
    }
}

/// An activation, such that thorough formats cover both.
fn activation(format: TensorType) -> Activation {
    match format {
        TensorType::F32 | TensorType::Q4_0 => Activation::Gelu,
        _ => Activation::Silu,
    }
}

/// Whether gate and up get something added. Not every combination is tested, because pipelines take time to compile.
fn deltas(format: TensorType, rows: usize) -> &'static [bool] {
    match (rows, is_thorough(format)) {
        (37, true) => &[false, true],
        (37, false) => &[true],
        _ => &[false],
    }
}

#[test]
fn matvec_equals_its_twin() {
    let (gpu, cpu, mut noise) = (gpu(), Device::flex(), Noise(3));
    let variants = variants(&gpu);
    for &format in TensorType::ALL {
        for (variant, sizes) in variants_with_sizes(format, &variants) {
            for (rows, cols) in sizes {
                let [on_gpu, on_cpu] =
                    matrices(format, rows, cols, &mut noise, [gpu.device(), &cpu]);
                let (x, norm) = (noise.floats(cols), noise.floats(cols));
                let [bias, delta, residual] = [(); 3].map(|()| noise.floats(rows));
                // Single extras and combinations at one size, all of them at once at the others, because pipelines take
                // time to compile.
                for &extras in if (rows, cols) == (37, 96) && format == TensorType::Q8_0 {
                    &[0, 1, 2, 4, 8, 7, 10, 12, 15][..]
                } else {
                    &[15]
                } {
                    let run = |device: &Device, weights: &Matrix| {
                        let norm = (extras & 1 != 0).then(|| (tensor(&norm, [cols], device), 1e-5));
                        let row = |values: &[f32]| tensor(values, [1, rows], device);
                        let addends = Addends {
                            bias: (extras & 2 != 0).then(|| tensor(&bias, [rows], device)),
                            delta: (extras & 8 != 0).then(|| row(&delta)),
                            residual: (extras & 4 != 0).then(|| row(&residual)),
                        };
                        values(matvec(
                            tensor(&x, [1, cols], device),
                            norm,
                            weights,
                            addends,
                            finish(extras),
                            variant,
                        ))
                    };
                    let what =
                        format!("matvec {format:?} {rows}x{cols} extras {extras} {variant:?}");
                    assert_near(
                        &what,
                        &run(gpu.device(), &on_gpu),
                        &run(&cpu, &on_cpu),
                        variant.matvec,
                        1e-4,
                    );
                }
            }
        }
    }
}

/// One group of lanes has the rows of a product with so many of them; `matvec_equals_its_twin` has few rows.
#[test]
fn matvec_of_many_rows_in_quarters_equals_its_twin() {
    let (gpu, cpu, mut noise) = (gpu(), Device::flex(), Noise(11));
    let (rows, cols) = (16_389, 96);
    for variant in variants(&gpu).into_iter().filter(|it| it.quarters) {
        for format in [TensorType::Q4_0, TensorType::Q8_0] {
            let [on_gpu, on_cpu] = matrices(format, rows, cols, &mut noise, [gpu.device(), &cpu]);
            for tokens in [1, 3] {
                let x = noise.floats(tokens * cols);
                let run = |device: &Device, weights: &Matrix| {
                    let x = tensor(&x, [tokens, cols], device);
                    let addends = Addends::default();
                    values(matvec(x, None, weights, addends, Finish::Plain, variant))
                };
                let what = format!("matvec {format:?} of {tokens} tokens {variant:?}");
                assert_near(
                    &what,
                    &run(gpu.device(), &on_gpu),
                    &run(&cpu, &on_cpu),
                    variant.matvec,
                    1e-4,
                );
            }
        }
    }
}

#[test]
fn gated_matvec_equals_its_twin() {
    let (gpu, cpu, mut noise) = (gpu(), Device::flex(), Noise(4));
    let variants = variants(&gpu);
    for &format in TensorType::ALL {
        for (variant, sizes) in variants_with_sizes(format, &variants) {
            for (rows, cols) in sizes {
                let [gate_gpu, gate_cpu] =
                    matrices(format, rows, cols, &mut noise, [gpu.device(), &cpu]);
                let [up_gpu, up_cpu] =
                    matrices(format, rows, cols, &mut noise, [gpu.device(), &cpu]);
                let (x, norm) = (noise.floats(cols), noise.floats(cols));
                let delta = noise.floats(2 * rows);
                for &has_delta in deltas(format, rows) {
                    let run = |device: &Device, gate: &Matrix, up: &Matrix| {
                        let norm = (tensor(&norm, [cols], device), 1e-5);
                        values(gated_matvec(
                            tensor(&x, [1, cols], device),
                            Some(norm),
                            gate,
                            up,
                            has_delta.then(|| tensor(&delta, [1, 2 * rows], device)),
                            activation(format),
                            variant,
                        ))
                    };
                    let (a, b) = (
                        run(gpu.device(), &gate_gpu, &up_gpu),
                        run(&cpu, &gate_cpu, &up_cpu),
                    );
                    assert_near(
                        &format!("gated_matvec {format:?} {rows}x{cols}, delta {has_delta}"),
                        &a,
                        &b,
                        variant.matvec,
                        2e-4,
                    );
                }
            }
        }
    }
}

/// A few tokens at once equal the twins, and each token gets the same bits as alone.
#[test]
fn matvec_of_a_token_does_not_depend_on_other_tokens() {
    let (gpu, cpu, mut noise) = (gpu(), Device::flex(), Noise(10));
    let variants = variants(&gpu);
    // All variants and formats, but not all pairs, because pipelines take time to compile.
    let mut pairs: Vec<_> = TensorType::ALL
        .iter()
        .copied()
        .zip(variants.iter().cycle())
        .collect();
    pairs.extend(
        [TensorType::Q8_0, TensorType::Q4_0].map(|format| (format, variants.last().unwrap())),
    );
    // All of them are reported: which variants differ says more about a driver than the first one.
    let mut differing = Vec::new();
    for (format, &variant) in pairs {
        for (rows, cols) in sizes(format).into_iter().rev().step_by(2) {
            let [gate_gpu, gate_cpu] =
                matrices(format, rows, cols, &mut noise, [gpu.device(), &cpu]);
            let [up_gpu, up_cpu] = matrices(format, rows, cols, &mut noise, [gpu.device(), &cpu]);
            let (x, norm) = (noise.floats(MAX_TOKENS * cols), noise.floats(cols));
            let (bias, residual) = (noise.floats(rows), noise.floats(MAX_TOKENS * rows));
            let delta = noise.floats(MAX_TOKENS * 2 * rows);
            let run = |device: &Device, [gate, up]: [&Matrix; 2], from: usize, tokens: usize| {
                let part = |values: &[f32], width: usize| {
                    let values = &values[from * width..(from + tokens) * width];
                    tensor(values, [tokens, width], device)
                };
                let norm = (tensor(&norm, [cols], device), 1e-5);
                let addends = Addends {
                    bias: Some(tensor(&bias, [rows], device)),
                    delta: Some(part(&delta, rows)),
                    residual: Some(part(&residual, rows)),
                };
                let x = part(&x, cols);
                let plain = matvec(
                    x.clone(),
                    Some(norm.clone()),
                    gate,
                    addends,
                    Finish::Plain,
                    variant,
                );
                [
                    values(plain),
                    values(gated_matvec(
                        x,
                        Some(norm),
                        gate,
                        up,
                        Some(part(&delta, 2 * rows)),
                        Activation::Silu,
                        variant,
                    )),
                ]
            };
            let on_gpu = |from, tokens| run(gpu.device(), [&gate_gpu, &up_gpu], from, tokens);
            let on_cpu = |from, tokens| run(&cpu, [&gate_cpu, &up_cpu], from, tokens);
            for tokens in [3, MAX_TOKENS] {
                let what = format!("{tokens} tokens, {format:?} {rows}x{cols} {variant:?}");
                let (a, b) = (on_gpu(0, tokens), on_cpu(0, tokens));
                assert_near(
                    &format!("matvec, {what}"),
                    &a[0],
                    &b[0],
                    variant.matvec,
                    1e-4,
                );
                assert_near(
                    &format!("gated_matvec, {what}"),
                    &a[1],
                    &b[1],
                    variant.matvec,
                    2e-4,
                );
                for token in [0, tokens - 1] {
                    for (many, alone) in [(&a, on_gpu(token, 1)), (&b, on_cpu(token, 1))] {
                        for (many, alone) in many.iter().zip(&alone) {
                            if many[token * rows..][..rows] != *alone {
                                differing.push(format!("{token} of {what}"));
                            }
                        }
                    }
                }
            }
        }
    }
    assert!(differing.is_empty(), "{differing:#?}");
}

#[test]
fn matmul_equals_its_twin() {
    let (gpu, cpu, mut noise) = (gpu(), Device::flex(), Noise(5));
    for (variant, format, sizes) in matmuls(&gpu) {
        for (rows, cols) in sizes {
            for tokens in if rows == 37 && is_thorough(format) {
                vec![2, 33, 70]
            } else {
                vec![33]
            } {
                let [on_gpu, on_cpu] =
                    matrices(format, rows, cols, &mut noise, [gpu.device(), &cpu]);
                let x = noise.floats(tokens * cols);
                let bias = noise.floats(rows);
                let [delta, residual] = [(); 2].map(|()| noise.floats(tokens * rows));
                for extras in if (rows, cols) == (37, 96) && format == TensorType::Q4_0 {
                    0..8
                } else {
                    7..8
                } {
                    let run = |device: &Device, weights: &Matrix| {
                        let all = |values: &[f32]| tensor(values, [tokens, rows], device);
                        let addends = Addends {
                            bias: (extras & 1 != 0).then(|| tensor(&bias, [rows], device)),
                            delta: (extras & 4 != 0).then(|| all(&delta)),
                            residual: (extras & 2 != 0).then(|| all(&residual)),
                        };
                        values(matmul(
                            tensor(&x, [tokens, cols], device),
                            weights,
                            addends,
                            finish(extras),
                            variant,
                        ))
                    };
                    let what = format!(
                        "matmul {format:?} {tokens}x{rows}x{cols} extras {extras} {variant:?}"
                    );
                    assert_near(
                        &what,
                        &run(gpu.device(), &on_gpu),
                        &run(&cpu, &on_cpu),
                        variant.matmul,
                        1e-4,
                    );
                }
            }
        }
    }
}

/// Small and large tiles add columns in the same order, so their results have the same bits.
#[test]
fn matmul_of_a_token_does_not_depend_on_the_tile() {
    let (gpu, mut noise) = (gpu(), Noise(15));
    let device = gpu.device();
    let (few, many) = (MAX_SMALL_TOKENS, MAX_SMALL_TOKENS + 9);
    let mut differing = Vec::new();
    for (mut variant, format, _) in matmuls(&gpu) {
        if matches!(format, TensorType::Q4_0 | TensorType::BF16) {
            let (rows, cols) = sizes(format)[3];
            let [gate, up] = matrices(format, rows, cols, &mut noise, [device, device]);
            let x = noise.floats(many * cols);
            let run = |tokens: usize, variant: Variant| {
                let x = tensor(&x[..tokens * cols], [tokens, cols], device);
                let plain = matmul(x.clone(), &gate, Addends::default(), Finish::Plain, variant);
                [
                    plain,
                    gated_matmul(x, &gate, &up, None, Activation::Silu, variant),
                ]
                .map(values)
            };
            let large = run(many, variant);
            for (small, large) in run(few, variant).iter().zip(&large) {
                if *small != large[..few * rows] {
                    differing.push(format!("{few} tokens {format:?} {variant:?}"));
                }
            }
            variant.large_tiles_from = u32::MAX;
            if run(many, variant) != large {
                differing.push(format!("{many} tokens {format:?} {variant:?}"));
            }
        }
    }
    assert!(differing.is_empty(), "{differing:#?}");
}

#[test]
fn gates_with_biases_equal_their_twins() {
    let (gpu, cpu, mut noise) = (gpu(), Device::flex(), Noise(8));
    let variants = variants(&gpu);
    for format in [TensorType::F16, TensorType::Q8_0] {
        for variant in variants_for(format, &variants) {
            let (rows, cols) = (37, 96);
            let [gate_gpu, gate_cpu] =
                matrices(format, rows, cols, &mut noise, [gpu.device(), &cpu]);
            let [up_gpu, up_cpu] = matrices(format, rows, cols, &mut noise, [gpu.device(), &cpu]);
            let biases = noise.floats(2 * rows);
            for tokens in [1, 3, 33] {
                let x = noise.floats(tokens * cols);
                let run = |device: &Device, gate: &Matrix, up: &Matrix, times: usize| {
                    let x = tensor(&x, [tokens, cols], device);
                    let added = tensor(&biases.repeat(times), [times, 2 * rows], device);
                    let added = Some(added);
                    let activation = Activation::QuickGelu;
                    values(match tokens <= MAX_TOKENS {
                        true => gated_matvec(x, None, gate, up, added, activation, variant),
                        false => gated_matmul(x, gate, up, added, activation, variant),
                    })
                };
                let on_gpu = run(gpu.device(), &gate_gpu, &up_gpu, 1);
                let twin = run(&cpu, &gate_cpu, &up_cpu, 1);
                let arithmetic = match tokens <= MAX_TOKENS {
                    true => variant.matvec,
                    false => variant.matmul,
                };
                let what = format!("{tokens} tokens, {format:?}, {variant:?}");
                assert_near(&what, &on_gpu, &twin, arithmetic, 2e-4);
                // The same as a row per token, to the last bit.
                assert_eq!(
                    on_gpu,
                    run(gpu.device(), &gate_gpu, &up_gpu, tokens),
                    "{what}"
                );
                assert_eq!(twin, run(&cpu, &gate_cpu, &up_cpu, tokens), "{what}");
            }
        }
    }
}

#[test]
fn gated_matmul_equals_its_twin() {
    let (gpu, cpu) = (gpu(), Device::flex());
    for (variant, format, sizes) in matmuls(&gpu) {
        // Errors of f16 depend on the values, which another type in the list must not change.
        let mut noise = Noise(6 + format as u64);
        for (rows, cols) in sizes {
            // A part of a large tile or of a small one.
            let tokens = if rows == 37 { 33 } else { 7 };
            let [gate_gpu, gate_cpu] =
                matrices(format, rows, cols, &mut noise, [gpu.device(), &cpu]);
            let [up_gpu, up_cpu] = matrices(
                TensorType::Q8_0,
                rows,
                cols.next_multiple_of(32),
                &mut noise,
                [gpu.device(), &cpu],
            );
            // The formats of the two matrices may differ if both can store the columns.
            let (up_gpu, up_cpu) = if cols.is_multiple_of(32) {
                (up_gpu, up_cpu)
            } else {
                (gate_gpu.clone(), gate_cpu.clone())
            };
            let x = noise.floats(tokens * cols);
            let delta = noise.floats(tokens * 2 * rows);
            for &has_delta in deltas(format, rows) {
                let run = |device: &Device, gate: &Matrix, up: &Matrix| {
                    values(gated_matmul(
                        tensor(&x, [tokens, cols], device),
                        gate,
                        up,
                        has_delta.then(|| tensor(&delta, [tokens, 2 * rows], device)),
                        activation(format),
                        variant,
                    ))
                };
                let (a, b) = (
                    run(gpu.device(), &gate_gpu, &up_gpu),
                    run(&cpu, &gate_cpu, &up_cpu),
                );
                assert_near(
                    &format!(
                        "gated_matmul {format:?} {rows}x{cols} {variant:?}, delta {has_delta}"
                    ),
                    &a,
                    &b,
                    variant.matmul,
                    2e-4,
                );
            }
        }
    }
}
