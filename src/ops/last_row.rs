//! The row of a step's last token, the only one whose logits are needed after a prompt.

use burn::backend::flex::FlexTensor;
use burn::{
    backend::{
        Dispatch, TensorMetadata,
        tensor::{FloatTensor, IntTensor},
    },
    tensor::Tensor,
};
use burn_wgpu::CubeTensor;

use super::{
    op::{op, output, twin_output},
    step::{self, Step},
};
use crate::kernel::{Kernel, grid, wgsl};

op! {
    fn last_row(x: FloatTensor<Self>, step: IntTensor<Self>) -> FloatTensor<Self>
}

const WORKGROUP: usize = 64;

/// The last token's row of `x` `[tokens, cols]`: `[1, cols]`.
pub fn last_row(x: Tensor<2>, step: &Step) -> Tensor<2> {
    Tensor::from_dispatch(Dispatch::last_row(
        x.into_dispatch(),
        step.words().into_dispatch(),
    ))
}

/// The composed kernel.
pub fn kernel(cols: usize) -> Kernel {
    let kernel = Kernel::new("last_row")
        .binding("x")
        .binding("out")
        .binding("step")
        .constant("COLS", cols)
        .constant("KV_DIM", 1)
        .constant("WORKGROUP", WORKGROUP);
    step::layout(kernel)
        .module(wgsl!("shared/step"))
        .module(wgsl!("last_row"))
}

pub(super) fn launch(x: CubeTensor, step: CubeTensor) -> CubeTensor {
    let [_, cols] = x.shape().dims();
    let out = output(&x, [1, cols]);
    kernel(cols).launch(&[&x, &out, &step], grid((cols / 4).div_ceil(WORKGROUP)));
    out
}

pub(super) fn twin(x: FlexTensor, step: FlexTensor) -> FlexTensor {
    let [_, cols] = x.shape().dims();
    let row = step.storage::<u32>()[step::TOKENS] as usize - 1;
    twin_output(x.storage::<f32>()[row * cols..][..cols].to_vec(), [1, cols])
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
