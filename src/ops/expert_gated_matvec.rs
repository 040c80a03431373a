//! The gated half of a mixture of experts for a few tokens: `silu(gate * norm(x)) * (up * norm(x))`
//! by each token's experts, whose matrices lie one below the other.

use burn::backend::flex::FlexTensor;
use burn::{
    backend::{Cube, Dispatch, Flex, TensorMetadata},
    tensor::{Int, Tensor},
};
use burn_wgpu::CubeTensor;

use super::{
    Arithmetic, Variant,
    backend::{MatrixTensors, Maybe, Ops, output},
    expert_gated_matmul, expert_matvec, gated_matmul,
    kernel::Kernel,
    matrix::{Matrix, MatrixShape},
    matvec, rms_norm, shader,
    store::Store,
};

/// `x` is `[tokens, cols]` with at most [`matvec::MAX_TOKENS`], `norm` `[cols]`, `experts`
/// `[tokens, used]`; `gate` and `up` have `rows` for each expert. Gives `[tokens * used, rows]`.
pub fn expert_gated_matvec(
    x: Tensor<2>,
    norm: (Tensor<1>, f32),
    gate: &Matrix,
    up: &Matrix,
    rows: usize,
    experts: Tensor<2, Int>,
    variant: Variant,
) -> Tensor<2> {
    assert!(
        x.dims()[0] <= matvec::MAX_TOKENS,
        "a matvec of too many tokens"
    );
    Tensor::from_dispatch(Dispatch::expert_gated_matvec(
        x.into_dispatch(),
        norm.0.into_dispatch(),
        norm.1,
        gate.to_dispatch(),
        up.to_dispatch(),
        rows,
        experts.into_dispatch(),
        variant,
    ))
}

/// The composed kernel, one for all numbers of tokens; `gate` and `up` are an expert's, formats may
/// differ.
pub fn kernel(
    gate: MatrixShape,
    up: MatrixShape,
    used: usize,
    eps: f32,
    variant: Variant,
) -> Kernel {
    let kernel = Kernel::new(format!("expert_gated_matvec_{}", gate.ty.lowercase_name()))
        .variant(variant)
        .binding("x")
        .binding("norm")
        .binding("experts")
        .binding("out")
        .constant("USED", used)
        .constant_f32("EPS", eps);
    let kernel = gated_matmul::matrices(kernel, gate, up, Arithmetic::F32);
    let kernel = matvec::lanes(kernel, gate, 1, Arithmetic::F32, variant, 2)
        .module(shader::matvec_input::RMS_NORM);
    Store::default()
        .modules(kernel)
        .module(shader::activation::SILU)
        .module(shader::kernel::EXPERT_GATED_MATVEC)
}

#[allow(clippy::too_many_arguments)]
pub(super) fn launch(
    x: CubeTensor,
    norm: CubeTensor,
    eps: f32,
    gate: MatrixTensors<Cube>,
    up: MatrixTensors<Cube>,
    rows: usize,
    experts: CubeTensor,
    variant: Variant,
) -> CubeTensor {
    let [tokens, used] = experts.shape().dims();
    let out = output(&x, [tokens * used, rows]);
    let mut buffers = vec![&x, &norm, &experts, &out];
    gated_matmul::push_matrices(&mut buffers, &gate, &up);
    let of_expert = |shape: MatrixShape| MatrixShape { rows, ..shape };
    let shapes = [gate.shape, up.shape].map(of_expert);
    kernel(shapes[0], shapes[1], used, eps, variant).launch(
        &buffers,
        expert_matvec::workgroups(rows, tokens * used, variant),
    );
    out
}

#[allow(clippy::too_many_arguments)]
pub(super) fn twin(
    x: FlexTensor,
    norm: FlexTensor,
    eps: f32,
    gate: MatrixTensors<Flex>,
    up: MatrixTensors<Flex>,
    rows: usize,
    experts: FlexTensor,
    _variant: Variant,
) -> FlexTensor {
    let [_, used] = experts.shape().dims();
    let x = rms_norm::twin(x, norm, eps, Maybe::None);
    let tiles = expert_matvec::parse(experts.storage());
    expert_gated_matmul::gated(x, gate, up, rows, used, &tiles)
}
