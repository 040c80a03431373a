//! The gated half of a feed-forward layer for a few tokens: `act(gate * norm(x)) * (up * norm(x))`
//! (Shazeer 2020, <https://arxiv.org/abs/2002.05202>). As in `matvec`, the result of a token does not
//! depend on the others.

use burn::backend::flex::FlexTensor;
use burn::{
    backend::{Backend, Cube, Dispatch, ExtensionType, Flex, TensorMetadata, tensor::FloatTensor},
    tensor::Tensor,
};
use burn_wgpu::CubeTensor;
use inpage_cpu::lanes::activation::Activation;

use super::{
    gated_matmul::{self, Added},
    matrix::{Matrix, MatrixShape, MatrixTensors},
    matvec,
    op::{Maybe, op, output},
    rms_norm::InputNorm,
    variant::Variant,
};
use crate::kernel::Kernel;

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
    #[extension_type]
    pub(super) delta: Maybe<B>,
    pub(super) activation: Activation,
    pub(super) variant: Variant,
}

op! {
    fn gated_matvec(Arguments) -> FloatTensor<Self>
}

/// `x` is `[tokens, cols]` with at most [`matvec::MAX_TOKENS`], `norm` `[cols]` (`None` if `x` is already
/// normalized), `delta` what is added to the products with gate and with up: `[tokens, 2 * rows]`, such as the
/// adapters' output, or `[1, 2 * rows]` for all tokens, such as biases. Returns `[tokens, rows]`.
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
    Tensor::from_dispatch(Dispatch::gated_matvec(Arguments {
        x: x.into_dispatch(),
        norm: norm.into(),
        gate: gate.to_dispatch(),
        up: up.to_dispatch(),
        delta: delta.into(),
        activation,
        variant,
    }))
}

/// The composed kernel, as in `matvec`. `gate` and `up` have equal sizes; their formats may differ.
pub fn kernel(
    gate: MatrixShape,
    up: MatrixShape,
    added: Added,
    activation: Activation,
    tokens: usize,
    norm_eps: Option<f32>,
    variant: Variant,
) -> Kernel {
    let kernel = Kernel::new(format!("gated_matvec_{}", gate.ty.lowercase_name()))
        .binding("x")
        .binding("out");
    let kernel = matvec::input(kernel, norm_eps);
    let arithmetic = variant.matvec.on(&[gate.ty, up.ty]);
    let kernel = gated_matmul::matrices(kernel, gate, up, arithmetic);
    let kernel = matvec::lanes(kernel, gate, tokens, arithmetic, variant);
    matvec::main(gated_matmul::rows(kernel, added, activation), tokens)
}

pub(super) fn launch(args: Arguments<Cube>) -> CubeTensor {
    let Arguments { delta, .. } = args;
    let [tokens, _] = args.x.shape().dims();
    let (rows, delta) = (args.gate.shape.rows, delta.as_ref());
    let out = output(&args.x, [tokens, rows]);
    let kernel = kernel(
        args.gate.shape,
        args.up.shape,
        Added::of(delta.map(|it| it.shape().dims::<2>()[0]), tokens),
        args.activation,
        tokens,
        args.norm.eps(),
        args.variant,
    );
    let mut buffers = vec![&args.x, &out];
    buffers.extend(args.norm.norm());
    buffers.extend(args.gate.buffers().chain(args.up.buffers()));
    buffers.extend(delta);
    kernel.launch(&buffers, matvec::workgroups(rows, args.variant));
    out
}

pub(super) fn twin(args: Arguments<Flex>) -> FlexTensor {
    let arithmetic = args
        .variant
        .matvec
        .on(&[args.gate.shape.ty, args.up.shape.ty]);
    let x = args.norm.apply(args.x, args.gate.is_panels());
    let matrices = [&args.gate, &args.up];
    gated_matmul::products(x, matrices, args.delta, args.activation, arithmetic)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::validation::assert_valid;
    use crate::ops::test_cases::matrices;

    #[test]
    fn kernels_are_valid_wgsl() {
        for (shape, variant) in matrices() {
            for (tokens, activation, norm_eps) in [
                (1, Activation::Silu, Some(1e-5)),
                (matvec::MAX_TOKENS, Activation::Gelu, None),
            ] {
                assert_valid([Added::Nothing, Added::ToAll, Added::ToEach].map(|added| {
                    kernel(shape, shape, added, activation, tokens, norm_eps, variant)
                }));
            }
        }
    }
}
