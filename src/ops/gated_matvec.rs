//! The gated half of a feed-forward layer for a few tokens: `act(gate * norm(x)) * (up * norm(x))`
//! (Shazeer 2020, <https://arxiv.org/abs/2002.05202>). Tokens do not depend on each other, as in
//! `matvec`.

use burn::backend::flex::FlexTensor;
use burn::{
    backend::{Cube, Dispatch, Flex, TensorMetadata},
    tensor::Tensor,
};
use burn_wgpu::CubeTensor;

use super::{
    Activation, Variant,
    backend::{MatrixTensors, Maybe, Ops, maybe, output},
    gated_matmul,
    kernel::Kernel,
    matrix::{Matrix, MatrixShape},
    matvec, rms_norm, shader,
};

/// `x` is `[tokens, cols]` with at most [`matvec::MAX_TOKENS`], `norm` `[cols]` (none, if it is
/// normalized already), `delta` `[tokens, 2 * rows]` what adapters add to the gate's products and then
/// to the other's; gives `[tokens, rows]`.
pub fn gated_matvec(
    x: Tensor<2>,
    norm: Option<(Tensor<1>, f32)>,
    gate: &Matrix,
    up: &Matrix,
    delta: Option<Tensor<2>>,
    activation: Activation,
    variant: Variant,
) -> Tensor<2> {
    assert!(
        x.dims()[0] <= matvec::MAX_TOKENS,
        "a matvec of too many tokens"
    );
    let (norm, eps) = norm.map_or((None, 0.0), |(norm, eps)| (Some(norm), eps));
    Tensor::from_dispatch(Dispatch::gated_matvec(
        x.into_dispatch(),
        maybe(norm),
        eps,
        gate.to_dispatch(),
        up.to_dispatch(),
        maybe(delta),
        activation,
        variant,
    ))
}

/// The composed kernel, as in `matvec`; `gate` and `up` have equal sizes, formats may differ.
pub fn kernel(
    gate: MatrixShape,
    up: MatrixShape,
    delta: bool,
    activation: Activation,
    tokens: usize,
    norm_eps: Option<f32>,
    variant: Variant,
) -> Kernel {
    let kernel = Kernel::new(format!("gated_matvec_{}", gate.ty.lowercase_name()))
        .variant(variant)
        .binding("x")
        .binding("out");
    let (kernel, input) = match norm_eps {
        Some(eps) => (
            kernel.binding("norm").constant_f32("EPS", eps),
            shader::matvec_input::RMS_NORM,
        ),
        None => (kernel, shader::matvec_input::PLAIN),
    };
    let arithmetic = variant.matvec.on(&[gate.ty, up.ty]);
    let kernel = gated_matmul::matrices(kernel, gate, up, arithmetic);
    let kernel = matvec::lanes(kernel, gate, tokens, arithmetic, variant, 2).module(input);
    gated_matmul::gate_and_store(kernel, delta, activation).module(if tokens == 1 {
        shader::kernel::GATED_MATVEC
    } else {
        shader::kernel::GATED_MATVEC_BATCH
    })
}

#[allow(clippy::too_many_arguments)]
pub(super) fn launch(
    x: CubeTensor,
    norm: Maybe<Cube>,
    eps: f32,
    gate: MatrixTensors<Cube>,
    up: MatrixTensors<Cube>,
    delta: Maybe<Cube>,
    activation: Activation,
    variant: Variant,
) -> CubeTensor {
    let [tokens, _] = x.shape().dims();
    let out = output(&x, [tokens, gate.shape.rows]);
    let norm = norm.as_ref();
    let mut buffers = vec![&x, &out];
    buffers.extend(norm);
    gated_matmul::push_matrices(&mut buffers, &gate, &up);
    buffers.extend(delta.as_ref());
    kernel(
        gate.shape,
        up.shape,
        delta.as_ref().is_some(),
        activation,
        tokens,
        norm.map(|_| eps),
        variant,
    )
    .launch(&buffers, matvec::workgroups(gate.shape.rows, variant));
    out
}

#[allow(clippy::too_many_arguments)]
pub(super) fn twin(
    x: FlexTensor,
    norm: Maybe<Flex>,
    eps: f32,
    gate: MatrixTensors<Flex>,
    up: MatrixTensors<Flex>,
    delta: Maybe<Flex>,
    activation: Activation,
    variant: Variant,
) -> FlexTensor {
    let arithmetic = variant.matvec.on(&[gate.shape.ty, up.shape.ty]);
    let x = match norm {
        Maybe::Some(norm) => rms_norm::twin(x, norm, eps, Maybe::None),
        Maybe::None => x,
    };
    gated_matmul::sums(x, &gate, &up, delta, activation, arithmetic)
}
