//! Adds the same vector to each row.

use super::op::*;
use crate::kernel::{Kernel, wgsl};

/// The arguments of the op.
#[derive(ExtensionType)]
pub(super) struct Arguments<B: Backend> {
    pub(super) x: FloatTensor<B>,
    pub(super) row: FloatTensor<B>,
}

op! {
    fn add_row(Arguments) -> FloatTensor<Self>
}

const WORKGROUP: usize = 64;

/// `x` `[tokens, cols]` plus `row` `[cols]` in each row.
pub fn add_row(x: Tensor<2>, row: Tensor<1>) -> Tensor<2> {
    assert_eq!(x.dims()[1], row.dims()[0], "rows of another length");
    Tensor::from_dispatch(Dispatch::add_row(Arguments {
        x: x.into_dispatch(),
        row: row.into_dispatch(),
    }))
}

/// The composed kernel.
pub fn kernel(cols: usize) -> Kernel {
    Kernel::new("add_row")
        .binding("x")
        .binding("row")
        .binding("out")
        .constant("COLS", cols)
        .constant("WORKGROUP", WORKGROUP)
        .module(wgsl!("add_row"))
}

pub(super) fn launch(args: Arguments<Cube>) -> CubeTensor {
    let [tokens, cols] = args.x.shape().dims();
    let out = output(&args.x, [tokens, cols]);
    // One row of the grid per token keeps both numbers small.
    let lanes = cols / 4;
    let grid = [lanes.div_ceil(WORKGROUP) as u32, tokens as u32, 1];
    kernel(cols).launch(&[&args.x, &args.row, &out], grid);
    out
}

pub(super) fn twin(args: Arguments<Flex>) -> FlexTensor {
    let Arguments { x, row } = args;
    let [tokens, cols] = x.shape().dims();
    let row = row.storage::<f32>();
    let rows = x.storage::<f32>().chunks_exact(cols);
    let sums = rows.flat_map(|x| x.iter().zip(row).map(|(x, row)| x + row));
    twin_output(sums.collect(), [tokens, cols])
}

#[cfg(test)]
mod tests {
    use super::kernel;
    use crate::kernel::validation::assert_valid;

    #[test]
    fn kernels_are_valid_wgsl() {
        assert_valid([4, 36, 384].map(kernel));
    }
}
