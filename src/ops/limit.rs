//! Limits of values, and a function of them: `out = finish(clamp(x, lower, upper))`.

use super::{op::*, store::Finish};
use crate::kernel::{Kernel, wgsl};

/// The arguments of the op.
#[derive(ExtensionType)]
pub(super) struct Arguments<B: Backend> {
    pub(super) x: FloatTensor<B>,
    pub(super) bounds: FloatTensor<B>,
    pub(super) finish: Finish,
}

op! {
    fn limit(Arguments) -> FloatTensor<Self>
}

const WORKGROUP: usize = 64;

/// `x` is `[tokens, cols]`, `cols` a multiple of 4; `bounds` `[2]` the lower and the upper bound. They are a tensor so that
/// all layers have the same kernel.
pub fn limit(x: Tensor<2>, bounds: Tensor<1>, finish: Finish) -> Tensor<2> {
    Tensor::from_dispatch(Dispatch::limit(Arguments {
        x: x.into_dispatch(),
        bounds: bounds.into_dispatch(),
        finish,
    }))
}

/// The composed kernel.
pub fn kernel(cols: usize, finish: Finish) -> Kernel {
    let kernel = Kernel::new("limit")
        .binding("x")
        .binding("bounds")
        .binding("out")
        .constant("COLS", cols)
        .constant("WORKGROUP", WORKGROUP);
    finish.modules(kernel).module(wgsl!("limit"))
}

pub(super) fn launch(args: Arguments<Cube>) -> CubeTensor {
    let [tokens, cols] = args.x.shape().dims();
    let out = output(&args.x, [tokens, cols]);
    let grid = [(cols / 4).div_ceil(WORKGROUP) as u32, tokens as u32, 1];
    kernel(cols, args.finish).launch(&[&args.x, &args.bounds, &out], grid);
    out
}

/// Also the function of the CPU device.
pub(super) fn twin(args: Arguments<Flex>) -> FlexTensor {
    let dims: [usize; 2] = args.x.shape().dims();
    let bounds = args.bounds.storage::<f32>();
    let (lower, upper) = (bounds[0], bounds[1]);
    let limited = args.x.storage::<f32>().iter();
    let limited = limited.map(|x| args.finish.apply(x.max(lower).min(upper)));
    twin_output(limited.collect(), dims)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{kernel::validation::assert_valid, ops::Activation};

    #[test]
    fn kernels_are_valid_wgsl() {
        let gelu = Finish::Activation(Activation::Gelu);
        assert_valid([(4, Finish::Plain), (36, gelu)].map(|(cols, it)| kernel(cols, it)));
    }
}
