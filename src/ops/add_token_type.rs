//! Adds to each row the vector of its token's type.

use super::op::*;
use crate::kernel::{Kernel, wgsl};

/// The arguments of the op.
#[derive(ExtensionType)]
pub(super) struct Arguments<B: Backend> {
    pub(super) x: FloatTensor<B>,
    pub(super) types: IntTensor<B>,
    pub(super) table: FloatTensor<B>,
}

op! {
    fn add_token_type(Arguments) -> FloatTensor<Self>
}

const WORKGROUP: usize = 64;

/// `x` `[tokens, cols]` plus the rows of `table` `[types, cols]` for `types` `[tokens]`, which are below the number of
/// rows.
pub fn add_token_type(x: Tensor<2>, types: Tensor<1, Int>, table: Tensor<2>) -> Tensor<2> {
    assert_eq!(x.dims()[1], table.dims()[1], "rows of another length");
    Tensor::from_dispatch(Dispatch::add_token_type(Arguments {
        x: x.into_dispatch(),
        types: types.into_dispatch(),
        table: table.into_dispatch(),
    }))
}

/// The composed kernel.
pub fn kernel(cols: usize) -> Kernel {
    Kernel::new("add_token_type")
        .binding("x")
        .binding("types")
        .binding("table")
        .binding("out")
        .constant("COLS", cols)
        .constant("WORKGROUP", WORKGROUP)
        .module(wgsl!("add_token_type"))
}

pub(super) fn launch(args: Arguments<Cube>) -> CubeTensor {
    let [tokens, cols] = args.x.shape().dims();
    let out = output(&args.x, [tokens, cols]);
    // One row of the grid per token keeps both numbers small.
    let lanes = cols / 4;
    let grid = [lanes.div_ceil(WORKGROUP) as u32, tokens as u32, 1];
    kernel(cols).launch(&[&args.x, &args.types, &args.table, &out], grid);
    out
}

pub(super) fn twin(args: Arguments<Flex>) -> FlexTensor {
    let Arguments { x, types, table } = args;
    let [tokens, cols] = x.shape().dims();
    let (types, table) = (types.storage::<u32>(), table.storage::<f32>());
    let rows = x.storage::<f32>().chunks_exact(cols).zip(types);
    let sums = rows.flat_map(|(x, of_type)| {
        let row = &table[*of_type as usize * cols..][..cols];
        x.iter().zip(row).map(|(x, row)| x + row)
    });
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
