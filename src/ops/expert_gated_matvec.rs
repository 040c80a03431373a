//! The gated half of a mixture of experts for a few tokens: `act(gate * norm(x)) * (up * norm(x))` with the
//! matrices of each token's experts, which are stored one below the other.

use burn::backend::flex::FlexTensor;
use burn::{
    backend::{
        Backend, Cube, Dispatch, ExtensionType, Flex, TensorMetadata,
        tensor::{FloatTensor, IntTensor},
    },
    tensor::{Int, Tensor},
};
use burn_wgpu::CubeTensor;
use inpage_cpu::lanes::activation::Activation;

use super::{
    arithmetic::Arithmetic,
    expert_gated_matmul, expert_matvec,
    gated_matmul::{self, Added},
    matrix::{Matrix, MatrixShape, MatrixTensors},
    matvec,
    op::{Maybe, op, output},
    rms_norm::InputNorm,
    variant::Variant,
};
use crate::kernel::{Kernel, wgsl};

/// The arguments of the op.
#[derive(ExtensionType)]
pub(super) struct Arguments<B: Backend> {
    pub(super) x: FloatTensor<B>,
    #[extension_type]
    pub(super) norm: InputNorm<B>,
    #[extension_type]
    pub(super) gate: MatrixTensors<B>,
    #[extension_type]
    pub(super) up: MatrixTensors<B>,
    pub(super) rows: usize,
    pub(super) experts: IntTensor<B>,
    #[extension_type]
    pub(super) biases: Maybe<B>,
    pub(super) activation: Activation,
    pub(super) variant: Variant,
}

op! {
    fn expert_gated_matvec(Arguments) -> FloatTensor<Self>
}

/// `x` is `[tokens, cols]` with at most [`matvec::MAX_TOKENS`], `norm` `[cols]`, `experts`
/// `[tokens, used]`. `gate` and `up` have `rows` rows per expert, `biases` `[experts, 2 * rows]` those of gate, then those
/// of up; with biases there is no norm, because that would be too many buffers. Returns `[tokens * used, rows]`.
#[expect(
    clippy::too_many_arguments,
    reason = "two matrices and how tokens choose experts"
)]
pub fn expert_gated_matvec(
    x: Tensor<2>,
    norm: Option<(Tensor<1>, f32)>,
    gate: &Matrix,
    up: &Matrix,
    rows: usize,
    experts: Tensor<2, Int>,
    biases: Option<Tensor<2>>,
    activation: Activation,
    variant: Variant,
) -> Tensor<2> {
    assert!(
        norm.is_none() || biases.is_none(),
        "a norm and biases of experts"
    );
    assert!(
        x.dims()[0] <= matvec::MAX_TOKENS,
        "a matvec of too many tokens"
    );
    Tensor::from_dispatch(Dispatch::expert_gated_matvec(Arguments {
        x: x.into_dispatch(),
        norm: norm.into(),
        gate: gate.to_dispatch(),
        up: up.to_dispatch(),
        rows,
        experts: experts.into_dispatch(),
        biases: biases.into(),
        activation,
        variant,
    }))
}

/// The composed kernel for any number of tokens. `gate` and `up` have the size of one expert's matrices;
/// their formats may differ.
pub fn kernel(
    gate: MatrixShape,
    up: MatrixShape,
    used: usize,
    norm_eps: Option<f32>,
    added: Added,
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
    gated_matmul::rows(kernel, added, activation).module(wgsl!("expert_gated_matvec"))
}

pub(super) fn launch(args: Arguments<Cube>) -> CubeTensor {
    let Arguments { gate, up, .. } = args;
    let [tokens, used] = args.experts.shape().dims();
    let out = output(&args.x, [tokens * used, args.rows]);
    let mut buffers = vec![&args.x, &args.experts, &out];
    buffers.extend(gate.buffers().chain(up.buffers()));
    buffers.extend(args.norm.norm());
    buffers.extend(args.biases.as_ref());
    let [gate, up] = [&gate, &up].map(|matrix| matrix.shape.of_expert(args.rows));
    let grid = expert_matvec::workgroups(args.rows, tokens * used, args.variant);
    kernel(
        gate,
        up,
        used,
        args.norm.eps(),
        Added::of_experts(&args.biases),
        args.activation,
        args.variant,
    )
    .launch(&buffers, grid);
    out
}

pub(super) fn twin(args: Arguments<Flex>) -> FlexTensor {
    let [_, used] = args.experts.shape().dims();
    let tiles = expert_matvec::parse(args.experts.storage());
    let x = args.norm.apply(args.x, args.gate.is_panels());
    let matrices = [&args.gate, &args.up];
    let biases = &args.biases;
    expert_gated_matmul::products(
        x,
        matrices,
        args.rows,
        used,
        &tiles,
        biases,
        args.activation,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::validation::assert_valid;
    use crate::ops::test_cases::matrices;

    #[test]
    fn kernels_are_valid_wgsl() {
        let kernels = matrices().into_iter();
        assert_valid(kernels.flat_map(|(shape, variant)| {
            let silu = Activation::Silu;
            [
                kernel(shape, shape, 8, Some(1e-5), Added::Nothing, silu, variant),
                kernel(
                    shape,
                    shape,
                    8,
                    None,
                    Added::ToExperts,
                    Activation::ClampedSilu,
                    variant,
                ),
            ]
        }));
    }
}
