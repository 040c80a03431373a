//! The row of a step's last token, the only one whose logits are needed after a prompt.

use super::{
    op::*,
    step::{self, Step},
};
use crate::kernel::{Kernel, grid, wgsl};

/// The arguments of the op.
#[derive(ExtensionType)]
pub(super) struct Arguments<B: Backend> {
    pub(super) x: FloatTensor<B>,
    pub(super) step: IntTensor<B>,
}

op! {
    fn last_row(Arguments) -> FloatTensor<Self>
}

const WORKGROUP: usize = 64;

/// The last token's row of `x` `[tokens, cols]`: `[1, cols]`.
pub fn last_row(x: Tensor<2>, step: &Step) -> Tensor<2> {
    Tensor::from_dispatch(Dispatch::last_row(Arguments {
        x: x.into_dispatch(),
        step: step.words().into_dispatch(),
    }))
}

/// The composed kernel.
pub fn kernel(cols: usize) -> Kernel {
    let kernel = Kernel::new("last_row")
        .binding("x")
        .binding("out")
        .binding("step")
        .constant("COLS", cols)
        .constant("WORKGROUP", WORKGROUP);
    step::layout(kernel)
        .module(wgsl!("shared/step"))
        .module(wgsl!("last_row"))
}

pub(super) fn launch(args: Arguments<Cube>) -> CubeTensor {
    let [_, cols] = args.x.shape().dims();
    let out = output(&args.x, [1, cols]);
    kernel(cols).launch(
        &[&args.x, &out, &args.step],
        grid((cols / 4).div_ceil(WORKGROUP)),
    );
    out
}

pub(super) fn twin(args: Arguments<Flex>) -> FlexTensor {
    let [_, cols] = args.x.shape().dims();
    let row = args.step.storage::<u32>()[step::TOKENS] as usize - 1;
    twin_output(
        args.x.storage::<f32>()[row * cols..][..cols].to_vec(),
        [1, cols],
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::validation::assert_valid;

    #[test]
    fn kernels_are_valid_wgsl() {
        assert_valid([kernel(172)]);
    }
}
