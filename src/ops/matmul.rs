//! Matrix times the vectors of many tokens, for prefill:
//! `out = finish(x * weights^T + bias + delta) + residual`. Tiles are in workgroup memory or, where barriers
//! are expensive, in the registers of single lanes.

use burn::backend::flex::FlexTensor;
use burn::{
    backend::{Backend, Cube, Dispatch, ExtensionType, Flex, TensorMetadata, tensor::FloatTensor},
    tensor::Tensor,
};
use burn_wgpu::CubeTensor;

use super::{
    arithmetic::Arithmetic,
    cpu,
    matrix::{Matrix, MatrixShape, MatrixTensors},
    op::{Maybe, op, output, twin_output},
    store::{AddendTensors, Addends, Finish, Store},
    tile,
    variant::Variant,
};
use crate::kernel::Kernel;
use crate::tensor_types::BLOCK_COLS;

/// The arguments of the op.
#[derive(ExtensionType)]
pub(super) struct Arguments<B: Backend> {
    pub(super) x: FloatTensor<B>,
    #[extension_type]
    pub(super) weights: MatrixTensors<B>,
    #[extension_type]
    pub(super) addends: AddendTensors<B>,
    pub(super) finish: Finish,
    pub(super) variant: Variant,
}

op! {
    fn matmul(Arguments) -> FloatTensor<Self>
}

/// `x` is `[tokens, cols]`. Returns `[tokens, rows]`.
pub fn matmul(
    x: Tensor<2>,
    weights: &Matrix,
    addends: Addends,
    finish: Finish,
    variant: Variant,
) -> Tensor<2> {
    Tensor::from_dispatch(Dispatch::matmul(Arguments {
        x: x.into_dispatch(),
        weights: weights.to_dispatch(),
        addends: addends.into(),
        finish,
        variant,
    }))
}

/// The composed kernel for steps of `tokens`.
pub fn kernel(weights: MatrixShape, tokens: usize, store: Store, variant: Variant) -> Kernel {
    let arithmetic = tile::arithmetic(&[weights.ty], variant);
    let kernel = Kernel::new(format!("matmul_{}", weights.ty.lowercase_name()))
        .binding("x")
        .binding("out");
    let kernel = store.rows(weights.bindings(kernel, "weights"));
    let kernel = weights
        .constants(kernel)
        .module(arithmetic.weights(weights.ty));
    tile::modules(kernel, tokens, &[weights], arithmetic, variant)
}

pub(super) fn launch(args: Arguments<Cube>) -> CubeTensor {
    let [tokens, _] = args.x.shape().dims();
    let shape = args.weights.shape;
    let out = output(&args.x, [tokens, shape.rows]);
    let mut buffers = vec![&args.x, &out];
    buffers.extend(args.weights.buffers());
    buffers.extend(args.addends.buffers());
    let grid = tile::workgroups(tokens, shape.rows, args.variant);
    kernel(shape, tokens, args.addends.store(args.finish), args.variant).launch(&buffers, grid);
    out
}

pub(super) fn twin(args: Arguments<Flex>) -> FlexTensor {
    let arithmetic = tile::arithmetic(&[args.weights.shape.ty], args.variant);
    finished(args.x, &args.weights, args.addends, args.finish, arithmetic)
}

/// `finish(x * weights^T + bias + delta) + residual`: the CPU twin in a given arithmetic or, for a matrix of panels, on the
/// CPU device.
pub(super) fn finished(
    x: FlexTensor,
    weights: &MatrixTensors<Flex>,
    addends: AddendTensors<Flex>,
    finish: Finish,
    arithmetic: Arithmetic,
) -> FlexTensor {
    let [tokens, _] = x.shape().dims();
    let rows = weights.shape.rows;
    let mut out = products(x.storage(), weights, arithmetic);
    if let Some(bias) = addends.bias.as_ref() {
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
    add(&mut out, &addends.delta);
    match weights.is_panels() {
        true => finish.apply_on_cpu(&mut out),
        false => out.iter_mut().for_each(|o| *o = finish.apply(*o)),
    }
    add(&mut out, &addends.residual);
    twin_output(out, [tokens, rows])
}

/// `[tokens, rows]` dot products of every token with every row. Each block is decoded once.
pub(super) fn products(
    x: &[f32],
    weights: &MatrixTensors<Flex>,
    arithmetic: Arithmetic,
) -> Vec<f32> {
    if weights.is_panels() {
        return cpu::products(x, weights, 0..weights.shape.rows);
    }
    let MatrixShape { ty, rows, cols } = weights.shape;
    let x = arithmetic.rounded(x, cols);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::validation::assert_valid;
    use crate::ops::test_cases::{matrices, stores};

    #[test]
    fn kernels_are_valid_wgsl() {
        for (shape, variant) in matrices() {
            for store in stores(shape.ty) {
                assert_valid([16, 256].map(|tokens| kernel(shape, tokens, store, variant)));
            }
        }
    }
}
