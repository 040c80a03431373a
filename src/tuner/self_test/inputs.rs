//! Inputs for the validation: varied, finite, and the same on every device.

use burn::tensor::{Device, Tensor};

use crate::{
    device::upload,
    ops::matrix::{Layout, Matrix, MatrixShape},
    tensor_types::{ScaleWord, TensorType},
};

pub(super) fn wave(n: usize, step: f32) -> Vec<f32> {
    (0..n).map(|i| (i as f32 * step).sin()).collect()
}

pub(super) fn rows(tokens: usize, n: usize, step: f32, device: &Device) -> Tensor<2> {
    upload(wave(tokens * n, step), [tokens, n], device)
}

pub(super) fn vector(n: usize, step: f32, device: &Device) -> Tensor<1> {
    upload(wave(n, step), [n], device)
}

pub(super) fn matrix(device: &Device, ty: TensorType, rows: usize, cols: usize) -> Matrix {
    let shape = MatrixShape { ty, rows, cols };
    let quants = (0..shape.quant_words()).map(|i| word(ty, i)).collect();
    let scales = match ty.has_scales() {
        true => (0..shape.scale_words()).map(|i| scale(shape, i)).collect(),
        false => vec![],
    };
    Matrix::reserve(shape, Layout::Blocks, device).write(0, quants, 0, scales)
}

/// Varied but finite contents of a quant word.
fn word(ty: TensorType, i: usize) -> u32 {
    let value = ((i % 23) as f32 - 11.0) / 16.0;
    match ty {
        TensorType::F32 => value.to_bits(),
        TensorType::F16 => 0x1_0001 * u32::from(half::f16::from_f32(value).to_bits()),
        TensorType::BF16 => 0x1_0001 * u32::from(half::bf16::from_f32(value).to_bits()),
        _ => (i as u32).wrapping_mul(0x9e37_79b9),
    }
}

/// Contents of a scale word that keep weights near one: f16 of 1/64, or of 1/1024 where a scale of more
/// bits multiplies them, exponents of 1/8, small floats of 3/16, factors near one.
fn scale(shape: MatrixShape, i: usize) -> u32 {
    let bits = (i as u32 + 1).wrapping_mul(0x9e37_79b9);
    let half = match shape.ty.scale_bytes() {
        (3.., 8) => 0x1400,
        _ => 0x2400,
    };
    match shape.scale_word(i) {
        ScaleWord::Halves => half << 16 | half,
        ScaleWord::LowerHalf => bits & 0xffff_0000 | half,
        ScaleWord::UpperHalf => half << 16 | bits & 0xffff,
        ScaleWord::Bits => bits,
        ScaleWord::Exponents => 0x7c7c_7c7c,
        ScaleWord::SmallFloats => 0x2424_2424,
        ScaleWord::Factor => (0.75f32 + (bits >> 31) as f32).to_bits(),
    }
}
