//! The gated half of a feed-forward layer for many tokens: `silu(x * gate^T) * (x * up^T)`.

use burn::backend::flex::FlexTensor;
use burn::{
    backend::{Cube, Dispatch, Flex, TensorMetadata},
    tensor::Tensor,
};
use burn_wgpu::CubeTensor;

use super::{
    Arithmetic, Variant,
    backend::{MatrixTensors, Ops, output, twin_output},
    kernel::Kernel,
    matmul,
    matrix::{Matrix, MatrixShape},
    shader,
    tile::{arithmetic, tiles, workgroups},
};

/// `x` is `[tokens, cols]`; gives `[tokens, rows]`.
pub fn gated_matmul(x: Tensor<2>, gate: &Matrix, up: &Matrix, variant: Variant) -> Tensor<2> {
    Tensor::from_dispatch(Dispatch::gated_matmul(
        x.into_dispatch(),
        gate.to_dispatch(),
        up.to_dispatch(),
        variant,
    ))
}

/// The composed kernel for steps of `tokens`; `gate` and `up` have equal sizes, formats may differ.
pub fn kernel(gate: MatrixShape, up: MatrixShape, tokens: usize, variant: Variant) -> Kernel {
    let kernel = Kernel::new(format!("gated_matmul_{}", gate.format.name()))
        .binding("x")
        .binding("out")
        .constant("ROWS", gate.rows)
        .constant("COLS", gate.cols)
        .constant("BLOCKS", gate.row_blocks());
    let arithmetic = arithmetic(&[gate.format, up.format], variant);
    let kernel = matrices(kernel, gate, up, arithmetic)
        .module(shader::store::PLAIN)
        .module(shader::SILU);
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
        if shape.format.has_scales() {
            kernel = kernel.binding(&format!("{name}_scales"));
        }
        kernel = kernel.instance(arithmetic.weights(shape.format), name);
    }
    kernel
}

/// Appends the buffers of both matrices in the order of [`matrices`].
pub(super) fn push_matrices<'a>(
    buffers: &mut Vec<&'a CubeTensor>,
    gate: &'a MatrixTensors<Cube>,
    up: &'a MatrixTensors<Cube>,
) {
    for matrix in [gate, up] {
        buffers.push(&matrix.quants);
        if matrix.shape.format.has_scales() {
            buffers.push(&matrix.scales);
        }
    }
}

pub(super) fn launch(
    x: CubeTensor,
    gate: MatrixTensors<Cube>,
    up: MatrixTensors<Cube>,
    variant: Variant,
) -> CubeTensor {
    let [tokens, _] = x.shape().dims();
    let rows = gate.shape.rows;
    let out = output(&x, [tokens, rows]);
    let mut buffers = vec![&x, &out];
    push_matrices(&mut buffers, &gate, &up);
    kernel(gate.shape, up.shape, tokens, variant)
        .launch(&buffers, workgroups(tokens, 2 * rows, variant));
    out
}

pub(super) fn twin(
    x: FlexTensor,
    gate: MatrixTensors<Flex>,
    up: MatrixTensors<Flex>,
    variant: Variant,
) -> FlexTensor {
    let arithmetic = arithmetic(&[gate.shape.format, up.shape.format], variant);
    sums(x, &gate, &up, arithmetic)
}

/// The twin in a given arithmetic.
pub(super) fn sums(
    x: FlexTensor,
    gate: &MatrixTensors<Flex>,
    up: &MatrixTensors<Flex>,
    arithmetic: Arithmetic,
) -> FlexTensor {
    let [tokens, cols] = x.shape().dims();
    let x = arithmetic.rounded(x.storage(), cols);
    let mut out = matmul::products(&x, gate);
    let ups = matmul::products(&x, up);
    out.iter_mut()
        .zip(ups)
        .for_each(|(gate, up)| *gate = *gate / (1.0 + (-*gate).exp()) * up);
    twin_output(out, [tokens, gate.shape.rows])
}
