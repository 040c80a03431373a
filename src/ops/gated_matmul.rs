//! The gated half of a feed-forward layer for many tokens: `act(x * gate^T) * (x * up^T)`.

use burn::backend::flex::FlexTensor;
use burn::{
    backend::{Cube, Dispatch, Flex, TensorMetadata},
    tensor::Tensor,
};
use burn_wgpu::CubeTensor;

use super::{
    Activation, Arithmetic, Variant,
    backend::{MatrixTensors, Maybe, Ops, maybe, output, twin_output},
    kernel::Kernel,
    matmul,
    matrix::{Matrix, MatrixShape},
    shader,
    store::Store,
    tile::{arithmetic, tiles, workgroups},
};

/// `x` is `[tokens, cols]`, `delta` as in `gated_matvec`; gives `[tokens, rows]`.
pub fn gated_matmul(
    x: Tensor<2>,
    gate: &Matrix,
    up: &Matrix,
    delta: Option<Tensor<2>>,
    activation: Activation,
    variant: Variant,
) -> Tensor<2> {
    Tensor::from_dispatch(Dispatch::gated_matmul(
        x.into_dispatch(),
        gate.to_dispatch(),
        up.to_dispatch(),
        maybe(delta),
        activation,
        variant,
    ))
}

/// The composed kernel for steps of `tokens`; `gate` and `up` have equal sizes, formats may differ.
pub fn kernel(
    gate: MatrixShape,
    up: MatrixShape,
    delta: bool,
    activation: Activation,
    tokens: usize,
    variant: Variant,
) -> Kernel {
    let kernel = Kernel::new(format!("gated_matmul_{}", gate.ty.lowercase_name()))
        .binding("x")
        .binding("out")
        .constant("ROWS", gate.rows)
        .constant("COLS", gate.cols)
        .constant("BLOCKS", gate.row_blocks());
    let arithmetic = arithmetic(&[gate.ty, up.ty], variant);
    let kernel = matrices(kernel, gate, up, arithmetic);
    let kernel = gate_and_store(kernel, delta, activation);
    tiles(kernel, [tokens, 2 * gate.rows], arithmetic, variant).module(if variant.barrier_free {
        shader::kernel::GATED_MATMUL_LANES
    } else {
        shader::kernel::GATED_MATMUL
    })
}

/// Declares the bindings of both matrices and adds their modules.
pub(super) fn matrices(
    mut kernel: Kernel,
    gate: MatrixShape,
    up: MatrixShape,
    arithmetic: Arithmetic,
) -> Kernel {
    for (shape, name) in [(gate, "gate"), (up, "up")] {
        kernel = kernel.binding(&format!("{name}_quants"));
        if shape.ty.has_scales() {
            kernel = kernel.binding(&format!("{name}_scales"));
        }
        kernel = kernel.instance(arithmetic.weights(shape.ty), name);
    }
    kernel
}

/// Adds the modules of what the products come to; declares the binding of `delta`, if there is one.
pub(super) fn gate_and_store(kernel: Kernel, delta: bool, activation: Activation) -> Kernel {
    let kernel = match delta {
        true => kernel.binding("delta").module(shader::gated::DELTA),
        false => kernel.module(shader::gated::PLAIN),
    };
    Store::default().modules(kernel).module(activation.wgsl())
}

/// Appends the buffers of both matrices in the order of [`matrices`].
pub(super) fn push_matrices<'a>(
    buffers: &mut Vec<&'a CubeTensor>,
    gate: &'a MatrixTensors<Cube>,
    up: &'a MatrixTensors<Cube>,
) {
    for matrix in [gate, up] {
        buffers.push(&matrix.quants);
        if matrix.shape.ty.has_scales() {
            buffers.push(&matrix.scales);
        }
    }
}

pub(super) fn launch(
    x: CubeTensor,
    gate: MatrixTensors<Cube>,
    up: MatrixTensors<Cube>,
    delta: Maybe<Cube>,
    activation: Activation,
    variant: Variant,
) -> CubeTensor {
    let [tokens, _] = x.shape().dims();
    let rows = gate.shape.rows;
    let out = output(&x, [tokens, rows]);
    let mut buffers = vec![&x, &out];
    push_matrices(&mut buffers, &gate, &up);
    buffers.extend(delta.as_ref());
    let has_delta = delta.as_ref().is_some();
    kernel(gate.shape, up.shape, has_delta, activation, tokens, variant)
        .launch(&buffers, workgroups(tokens, 2 * rows, variant));
    out
}

pub(super) fn twin(
    x: FlexTensor,
    gate: MatrixTensors<Flex>,
    up: MatrixTensors<Flex>,
    delta: Maybe<Flex>,
    activation: Activation,
    variant: Variant,
) -> FlexTensor {
    let arithmetic = arithmetic(&[gate.shape.ty, up.shape.ty], variant);
    sums(x, &gate, &up, delta, activation, arithmetic)
}

/// The twin in a given arithmetic.
pub(super) fn sums(
    x: FlexTensor,
    gate: &MatrixTensors<Flex>,
    up: &MatrixTensors<Flex>,
    delta: Maybe<Flex>,
    activation: Activation,
    arithmetic: Arithmetic,
) -> FlexTensor {
    let [tokens, cols] = x.shape().dims();
    let x = arithmetic.rounded(x.storage(), cols);
    let mut out = matmul::products(&x, gate);
    let mut ups = matmul::products(&x, up);
    if let Some(delta) = delta.as_ref() {
        let rows = gate.shape.rows;
        let outputs = out.chunks_exact_mut(rows).zip(ups.chunks_exact_mut(rows));
        let deltas = delta.storage::<f32>().chunks_exact(2 * rows);
        for ((gates, ups), delta) in outputs.zip(deltas) {
            gates.iter_mut().zip(delta).for_each(|(g, d)| *g += d);
            ups.iter_mut()
                .zip(&delta[rows..])
                .for_each(|(u, d)| *u += d);
        }
    }
    out.iter_mut()
        .zip(ups)
        .for_each(|(gate, up)| *gate = activation.apply(*gate) * up);
    twin_output(out, [tokens, gate.shape.rows])
}
