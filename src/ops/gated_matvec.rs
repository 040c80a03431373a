//! The gated half of a feed-forward layer for a few tokens: `silu(gate * norm(x)) * (up * norm(x))`
//! (Shazeer 2020, <https://arxiv.org/abs/2002.05202>). Tokens do not depend on each other, as in
//! `matvec`.

use burn::backend::flex::FlexTensor;
use burn::{
    backend::{Cube, Dispatch, Flex, TensorMetadata},
    tensor::Tensor,
};
use burn_wgpu::CubeTensor;

use super::{
    Variant,
    backend::{MatrixTensors, Ops, output},
    gated_matmul,
    kernel::Kernel,
    matrix::{Matrix, MatrixShape},
    matvec, rms_norm, shader,
};

/// `x` is `[tokens, cols]` with at most [`matvec::MAX_TOKENS`], `norm` `[cols]`; gives
/// `[tokens, rows]`.
pub fn gated_matvec(
    x: Tensor<2>,
    norm: (Tensor<1>, f32),
    gate: &Matrix,
    up: &Matrix,
    variant: Variant,
) -> Tensor<2> {
    assert!(
        x.dims()[0] <= matvec::MAX_TOKENS,
        "a matvec of too many tokens"
    );
    Tensor::from_dispatch(Dispatch::gated_matvec(
        x.into_dispatch(),
        norm.0.into_dispatch(),
        norm.1,
        gate.to_dispatch(),
        up.to_dispatch(),
        variant,
    ))
}

/// The composed kernel, as in `matvec`; `gate` and `up` have equal sizes, formats may differ.
pub fn kernel(
    gate: MatrixShape,
    up: MatrixShape,
    tokens: usize,
    eps: f32,
    variant: Variant,
) -> Kernel {
    let kernel = Kernel::new(format!("gated_matvec_{}", gate.format.name()))
        .variant(variant)
        .binding("x")
        .binding("norm")
        .binding("out")
        .constant_f32("EPS", eps);
    let arithmetic = variant.matvec.on(&[gate.format, up.format]);
    let kernel = gated_matmul::matrices(kernel, gate, up, arithmetic);
    matvec::lanes(kernel, gate, tokens, arithmetic, variant, 2)
        .module(shader::matvec_input::RMS_NORM)
        .module(shader::store::PLAIN)
        .module(shader::SILU)
        .module(if tokens == 1 {
            shader::kernel::GATED_MATVEC
        } else {
            shader::kernel::GATED_MATVEC_BATCH
        })
}

pub(super) fn launch(
    x: CubeTensor,
    norm: CubeTensor,
    eps: f32,
    gate: MatrixTensors<Cube>,
    up: MatrixTensors<Cube>,
    variant: Variant,
) -> CubeTensor {
    let [tokens, _] = x.shape().dims();
    let out = output(&x, [tokens, gate.shape.rows]);
    let mut buffers = vec![&x, &norm, &out];
    gated_matmul::push_matrices(&mut buffers, &gate, &up);
    kernel(gate.shape, up.shape, tokens, eps, variant)
        .launch(&buffers, matvec::workgroups(gate.shape.rows, variant));
    out
}

pub(super) fn twin(
    x: FlexTensor,
    norm: FlexTensor,
    eps: f32,
    gate: MatrixTensors<Flex>,
    up: MatrixTensors<Flex>,
    variant: Variant,
) -> FlexTensor {
    let arithmetic = variant.matvec.on(&[gate.shape.format, up.shape.format]);
    gated_matmul::sums(rms_norm::twin(x, norm, eps), &gate, &up, arithmetic)
}
