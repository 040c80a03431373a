//! The gated half of a feed-forward layer for many tokens: `act(x * gate^T) * (x * up^T)`.

use burn::backend::flex::FlexTensor;
use burn::{
    backend::{Backend, Cube, Dispatch, ExtensionType, Flex, TensorMetadata, tensor::FloatTensor},
    tensor::Tensor,
};
use burn_wgpu::CubeTensor;
use inpage_cpu::lanes::activation::{Activation, gated};

use super::{
    arithmetic::Arithmetic,
    matmul,
    matrix::{Matrix, MatrixShape, MatrixTensors},
    op::{Maybe, op, output, twin_output},
    store::Store,
    tile,
    variant::Variant,
};
use crate::kernel::{Kernel, wgsl};

/// The arguments of the op.
#[derive(ExtensionType)]
pub(super) struct Arguments<B: Backend> {
    pub(super) x: FloatTensor<B>,
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
    fn gated_matmul(Arguments) -> FloatTensor<Self>
}

/// The addend of the products with gate and with up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Added {
    /// Nothing.
    Nothing,
    /// A row for all tokens: biases.
    ToAll,
    /// A row per token: the adapters' output.
    ToEach,
    /// A row per expert: their biases.
    ToExperts,
}

impl Added {
    /// How the biases of experts, if they have some, are added.
    pub(super) fn of_experts<B: Backend>(biases: &Maybe<B>) -> Added {
        match biases.as_ref() {
            Some(_) => Added::ToExperts,
            None => Added::Nothing,
        }
    }

    /// How a tensor of `rows` rows, if there is one, is added in a step of `tokens`.
    pub(super) fn of(rows: Option<usize>, tokens: usize) -> Added {
        match rows {
            None => Added::Nothing,
            Some(rows) if rows == tokens => Added::ToEach,
            Some(rows) => {
                assert_eq!(rows, 1, "rows that are added to {tokens} tokens");
                Added::ToAll
            }
        }
    }
}

/// `x` is `[tokens, cols]`, `delta` as in `gated_matvec`. Returns `[tokens, rows]`.
pub fn gated_matmul(
    x: Tensor<2>,
    gate: &Matrix,
    up: &Matrix,
    delta: Option<Tensor<2>>,
    activation: Activation,
    variant: Variant,
) -> Tensor<2> {
    Tensor::from_dispatch(Dispatch::gated_matmul(Arguments {
        x: x.into_dispatch(),
        gate: gate.to_dispatch(),
        up: up.to_dispatch(),
        delta: delta.into(),
        activation,
        variant,
    }))
}

/// The composed kernel for steps of `tokens`. `gate` and `up` have equal sizes; their formats may differ.
pub fn kernel(
    gate: MatrixShape,
    up: MatrixShape,
    added: Added,
    activation: Activation,
    tokens: usize,
    variant: Variant,
) -> Kernel {
    let kernel = Kernel::new(format!("gated_matmul_{}", gate.ty.lowercase_name()))
        .binding("x")
        .binding("out");
    let arithmetic = tile::arithmetic(&[gate.ty, up.ty], variant);
    let kernel = matrices(gate.constants(kernel), gate, up, arithmetic);
    let kernel = rows(kernel, added, activation);
    tile::modules(kernel, tokens, &[gate, up], arithmetic, variant)
}

/// Declares the bindings of both matrices and adds their modules.
pub(super) fn matrices(
    mut kernel: Kernel,
    gate: MatrixShape,
    up: MatrixShape,
    arithmetic: Arithmetic,
) -> Kernel {
    for (shape, name) in [(gate, "gate"), (up, "up")] {
        let module = arithmetic.weights(shape.ty);
        kernel = shape.bindings(kernel, name).instance(module, name);
    }
    kernel
}

