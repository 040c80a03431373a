//! The gated half of a mixture of experts for a few tokens: `act(gate * norm(x)) * (up * norm(x))` with the
//! matrices of each token's experts, which are stored one below the other.

use burn::backend::flex::FlexTensor;
use burn::{
    backend::{
        Cube, Dispatch, Flex, TensorMetadata,
        tensor::{FloatTensor, IntTensor},
    },
    tensor::{Int, Tensor},
};
use burn_wgpu::CubeTensor;
use inpage_cpu::lanes::activation::Activation;

use super::{
    arithmetic::Arithmetic,
    expert_gated_matmul, expert_matvec, gated_matmul,
    matrix::{Matrix, MatrixShape, MatrixTensors},
    matvec,
    op::{op, output},
    rms_norm::InputNorm,
    variant::Variant,
};
use crate::kernel::{Kernel, wgsl};

op! {
    cpu if (gate.is_panels());
    fn expert_gated_matvec(
        x: FloatTensor<Self>,
        #[extension_type] norm: InputNorm<Self>,
        #[extension_type] gate: MatrixTensors<Self>,
        #[extension_type] up: MatrixTensors<Self>,
        rows: usize,
        experts: IntTensor<Self>,
        activation: Activation,
        variant: Variant,
    ) -> FloatTensor<Self>
}

/// `x` is `[tokens, cols]` with at most [`matvec::MAX_TOKENS`], `norm` `[cols]`, `experts`
/// `[tokens, used]`. `gate` and `up` have `rows` rows per expert. Returns `[tokens * used, rows]`.
pub fn expert_gated_matvec(
    x: Tensor<2>,
    norm: Option<(Tensor<1>, f32)>,
    gate: &Matrix,
    up: &Matrix,
    rows: usize,
    experts: Tensor<2, Int>,
    activation: Activation,
    variant: Variant,
) -> Tensor<2> {
    assert!(
        x.dims()[0] <= matvec::MAX_TOKENS,
        "a matvec of too many tokens"
    );
    Tensor::from_dispatch(Dispatch::expert_gated_matvec(
        x.into_dispatch(),
        norm.into(),
        gate.to_dispatch(),
        up.to_dispatch(),
        rows,
        experts.into_dispatch(),
        activation,
        variant,
    ))
}

/// The composed kernel for any number of tokens. `gate` and `up` have the size of one expert's matrices;
/// their formats may differ.
pub fn kernel(
    gate: MatrixShape,
    up: MatrixShape,
    used: usize,
    norm_eps: Option<f32>,
    activation: Activation,
    variant: Variant,
) -> Kernel {
    let kernel = Kernel::new(format!("expert_gated_matvec_{}", gate.ty.lowercase_name()))
        .binding("x")
        .binding("experts")
        .binding("out")
        .constant("USED", used);
    let kernel = gated_matmul::matrices(kernel, gate, up, Arithmetic::F32);
    let kernel = matvec::lanes(kernel, gate, 1, Arithmetic::F32, variant);
    let kernel = matvec::input(kernel, norm_eps);
    gated_matmul::rows(kernel, gated_matmul::Added::Nothing, activation)
        .module(wgsl!("expert_gated_matvec"))
}

pub(super) fn launch(
    x: CubeTensor,
    norm: InputNorm<Cube>,
    gate: MatrixTensors<Cube>,
    up: MatrixTensors<Cube>,
    rows: usize,
    experts: CubeTensor,
    activation: Activation,
    variant: Variant,
) -> CubeTensor {
    let [tokens, used] = experts.shape().dims();
    let out = output(&x, [tokens * used, rows]);
    let mut buffers = vec![&x, &experts, &out];
    buffers.extend(gate.buffers().chain(up.buffers()));
    buffers.extend(norm.norm());
    let [gate, up] = [&gate, &up].map(|matrix| matrix.shape.of_expert(rows));
    let grid = expert_matvec::workgroups(rows, tokens * used, variant);
    kernel(gate, up, used, norm.eps(), activation, variant).launch(&buffers, grid);
    out
}

pub(super) fn twin(
    x: FlexTensor,
    norm: InputNorm<Flex>,
    gate: MatrixTensors<Flex>,
    up: MatrixTensors<Flex>,
    rows: usize,
    experts: FlexTensor,
    activation: Activation,
    _variant: Variant,
) -> FlexTensor {
    let [_, used] = experts.shape().dims();
    let tiles = expert_matvec::parse(experts.storage());
    expert_gated_matmul::gated(norm.apply(x), gate, up, rows, used, &tiles, activation)
}

fn cpu(
    x: FlexTensor,
    norm: InputNorm<Flex>,
    gate: MatrixTensors<Flex>,
    up: MatrixTensors<Flex>,
    rows: usize,
    experts: FlexTensor,
    activation: Activation,
    _variant: Variant,
) -> FlexTensor {
    let [_, used] = experts.shape().dims();
    let tiles = expert_matvec::parse(experts.storage());
    let x = norm.apply_on_cpu(x);
    expert_gated_matmul::gated_on_cpu(x, gate, up, rows, used, &tiles, activation)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::validation::assert_valid;
    use crate::ops::test_cases::matrices;

    #[test]
    fn kernels_are_valid_wgsl() {
        let kernels = matrices().into_iter();
        assert_valid(kernels.map(|(shape, variant)| {
            kernel(shape, shape, 8, Some(1e-5), Activation::Silu, variant)
        }));
    }
}
