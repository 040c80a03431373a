//! What products of activations and weights are computed in. Sums over blocks of 32 columns are added
//! up in f32, whatever it is.

use std::borrow::Cow;

use super::{kernel::Kernel, shader};
use crate::tensor_types::{BLOCK_COLS, TensorType};

/// The arithmetic of one kind of product.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Arithmetic {
    /// f32 throughout.
    F32,
    /// f16 within a block of 32 columns; for many tokens, needs `shader-f16`.
    F16,
    /// Activations quantized to bytes per block of 32 columns, on formats whose quants are bytes or
    /// nibbles under one scale per block.
    I8,
}

impl Arithmetic {
    /// In reports.
    pub fn name(self) -> &'static str {
        match self {
            Arithmetic::F32 => "f32",
            Arithmetic::F16 => "f16",
            Arithmetic::I8 => "i8",
        }
    }

    /// What it comes to on matrices of `formats`.
    pub fn on(self, formats: &[TensorType]) -> Arithmetic {
        let has_bytes = |format: &TensorType| format.i8_wgsl().is_some();
        if self == Arithmetic::I8 && !formats.iter().all(has_bytes) {
            return Arithmetic::F32;
        }
        self
    }

    /// Declares what a block of 32 columns is while it is multiplied.
    pub(super) fn blocks(self, kernel: Kernel) -> Kernel {
        let values = "array<vec4<f32>, 8>";
        match self {
            Arithmetic::F32 => kernel.alias("Block", values),
            Arithmetic::F16 => kernel
                .directive("enable f16;\n")
                .alias("Block", values)
                .module(shader::PEAK),
            Arithmetic::I8 => kernel.module(shader::PEAK).module(shader::I8_BLOCK),
        }
    }

    /// The module of a matrix, on whose format the arithmetic is (see [`Arithmetic::on`]).
    pub(super) fn weights(self, format: TensorType) -> &'static str {
        match (self, format.i8_wgsl()) {
            (Arithmetic::I8, Some(module)) => module,
            _ => format.wgsl(),
        }
    }

    /// Inputs `[tokens, cols]` as the kernels multiply them, for the twins. They leave f16's rounding
    /// out: it is what kernels may differ by.
    pub(super) fn rounded(self, x: &[f32], cols: usize) -> Cow<'_, [f32]> {
        if self != Arithmetic::I8 {
            return x.into();
        }
        let mut x = x.to_vec();
        for token in x.chunks_mut(cols) {
            token.chunks_mut(BLOCK_COLS).for_each(quantize);
        }
        x.into()
    }
}

/// The twin of `quantize_block` in `shaders/shared/i8_block.wgsl`.
fn quantize(block: &mut [f32]) {
    let peak = block.iter().fold(0.0, |peak: f32, v| peak.max(v.abs()));
    let scale = if peak > 1e-30 { 1.0 / peak } else { 0.0 };
    for value in block {
        *value = (*value * scale * 127.0 + 0.5).floor() * (peak / 127.0);
    }
}
