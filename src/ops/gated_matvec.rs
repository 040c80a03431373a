//! The gated half of a feed-forward layer for a few tokens: `act(gate * norm(x)) * (up * norm(x))`
//! (Shazeer 2020, <https://arxiv.org/abs/2002.05202>). As in `matvec`, the result of a token does not
//! depend on the others.

use burn::backend::flex::FlexTensor;
use burn::{
    backend::{Cube, Dispatch, Flex, TensorMetadata, tensor::FloatTensor},
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

op! {
    cpu if (gate.is_panels());
    fn gated_matvec(
        x: FloatTensor<Self>,
        #[extension_type] norm: InputNorm<Self>,
        #[extension_type] gate: MatrixTensors<Self>,
        #[extension_type] up: MatrixTensors<Self>,
        #[extension_type] delta: Maybe<Self>,
        activation: Activation,
        variant: Variant,
    ) -> FloatTensor<Self>
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
    Tensor::from_dispatch(Dispatch::gated_matvec(
        x.into_dispatch(),
        norm.into(),
        gate.to_dispatch(),
        up.to_dispatch(),
        delta.into(),
        activation,
        variant,
    ))
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

pub(super) fn launch(
    x: CubeTensor,
    norm: InputNorm<Cube>,
    gate: MatrixTensors<Cube>,
    up: MatrixTensors<Cube>,
    delta: Maybe<Cube>,
    activation: Activation,
    variant: Variant,
) -> CubeTensor {
    let [tokens, _] = x.shape().dims();
    let (rows, delta) = (gate.shape.rows, delta.as_ref());
    let out = output(&x, [tokens, rows]);
    let kernel = kernel(
        gate.shape,
        up.shape,
        Added::of(delta.map(|it| it.shape().dims::<2>()[0]), tokens),
        activation,
        tokens,
        norm.eps(),
        variant,
    );
    let mut buffers = vec![&x, &out];
    buffers.extend(norm.norm());
    buffers.extend(gate.buffers().chain(up.buffers()));
    buffers.extend(delta);
    kernel.launch(&buffers, matvec::workgroups(rows, variant));
    out
}

pub(super) fn twin(
    x: FlexTensor,
    norm: InputNorm<Flex>,
    gate: MatrixTensors<Flex>,
    up: MatrixTensors<Flex>,
    delta: Maybe<Flex>,
    activation: Activation,
    variant: Variant,
) -> FlexTensor {
    let arithmetic = variant.matvec.on(&[gate.shape.ty, up.shape.ty]);
    gated_matmul::sums(norm.apply(x), &gate, &up, delta, activation, arithmetic)
}

fn cpu(
    x: FlexTensor,
    norm: InputNorm<Flex>,
    gate: MatrixTensors<Flex>,
    up: MatrixTensors<Flex>,
    delta: Maybe<Flex>,
    activation: Activation,
    variant: Variant,
) -> FlexTensor {
    let x = norm.apply_on_cpu(x);
    gated_matmul::cpu(x, gate, up, delta, activation, variant)
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
