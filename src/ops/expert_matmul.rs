//! Matrices of experts times the inputs of many pairs, a tile of pairs of one expert at a time:
//! `out = weights * x`.

use burn::backend::flex::FlexTensor;
use burn::{
    backend::{Cube, Dispatch, Flex, TensorMetadata},
    tensor::{Int, Tensor},
};
use burn_wgpu::CubeTensor;

use super::{
    Variant,
    backend::{MatrixTensors, Ops, output, twin_output},
    group_experts,
    kernel::Kernel,
    matrix::{Matrix, MatrixShape},
    shader,
    store::Store,
};
use crate::tensor_types::BLOCK_COLS;

/// `x` is `[pairs, cols]`, `groups` what [`group_experts::group_experts`] makes of their experts;
/// `weights` has `rows` for each expert. Gives `[pairs, rows]`.
pub fn expert_matmul(
    x: Tensor<2>,
    weights: &Matrix,
    rows: usize,
    groups: Tensor<2, Int>,
    variant: Variant,
) -> Tensor<2> {
    Tensor::from_dispatch(Dispatch::expert_matmul(
        x.into_dispatch(),
        weights.to_dispatch(),
        rows,
        groups.into_dispatch(),
        variant,
    ))
}

/// The composed kernel; `weights` are an expert's.
pub fn kernel(weights: MatrixShape, variant: Variant) -> Kernel {
    let kernel = Kernel::new(format!("expert_matmul_{}", weights.ty.lowercase_name()))
        .constant("ROWS", weights.rows)
        .constant("COLS", weights.cols)
        .constant("BLOCKS", weights.row_blocks());
    let mut kernel = group_experts::tile_modules(kernel, 1, variant)
        .binding("out")
        .binding("weights_quants");
    if weights.ty.has_scales() {
        kernel = kernel.binding("weights_scales");
    }
    Store::default()
        .modules(kernel.module(weights.ty.wgsl()))
        .module(if variant.barrier_free {
            shader::kernel::EXPERT_MATMUL_LANES
        } else {
            shader::kernel::EXPERT_MATMUL
        })
}

pub(super) fn launch(
    x: CubeTensor,
    weights: MatrixTensors<Cube>,
    rows: usize,
    groups: CubeTensor,
    variant: Variant,
) -> CubeTensor {
    let [pairs, _] = x.shape().dims();
    let out = output(&x, [pairs, rows]);
    let shape = MatrixShape {
        rows,
        ..weights.shape
    };
    let mut buffers = vec![&groups, &x, &out, &weights.quants];
    if shape.ty.has_scales() {
        buffers.push(&weights.scales);
    }
    let grid = group_experts::workgroups(&groups, rows, variant);
    kernel(shape, variant).launch(&buffers, grid);
    out
}

pub(super) fn twin(
    x: FlexTensor,
    weights: MatrixTensors<Flex>,
    rows: usize,
    groups: FlexTensor,
    _variant: Variant,
) -> FlexTensor {
    let [pairs, _] = x.shape().dims();
    let tiles = group_experts::parse(groups.storage());
    let out = products(x.storage(), 1, &weights, rows, &tiles);
    twin_output(out, [pairs, rows])
}

/// `[pairs, rows]` dot products of every pair's input with every row of its expert, each block
/// decoded once per tile. `pairs_per_input` neighbouring pairs have the same input.
pub(super) fn products(
    x: &[f32],
    pairs_per_input: usize,
    weights: &MatrixTensors<Flex>,
    rows: usize,
    tiles: &[(usize, Vec<usize>)],
) -> Vec<f32> {
    let MatrixShape { ty, cols, .. } = weights.shape;
    let blocks = weights.shape.row_blocks();
    let (quants, scales) = (
        weights.quants.storage::<u32>(),
        weights.scales.storage::<u32>(),
    );
    let mut out = vec![0.0; x.len() / cols * pairs_per_input * rows];
    for (expert, pairs) in tiles {
        for row in 0..rows {
            for block in 0..blocks {
                let at = (expert * rows + row) * blocks + block;
                let values = ty.decode_kernel_block(quants, scales, at);
                let from = block * BLOCK_COLS;
                let to = (from + BLOCK_COLS).min(cols);
                for pair in pairs {
                    let input = pair / pairs_per_input * cols;
                    let inputs = &x[input + from..input + to];
                    out[pair * rows + row] +=
                        inputs.iter().zip(&values).map(|(a, b)| a * b).sum::<f32>();
                }
            }
        }
    }
    out
}
