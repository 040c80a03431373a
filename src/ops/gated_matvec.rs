//! The gated half of a feed-forward layer for one token: `silu(gate * norm(x)) * (up * norm(x))`
//! (Shazeer 2020, <https://arxiv.org/abs/2002.05202>).

use burn::backend::flex::FlexTensor;
use burn::{
    backend::{Cube, Dispatch, Flex},
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

/// `x` is `[1, cols]`, `norm` `[cols]`; gives `[1, rows]`.
pub fn gated_matvec(
    x: Tensor<2>,
    norm: (Tensor<1>, f32),
    gate: &Matrix,
    up: &Matrix,
    variant: Variant,
) -> Tensor<2> {
    Tensor::from_dispatch(Dispatch::gated_matvec(
        x.into_dispatch(),
        norm.0.into_dispatch(),
        norm.1,
        gate.to_dispatch(),
        up.to_dispatch(),
        variant,
    ))
}

/// The composed kernel; `gate` and `up` have equal sizes, formats may differ.
pub fn kernel(gate: MatrixShape, up: MatrixShape, eps: f32, variant: Variant) -> Kernel {
    let kernel = Kernel::new(format!("gated_matvec_{}", gate.format.name()))
        .variant(variant)
        .binding("x")
        .binding("norm")
        .binding("out")
        .constant_f32("EPS", eps);
    let kernel = gated_matmul::matrices(kernel, gate, up);
    matvec::lanes(kernel, gate, variant, 2)
        .module(shader::matvec_input::RMS_NORM)
        .module(shader::store::PLAIN)
        .module(shader::SILU)
        .module(shader::kernel::GATED_MATVEC)
}

pub(super) fn launch(
    x: CubeTensor,
    norm: CubeTensor,
    eps: f32,
    gate: MatrixTensors<Cube>,
    up: MatrixTensors<Cube>,
    variant: Variant,
) -> CubeTensor {
    let out = output(&x, [1, gate.shape.rows]);
    let mut buffers = vec![&x, &norm, &out];
    gated_matmul::push_matrices(&mut buffers, &gate, &up);
    kernel(gate.shape, up.shape, eps, variant)
        .launch(&buffers, matvec::workgroups(gate.shape.rows, variant));
    out
}

pub(super) fn twin(
    x: FlexTensor,
    norm: FlexTensor,
    eps: f32,
    gate: MatrixTensors<Flex>,
    up: MatrixTensors<Flex>,
    _variant: Variant,
) -> FlexTensor {
    gated_matmul::twin(rms_norm::twin(x, norm, eps), gate, up)
}
