//! Experts' matrices times the inputs of many pairs, one tile of pairs of the same expert at a time:
//! `out = weights * x`.

use burn::backend::flex::FlexTensor;
use burn::{
    backend::{
        Backend, Cube, Dispatch, ExtensionType, Flex, TensorMetadata,
        tensor::{FloatTensor, IntTensor},
    },
    tensor::{Int, Tensor},
};
use burn_wgpu::CubeTensor;

use super::{
    cpu, group_experts,
    matrix::{Matrix, MatrixShape, MatrixTensors},
    op::{op, output, twin_output},
    store::Store,
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
    pub(super) rows: usize,
    pub(super) groups: IntTensor<B>,
    pub(super) variant: Variant,
}

op! {
    fn expert_matmul(Arguments) -> FloatTensor<Self>
}

/// `x` is `[pairs, cols]`, `groups` the result of [`group_experts::group_experts`] for their experts.
/// `weights` has `rows` rows per expert. Returns `[pairs, rows]`.
pub fn expert_matmul(
    x: Tensor<2>,
    weights: &Matrix,
    rows: usize,
    groups: Tensor<2, Int>,
    variant: Variant,
) -> Tensor<2> {
    Tensor::from_dispatch(Dispatch::expert_matmul(Arguments {
        x: x.into_dispatch(),
        weights: weights.to_dispatch(),
        rows,
        groups: groups.into_dispatch(),
        variant,
    }))
}

/// The composed kernel. `weights` has the size of one expert's matrix.
pub fn kernel(weights: MatrixShape, variant: Variant) -> Kernel {
    let kernel = Kernel::new(format!("expert_matmul_{}", weights.ty.lowercase_name()));
    let kernel =
        group_experts::tile_modules(weights.constants(kernel), 1, 1, variant).binding("out");
    let kernel = weights.bindings(kernel, "weights");
    Store::default().rows(kernel.module(weights.ty.wgsl()))
}

pub(super) fn launch(args: Arguments<Cube>) -> CubeTensor {
    let [pairs, _] = args.x.shape().dims();
    let out = output(&args.x, [pairs, args.rows]);
    let shape = args.weights.shape.of_expert(args.rows);
    let mut buffers = vec![&args.groups, &args.x, &out];
    buffers.extend(args.weights.buffers());
    let grid = group_experts::workgroups(&args.groups, args.rows, args.variant);
    kernel(shape, args.variant).launch(&buffers, grid);
    out
}

pub(super) fn twin(args: Arguments<Flex>) -> FlexTensor {
    let [pairs, _] = args.x.shape().dims();
    let tiles = group_experts::parse(args.groups.storage());
    let out = products(args.x.storage(), 1, &args.weights, args.rows, &tiles);
    twin_output(out, [pairs, args.rows])
}

/// `[pairs, rows]` dot products of every pair's input with every row of its expert. Each block is decoded
/// once per tile. `pairs_per_input` neighbouring pairs have the same input.
pub(super) fn products(
    x: &[f32],
    pairs_per_input: usize,
    weights: &MatrixTensors<Flex>,
    rows: usize,
    tiles: &[(usize, Vec<usize>)],
) -> Vec<f32> {
    if weights.is_panels() {
        return products_on_cpu(x, pairs_per_input, weights, rows, tiles);
    }
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

/// Same as [`products`], by the kernels of the CPU device.
fn products_on_cpu(
    x: &[f32],
    pairs_per_input: usize,
    weights: &MatrixTensors<Flex>,
    rows: usize,
    tiles: &[(usize, Vec<usize>)],
) -> Vec<f32> {
    let cols = weights.shape.cols;
    let mut out = vec![0.0; x.len() / cols * pairs_per_input * rows];
    let mut inputs = Vec::new();
    for (expert, pairs) in tiles {
        inputs.clear();
        for pair in pairs {
            inputs.extend_from_slice(&x[pair / pairs_per_input * cols..][..cols]);
        }
        let products = cpu::products(&inputs, weights, expert * rows..(expert + 1) * rows);
        for (pair, products) in pairs.iter().zip(products.chunks_exact(rows)) {
            out[pair * rows..][..rows].copy_from_slice(products);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::validation::assert_valid;
    use crate::ops::test_cases::matrices;

    #[test]
    fn kernels_are_valid_wgsl() {
        let kernels = matrices().into_iter();
        assert_valid(kernels.map(|(shape, variant)| kernel(shape, variant)));
    }
}
