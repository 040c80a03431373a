//! Ops of multi-head latent attention against their twins, and the twins against the formulas.

use burn::tensor::Device;
use inpage::ops::{
    head_product::{HeadShape, head_product, upload_head_matrices},
    latent_row::latent_row,
};

use crate::fixture::{Noise, assert_close, gpu, tensor, values};

#[test]
fn head_product_equals_its_twin_and_the_formula() {
    let (gpu, cpu, mut noise) = (gpu(), Device::flex(), Noise(51));
    for (tokens, heads, rows, cols, x_len, x_at, prefix) in [
        (1, 3, 10, 7, 9, 2, 4),
        (5, 2, 66, 33, 33, 0, 0),
        (12, 3, 8, 20, 21, 1, 2),
    ] {
        let shape = HeadShape {
            heads,
            rows,
            cols,
            x_len,
            x_at,
            prefix,
        };
        let x = noise.floats(tokens * heads * x_len);
        // Exact as f16.
        let matrix: Vec<f32> = (0..heads * rows * cols)
            .map(|i| (i * 37 % 61) as f32 / 32.0 - 1.0)
            .collect();
        let before = noise.floats(tokens * heads * prefix);
        let on = |device: &Device| {
            let prefix = (prefix > 0).then(|| tensor(&before, [tokens, heads * prefix], device));
            let words = upload_head_matrices(&matrix, rows, cols, device);
            values(head_product(
                tensor(&x, [tokens, heads * x_len], device),
                words,
                prefix,
                shape,
            ))
        };
        let on_cpu = on(&cpu);
        assert_close("head_product", &on(gpu.device()), &on_cpu, 1e-5);
        for (i, found) in on_cpu.iter().enumerate() {
            let (head, at) = (i / (prefix + rows), i % (prefix + rows));
            let wanted = if at < prefix {
                before[head * prefix + at]
            } else {
                let row = head % heads * rows + at - prefix;
                let x = &x[head * x_len + x_at..][..cols];
                let weights = &matrix[row * cols..][..cols];
                weights.iter().zip(x).map(|(a, b)| a * b).sum()
            };
            assert!((found - wanted).abs() < 1e-4, "{found}, {wanted}");
        }
    }
}

#[test]
fn latent_row_equals_its_twin_and_the_formula() {
    let (gpu, cpu, mut noise) = (gpu(), Device::flex(), Noise(52));
    let (tokens, kept, len) = (5, 18, 150);
    let columns = kept + len;
    let (x, norm) = (noise.floats(tokens * columns), noise.floats(len));
    let on = |device: &Device| {
        let x = tensor(&x, [tokens, columns], device);
        values(latent_row(x, tensor(&norm, [len], device), 1e-5))
    };
    let on_cpu = on(&cpu);
    assert_close("latent_row", &on(gpu.device()), &on_cpu, 1e-5);
    let last = &x[4 * columns..];
    assert_eq!(on_cpu[4 * columns..][..kept], last[..kept]);
    let mean = last[kept..].iter().map(|v| v * v).sum::<f32>() / len as f32;
    let wanted = last[columns - 1] / (mean + 1e-5).sqrt() * norm[len - 1];
    let found = on_cpu[on_cpu.len() - 1];
    assert!((found - wanted).abs() < 1e-5, "{found}, {wanted}");
}