/// Adds the modules of rows that join those of gate and up. Declares the binding of `delta`, if something is
/// added.
pub(super) fn rows(kernel: Kernel, added: Added, activation: Activation) -> Kernel {
    let kernel = match added {
        Added::Nothing => kernel.module(wgsl!("shared/gated/plain")),
        Added::ToAll => kernel.binding("delta").module(wgsl!("shared/gated/biased")),
        Added::ToEach => kernel.binding("delta").module(wgsl!("shared/gated/delta")),
        Added::ToExperts => kernel
            .binding("delta")
            .module(wgsl!("shared/gated/expert_biased")),
    };
    Store::default()
        .modules(kernel)
        .module(activation.wgsl())
        .alias("Sum", "vec2<f32>")
        .module(wgsl!("shared/rows/gated"))
}

pub(super) fn launch(args: Arguments<Cube>) -> CubeTensor {
    let [tokens, _] = args.x.shape().dims();
    let rows = args.gate.shape.rows;
    let out = output(&args.x, [tokens, rows]);
    let mut buffers = vec![&args.x, &out];
    buffers.extend(args.gate.buffers().chain(args.up.buffers()));
    buffers.extend(args.delta.as_ref());
    let added = Added::of(
        args.delta.as_ref().map(|it| it.shape().dims::<2>()[0]),
        tokens,
    );
    kernel(
        args.gate.shape,
        args.up.shape,
        added,
        args.activation,
        tokens,
        args.variant,
    )
    .launch(&buffers, tile::workgroups(tokens, 2 * rows, args.variant));
    out
}

pub(super) fn twin(args: Arguments<Flex>) -> FlexTensor {
    let arithmetic = tile::arithmetic(&[args.gate.shape.ty, args.up.shape.ty], args.variant);
    let matrices = [&args.gate, &args.up];
    products(args.x, matrices, args.delta, args.activation, arithmetic)
}

/// `act(x * gate^T) * (x * up^T)`: the CPU twin in a given arithmetic or, for matrices of panels, on the CPU device.
pub(super) fn products(
    x: FlexTensor,
    [gate, up]: [&MatrixTensors<Flex>; 2],
    delta: Maybe<Flex>,
    activation: Activation,
    arithmetic: Arithmetic,
) -> FlexTensor {
    let [tokens, _] = x.shape().dims();
    let rows = gate.shape.rows;
    let mut gates = matmul::products(x.storage(), gate, arithmetic);
    let mut ups = matmul::products(x.storage(), up, arithmetic);
    add_delta(&mut gates, &mut ups, &delta, rows);
    let out = joined(gates, &ups, activation, gate.is_panels());
    twin_output(out, [tokens, rows])
}

/// `act(gates) * ups`, by the twin or by the kernels of the CPU device.
pub(super) fn joined(
    mut gates: Vec<f32>,
    ups: &[f32],
    activation: Activation,
    is_on_cpu: bool,
) -> Vec<f32> {
    if is_on_cpu {
        let mut out = vec![0.0; gates.len()];
        gated(&gates, ups, activation, &mut out);
        return out;
    }
    for (gate, up) in gates.iter_mut().zip(ups) {
        *gate = activation.apply(*gate) * activation.other_half(*up);
    }
    gates
}

/// Adds `[tokens, 2 * rows]` or, to those of each token, `[1, 2 * rows]` to the products with gate and with up.
fn add_delta(gates: &mut [f32], ups: &mut [f32], delta: &Maybe<Flex>, rows: usize) {
    let Some(delta) = delta.as_ref() else {
        return;
    };
    let outputs = gates.chunks_exact_mut(rows).zip(ups.chunks_exact_mut(rows));
    // A single row repeats; one per token does not come to its end.
    let deltas = delta.storage::<f32>().chunks_exact(2 * rows).cycle();
    for ((gates, ups), delta) in outputs.zip(deltas) {
        gates.iter_mut().zip(delta).for_each(|(g, d)| *g += d);
        ups.iter_mut()
            .zip(&delta[rows..])
            .for_each(|(u, d)| *u += d);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::validation::assert_valid;
    use crate::ops::test_cases::matrices;

    #[test]
    fn kernels_are_valid_wgsl() {
        for (shape, variant) in matrices() {
            for tokens in [16, 256] {
                assert_valid([Added::Nothing, Added::ToAll, Added::ToEach].map(|added| {
                    kernel(shape, shape, added, Activation::QuickGelu, tokens, variant)
                }));
            }
        }
    }
}
