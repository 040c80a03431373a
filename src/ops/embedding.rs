//! Rows of a (quantized) table by token id: `out[token] = scale * table[ids[token]]`.

use burn::backend::flex::FlexTensor;
use burn::{
    backend::{
        Cube, Dispatch, Flex, TensorMetadata,
        tensor::{FloatTensor, IntTensor},
    },
    tensor::{Int, Tensor},
};
use burn_wgpu::CubeTensor;

use super::{
    matrix::{Matrix, MatrixShape, MatrixTensors},
    op::{op, output, twin_output},
};
use crate::kernel::{Kernel, grid, wgsl};
use crate::tensor_types::BLOCK_COLS;

op! {
    cpu if (table.is_panels());
    fn embedding(
        ids: IntTensor<Self>,
        #[extension_type] table: MatrixTensors<Self>,
        scale: f32,
    ) -> FloatTensor<Self>
}

const WORKGROUP: usize = 64;

/// The rows of `table` for `ids` `[tokens]`, times `scale`: `[tokens, cols]`.
pub fn embedding(ids: Tensor<1, Int>, table: &Matrix, scale: f32) -> Tensor<2> {
    Tensor::from_dispatch(Dispatch::embedding(
        ids.into_dispatch(),
        table.to_dispatch(),
        scale,
    ))
}

/// The composed kernel.
pub fn kernel(table: MatrixShape, scale: f32) -> Kernel {
    let kernel = Kernel::new(format!("embedding_{}", table.ty.lowercase_name()))
        .binding("ids")
        .binding("out");
    table
        .constants(table.bindings(kernel, "weights"))
        .constant_f32("SCALE", scale)
        .constant("WORKGROUP", WORKGROUP)
        .module(table.ty.wgsl())
        .module(wgsl!("embedding"))
}

pub(super) fn launch(ids: CubeTensor, table: MatrixTensors<Cube>, scale: f32) -> CubeTensor {
    let tokens = ids.shape().num_elements();
    let shape = table.shape;
    let out = output(&ids, [tokens, shape.cols]);
    let mut buffers = vec![&ids, &out];
    buffers.extend(table.buffers());
    let workgroups = (tokens * shape.row_blocks()).div_ceil(WORKGROUP);
    kernel(shape, scale).launch(&buffers, grid(workgroups));
    out
}

pub(super) fn twin(ids: FlexTensor, table: MatrixTensors<Flex>, scale: f32) -> FlexTensor {
    let shape = table.shape;
    let (quants, scales) = (table.quants.storage::<u32>(), table.scales.storage::<u32>());
    let mut out = Vec::with_capacity(ids.shape().num_elements() * shape.cols);
    for &id in ids.storage::<u32>() {
        let row = (id as usize).min(shape.rows - 1);
        let from = out.len();
        for block in 0..shape.row_blocks() {
            out.extend(shape.ty.decode_kernel_block(
                quants,
                scales,
                row * shape.row_blocks() + block,
            ));
        }
        debug_assert_eq!(out.len() - from, shape.row_blocks() * BLOCK_COLS);
        out.truncate(from + shape.cols);
    }
    out.iter_mut().for_each(|value| *value *= scale);
    let tokens = ids.shape().num_elements();
    twin_output(out, [tokens, shape.cols])
}

pub(super) fn cpu(ids: FlexTensor, table: MatrixTensors<Flex>, scale: f32) -> FlexTensor {
    let (rows, cols) = (table.shape.rows, table.shape.cols);
    let ids = ids.storage::<u32>();
    let mut out = vec![0.0; ids.len() * cols];
    for (&id, out) in ids.iter().zip(out.chunks_exact_mut(cols)) {
        table.row((id as usize).min(rows - 1), out);
        out.iter_mut().for_each(|value| *value *= scale);
    }
    twin_output(out, [ids.len(), cols])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::validation::assert_valid;
    use crate::ops::test_cases::matrices;

    #[test]
    fn kernels_are_valid_wgsl() {
        assert_valid(matrices().into_iter().map(|(shape, _)| kernel(shape, 1.0)));
    }
}
