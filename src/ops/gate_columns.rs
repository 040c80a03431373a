//! Products with some columns of a wider tensor: `out[token, i] = x[token, i] * wide[token, first + i]`.

use super::op::*;
use crate::kernel::{Kernel, wgsl};

/// The arguments of the op.
#[derive(ExtensionType)]
pub(super) struct Arguments<B: Backend> {
    pub(super) x: FloatTensor<B>,
    pub(super) wide: FloatTensor<B>,
    pub(super) first: IntTensor<B>,
}

op! {
    fn gate_columns(Arguments) -> FloatTensor<Self>
}

const WORKGROUP: usize = 64;

/// `x` is `[tokens, cols]`, `wide` `[tokens, more]`, `first` `[1]` the first column, a multiple of 4, of `cols` that there
/// are. It is a tensor so that all layers have the same kernel.
pub fn gate_columns(x: Tensor<2>, wide: Tensor<2>, first: Tensor<1, Int>) -> Tensor<2> {
    assert_eq!(x.dims()[0], wide.dims()[0], "rows of other tokens");
    Tensor::from_dispatch(Dispatch::gate_columns(Arguments {
        x: x.into_dispatch(),
        wide: wide.into_dispatch(),
        first: first.into_dispatch(),
    }))
}

/// The composed kernel.
pub fn kernel(cols: usize, wide_cols: usize) -> Kernel {
    Kernel::new("gate_columns")
        .binding("x")
        .binding("wide")
        .binding("first")
        .binding("out")
        .constant("COLS", cols)
        .constant("WIDE_COLS", wide_cols)
        .constant("WORKGROUP", WORKGROUP)
        .module(wgsl!("gate_columns"))
}

pub(super) fn launch(args: Arguments<Cube>) -> CubeTensor {
    let [tokens, cols] = args.x.shape().dims();
    let [_, wide_cols] = args.wide.shape().dims();
    let out = output(&args.x, [tokens, cols]);
    let grid = [(cols / 4).div_ceil(WORKGROUP) as u32, tokens as u32, 1];
    kernel(cols, wide_cols).launch(&[&args.x, &args.wide, &args.first, &out], grid);
    out
}

/// Also the function of the CPU device.
pub(super) fn twin(args: Arguments<Flex>) -> FlexTensor {
    let [tokens, cols] = args.x.shape().dims();
    let [_, wide_cols] = args.wide.shape().dims();
    let first = args.first.storage::<u32>()[0] as usize;
    let rows = args.x.storage::<f32>().chunks_exact(cols);
    let wide = args.wide.storage::<f32>().chunks_exact(wide_cols);
    let products = rows.zip(wide).flat_map(|(x, wide)| {
        let columns = &wide[first..first + cols];
        x.iter().zip(columns).map(|(x, y)| x * y)
    });
    twin_output(products.collect(), [tokens, cols])
}

#[cfg(test)]
mod tests {
    use super::kernel;
    use crate::kernel::validation::assert_valid;

    #[test]
    fn kernels_are_valid_wgsl() {
        assert_valid([(4, 12), (36, 36)].map(|(cols, wide)| kernel(cols, wide)));
    }
}
