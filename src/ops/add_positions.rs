//! Learned positions: adds to each token the row of a (quantized) table for its position.

use super::{
    matrix::{Matrix, MatrixShape, MatrixTensors},
    op::*,
    step::{self, Step},
};
use crate::kernel::{Kernel, grid, wgsl};

/// The arguments of the op.
#[derive(ExtensionType)]
pub(super) struct Arguments<B: Backend> {
    pub(super) x: FloatTensor<B>,
    #[extension_type]
    pub(super) table: MatrixTensors<B>,
    pub(super) step: IntTensor<B>,
}

op! {
    cpu if (|it| it.table.is_panels());
    fn add_positions(Arguments) -> FloatTensor<Self>
}

const WORKGROUP: usize = 64;

/// Adds to `x` `[tokens, cols]` the rows of `table` `[positions, cols]` for the step's tokens. Padding
/// rows are undefined.
pub fn add_positions(x: Tensor<2>, table: &Matrix, step: &Step) -> Tensor<2> {
    Tensor::from_dispatch(Dispatch::add_positions(Arguments {
        x: x.into_dispatch(),
        table: table.to_dispatch(),
        step: step.words().into_dispatch(),
    }))
}

/// The composed kernel.
pub fn kernel(table: MatrixShape) -> Kernel {
    let kernel = Kernel::new(format!("add_positions_{}", table.ty.lowercase_name()))
        .binding("x")
        .binding("out")
        .binding("step");
    let kernel = table
        .constants(table.bindings(kernel, "weights"))
        .constant("WORKGROUP", WORKGROUP);
    step::layout(kernel)
        .module(wgsl!("shared/step"))
        .modules(table.ty.wgsl())
        .module(wgsl!("add_positions"))
}

pub(super) fn launch(args: Arguments<Cube>) -> CubeTensor {
    let [tokens, cols] = args.x.shape().dims();
    let shape = args.table.shape;
    let out = output(&args.x, [tokens, cols]);
    let mut buffers = vec![&args.x, &out, &args.step];
    buffers.extend(args.table.buffers());
    let workgroups = (tokens * shape.row_blocks()).div_ceil(WORKGROUP);
    kernel(shape).launch(&buffers, grid(workgroups));
    out
}

pub(super) fn twin(args: Arguments<Flex>) -> FlexTensor {
    let [tokens, cols] = args.x.shape().dims();
    let shape = args.table.shape;
    let (quants, scales) = (
        args.table.quants.storage::<u32>(),
        args.table.scales.storage::<u32>(),
    );
    let words = args.step.storage::<u32>();
    let mut out = args.x.storage::<f32>().to_vec();
    for (token, out) in out.chunks_exact_mut(cols).enumerate() {
        if token >= words[step::TOKENS] as usize {
            break;
        }
        let first = step::row_position(words, token).min(shape.rows - 1) * shape.row_blocks();
        let blocks = (first..first + shape.row_blocks())
            .flat_map(|block| shape.decode_block(quants, scales, block));
        out.iter_mut().zip(blocks).for_each(|(out, v)| *out += v);
    }
    twin_output(out, [tokens, cols])
}

fn cpu(args: Arguments<Flex>) -> FlexTensor {
    let [tokens, cols] = args.x.shape().dims();
    let words = args.step.storage::<u32>();
    let mut out = args.x.storage::<f32>().to_vec();
    let mut row = vec![0.0; cols];
    let rows = out
        .chunks_exact_mut(cols)
        .take(words[step::TOKENS] as usize);
    for (token, out) in rows.enumerate() {
        let position = step::row_position(words, token).min(args.table.shape.rows - 1);
        args.table.row(position, &mut row);
        out.iter_mut().zip(&row).for_each(|(out, v)| *out += v);
    }
    twin_output(out, [tokens, cols])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::validation::assert_valid;
    use crate::ops::test_cases::matrices;

    #[test]
    fn kernels_are_valid_wgsl() {
        assert_valid(matrices().into_iter().map(|(shape, _)| kernel(shape)));
    }
}
