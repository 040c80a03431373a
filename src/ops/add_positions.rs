//! Learned positions: adds the row of a (quantized) table that belongs to each token's position.

use burn::backend::flex::FlexTensor;
use burn::{
    backend::{Cube, Dispatch, Flex, TensorMetadata},
    tensor::Tensor,
};
use burn_wgpu::CubeTensor;

use super::{
    backend::{MatrixTensors, Ops, output, twin_output},
    kernel::{Kernel, grid},
    matrix::{Matrix, MatrixShape},
    shader,
    step::{self, Step},
};

const WORKGROUP: usize = 64;

/// `x` `[tokens, cols]` plus the rows of `table` `[positions, cols]` for the step's tokens. Rows of
/// padding are left as they are.
pub fn add_positions(x: Tensor<2>, table: &Matrix, step: &Step) -> Tensor<2> {
    Tensor::from_dispatch(Dispatch::add_positions(
        x.into_dispatch(),
        table.to_dispatch(),
        step.words().into_dispatch(),
    ))
}

/// The composed kernel.
pub fn kernel(table: MatrixShape) -> Kernel {
    let kernel = Kernel::new(format!("add_positions_{}", table.ty.lowercase_name()))
        .binding("x")
        .binding("out")
        .binding("step")
        .binding("weights_quants");
    let kernel = match table.ty.has_scales() {
        true => kernel.binding("weights_scales"),
        false => kernel,
    };
    let kernel = kernel
        .constant("ROWS", table.rows)
        .constant("COLS", table.cols)
        .constant("BLOCKS", table.row_blocks())
        // The KV memory, of which the step's module speaks too, is not touched.
        .constant("KV_DIM", 0)
        .constant("WORKGROUP", WORKGROUP);
    step::layout(kernel)
        .module(shader::STEP)
        .module(table.ty.wgsl())
        .module(shader::kernel::ADD_POSITIONS)
}

pub(super) fn launch(x: CubeTensor, table: MatrixTensors<Cube>, step: CubeTensor) -> CubeTensor {
    let [tokens, cols] = x.shape().dims();
    let shape = table.shape;
    let out = output(&x, [tokens, cols]);
    let mut buffers = vec![&x, &out, &step, &table.quants];
    if shape.ty.has_scales() {
        buffers.push(&table.scales);
    }
    let workgroups = (tokens * shape.row_blocks()).div_ceil(WORKGROUP);
    kernel(shape).launch(&buffers, grid(workgroups));
    out
}

pub(super) fn twin(x: FlexTensor, table: MatrixTensors<Flex>, step: FlexTensor) -> FlexTensor {
    let [tokens, cols] = x.shape().dims();
    let shape = table.shape;
    let (quants, scales) = (table.quants.storage::<u32>(), table.scales.storage::<u32>());
    let words = step.storage::<u32>();
    let mut out = x.storage::<f32>().to_vec();
    for (token, out) in out.chunks_exact_mut(cols).enumerate() {
        if token >= words[step::TOKENS] as usize {
            break;
        }
        let first = step::row_position(words, token).min(shape.rows - 1) * shape.row_blocks();
        let blocks = (first..first + shape.row_blocks())
            .flat_map(|block| shape.ty.decode_kernel_block(quants, scales, block));
        out.iter_mut().zip(blocks).for_each(|(out, v)| *out += v);
    }
    twin_output(out, [tokens, cols])
}
