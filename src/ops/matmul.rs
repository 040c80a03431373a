//! Matrix times many tokens' vectors, for prefill: `out = finish(x * weights^T + bias + delta) + residual`.
//! Tiles lie in workgroup memory or, where barriers are dear, in the registers of single lanes.

use burn::backend::flex::FlexTensor;
use burn::{
    backend::{Cube, Dispatch, Flex, TensorMetadata},
    tensor::Tensor,
};
use burn_wgpu::CubeTensor;

use super::{
    Arithmetic, Variant,
    backend::{MatrixTensors, Maybe, Ops, maybe, output, twin_output},
    kernel::Kernel,
    matrix::{Matrix, MatrixShape},
    shader,
    store::{Addends, Finish, Store},
    tile::{arithmetic, tiles, workgroups},
};
use crate::tensor_types::BLOCK_COLS;

/// `x` is `[tokens, cols]`; gives `[tokens, rows]`.
pub fn matmul(
    x: Tensor<2>,
    weights: &Matrix,
    addends: Addends,
    finish: Finish,
    variant: Variant,
) -> Tensor<2> {
    Tensor::from_dispatch(Dispatch::matmul(
        x.into_dispatch(),
        weights.to_dispatch(),
        maybe(addends.bias),
        maybe(addends.delta),
        finish,
        maybe(addends.residual),
        variant,
    ))
}

/// The composed kernel for steps of `tokens`.
pub fn kernel(weights: MatrixShape, tokens: usize, store: Store, variant: Variant) -> Kernel {
    let arithmetic = arithmetic(&[weights.ty], variant);
    let mut kernel = Kernel::new(format!("matmul_{}", weights.ty.lowercase_name()))
        .binding("x")
        .binding("out")
        .binding("weights_quants");
    if weights.ty.has_scales() {
        kernel = kernel.binding("weights_scales");
    }
    let kernel = store
        .modules(kernel)
        .constant("ROWS", weights.rows)
        .constant("COLS", weights.cols)
        .constant("BLOCKS", weights.row_blocks())
        .module(arithmetic.weights(weights.ty));
    tiles(kernel, [tokens, weights.rows], arithmetic, variant).module(if variant.barrier_free {
        shader::kernel::MATMUL_LANES
    } else {
        shader::kernel::MATMUL
    })
}

pub(super) fn launch(
    x: CubeTensor,
    weights: MatrixTensors<Cube>,
    bias: Maybe<Cube>,
    delta: Maybe<Cube>,
    finish: Finish,
    residual: Maybe<Cube>,
    variant: Variant,
) -> CubeTensor {
    let [tokens, _] = x.shape().dims();
    let shape = weights.shape;
    let out = output(&x, [tokens, shape.rows]);
    let (bias, delta, residual) = (bias.as_ref(), delta.as_ref(), residual.as_ref());
    let mut buffers = vec![&x, &out, &weights.quants];
    if shape.ty.has_scales() {
        buffers.push(&weights.scales);
    }
    buffers.extend([bias, delta, residual].into_iter().flatten());
    let store = Store {
        bias: bias.is_some(),
        delta: delta.is_some(),
        finish,
        residual: residual.is_some(),
    };
    kernel(shape, tokens, store, variant).launch(&buffers, workgroups(tokens, shape.rows, variant));
    out
}

pub(super) fn twin(
    x: FlexTensor,
    weights: MatrixTensors<Flex>,
    bias: Maybe<Flex>,
    delta: Maybe<Flex>,
    finish: Finish,
    residual: Maybe<Flex>,
    variant: Variant,
) -> FlexTensor {
    let arithmetic = arithmetic(&[weights.shape.ty], variant);
    sums(x, &weights, bias, delta, finish, residual, arithmetic)
}

/// The twin in a given arithmetic.
pub(super) fn sums(
    x: FlexTensor,
    weights: &MatrixTensors<Flex>,
    bias: Maybe<Flex>,
    delta: Maybe<Flex>,
    finish: Finish,
    residual: Maybe<Flex>,
    arithmetic: Arithmetic,
) -> FlexTensor {
    let [tokens, cols] = x.shape().dims();
    let rows = weights.shape.rows;
    let mut out = products(&arithmetic.rounded(x.storage(), cols), weights);
    if let Some(bias) = bias.as_ref() {
        for row in out.chunks_exact_mut(rows) {
            row.iter_mut()
                .zip(bias.storage::<f32>())
                .for_each(|(o, b)| *o += b);
        }
    }
    let add = |out: &mut [f32], addend: &Maybe<Flex>| {
        if let Some(addend) = addend.as_ref() {
            out.iter_mut()
                .zip(addend.storage::<f32>())
                .for_each(|(o, a)| *o += a);
        }
    };
    add(&mut out, &delta);
    out.iter_mut().for_each(|o| *o = finish.apply(*o));
    add(&mut out, &residual);
    twin_output(out, [tokens, rows])
}

/// `[tokens, rows]` dot products of every token with every row, each block decoded once.
pub(super) fn products(x: &[f32], weights: &MatrixTensors<Flex>) -> Vec<f32> {
    let MatrixShape { ty, rows, cols } = weights.shape;
    let blocks = weights.shape.row_blocks();
    let (quants, scales) = (
        weights.quants.storage::<u32>(),
        weights.scales.storage::<u32>(),
    );
    let tokens = x.len() / cols;
    let mut out = vec![0.0; tokens * rows];
    for row in 0..rows {
        for block in 0..blocks {
            let values = ty.decode_kernel_block(quants, scales, row * blocks + block);
            let from = block * BLOCK_COLS;
            let to = (from + BLOCK_COLS).min(cols);
            for token in 0..tokens {
                let inputs = &x[token * cols + from..token * cols + to];
                out[token * rows + row] +=
                    inputs.iter().zip(&values).map(|(a, b)| a * b).sum::<f32>();
            }
        }
    }
    out
}
