//! Rows of a (quantized) table by token id: `out[token] = scale * table[ids[token]]`.

use super::{
    matrix::{Matrix, MatrixShape, MatrixTensors},
    op::*,
};
use crate::kernel::{Kernel, grid, wgsl};
use crate::tensor_types::BLOCK_COLS;

/// The arguments of the op.
#[derive(ExtensionType)]
pub(super) struct Arguments<B: Backend> {
    pub(super) ids: IntTensor<B>,
    #[extension_type]
    pub(super) table: MatrixTensors<B>,
    pub(super) scale: f32,
}

op! {
    cpu if (|it| it.table.is_panels());
    fn embedding(Arguments) -> FloatTensor<Self>
}

const WORKGROUP: usize = 64;

/// The rows of `table` for `ids` `[tokens]`, times `scale`: `[tokens, cols]`.
pub fn embedding(ids: Tensor<1, Int>, table: &Matrix, scale: f32) -> Tensor<2> {
    Tensor::from_dispatch(Dispatch::embedding(Arguments {
        ids: ids.into_dispatch(),
        table: table.to_dispatch(),
        scale,
    }))
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
        .modules(table.ty.wgsl())
        .module(wgsl!("embedding"))
}

pub(super) fn launch(args: Arguments<Cube>) -> CubeTensor {
    let tokens = args.ids.shape().num_elements();
    let shape = args.table.shape;
    let out = output(&args.ids, [tokens, shape.cols]);
    let mut buffers = vec![&args.ids, &out];
    buffers.extend(args.table.buffers());
    let workgroups = (tokens * shape.row_blocks()).div_ceil(WORKGROUP);
    kernel(shape, args.scale).launch(&buffers, grid(workgroups));
    out
}

pub(super) fn twin(args: Arguments<Flex>) -> FlexTensor {
    let shape = args.table.shape;
    let (quants, scales) = (
        args.table.quants.storage::<u32>(),
        args.table.scales.storage::<u32>(),
    );
    let mut out = Vec::with_capacity(args.ids.shape().num_elements() * shape.cols);
    for &id in args.ids.storage::<u32>() {
        let row = (id as usize).min(shape.rows - 1);
        let from = out.len();
        for block in 0..shape.row_blocks() {
            let block = row * shape.row_blocks() + block;
            out.extend(shape.decode_block(quants, scales, block));
        }
        debug_assert_eq!(out.len() - from, shape.row_blocks() * BLOCK_COLS);
        out.truncate(from + shape.cols);
    }
    out.iter_mut().for_each(|value| *value *= args.scale);
    let tokens = args.ids.shape().num_elements();
    twin_output(out, [tokens, shape.cols])
}

pub(super) fn cpu(args: Arguments<Flex>) -> FlexTensor {
    let Arguments { ids, .. } = args;
    let (rows, cols) = (args.table.shape.rows, args.table.shape.cols);
    let ids = ids.storage::<u32>();
    let mut out = vec![0.0; ids.len() * cols];
    for (&id, out) in ids.iter().zip(out.chunks_exact_mut(cols)) {
        args.table.row((id as usize).min(rows - 1), out);
        out.iter_mut().for_each(|value| *value *= args.scale);
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
