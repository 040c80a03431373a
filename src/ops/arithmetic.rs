//! The arithmetic of products of activations and weights. Sums over blocks of 32 columns are added in f32
//! in every case.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::kernel::{Kernel, wgsl};
use crate::tensor_types::{BLOCK_COLS, TensorType};

/// The arithmetic of one kind of product.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Arithmetic {
    /// Everything in f32.
    F32,
    /// f16 within a block of 32 columns. For many tokens only; requires `shader-f16`.
    F16,
    /// Activations quantized to bytes per block of 32 columns. For formats whose quants are bytes or
    /// nibbles with one scale per block.
    I8,
}

impl Arithmetic {
    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Arithmetic::F32 => "f32",
            Arithmetic::F16 => "f16",
            Arithmetic::I8 => "i8",
        }
    }

    /// The arithmetic that is used for matrices of `formats`: f32 if one of them does not support this.
    pub fn on(self, formats: &[TensorType]) -> Arithmetic {
        let has_bytes = |format: &TensorType| format.i8_wgsl().is_some();
        if self == Arithmetic::I8 && !formats.iter().all(has_bytes) {
            return Arithmetic::F32;
        }
        self
    }

    /// Declares the type `Block`: 32 columns in the form in which they are multiplied.
    pub(super) fn blocks(self, kernel: Kernel) -> Kernel {
        let values = "array<vec4<f32>, 8>";
        match self {
            Arithmetic::F32 => kernel.alias("Block", values),
            Arithmetic::F16 => kernel
                .directive("enable f16;\n")
                .alias("Block", values)
                .module(wgsl!("shared/peak")),
            Arithmetic::I8 => kernel
                .module(wgsl!("shared/peak"))
                .module(wgsl!("shared/i8_block")),
        }
    }

    /// The modules of a matrix whose format supports the arithmetic (see [`Arithmetic::on`]).
    pub(super) fn weights(self, format: TensorType) -> &'static [&'static str] {
        match (self, format.i8_wgsl()) {
            (Arithmetic::I8, Some(modules)) => modules,
            _ => format.wgsl(),
        }
    }

    /// Inputs `[tokens, cols]` rounded as the kernels round them, for the twins. Rounding to f16 is left
    /// out: kernels may differ from the twins by it.
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

/// The CPU twin of `quantize_block` in `shaders/shared/i8_block.wgsl`.
fn quantize(block: &mut [f32]) {
    let peak = block.iter().fold(0.0, |peak: f32, v| peak.max(v.abs()));
    let scale = if peak > 1e-30 { 1.0 / peak } else { 0.0 };
    for value in block {
        *value = (*value * scale * 127.0 + 0.5).floor() * (peak / 127.0);
    }
}
