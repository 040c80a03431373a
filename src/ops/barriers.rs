//! Workgroup barriers and nothing else: the tuner times this op.

use burn::backend::flex::FlexTensor;
use burn::{
    backend::{Dispatch, TensorMetadata, tensor::IntTensor},
    tensor::{Int, Tensor},
};
use burn_wgpu::CubeTensor;

use super::op::op;
use crate::kernel::{Kernel, wgsl};

op! {
    fn barriers(out: IntTensor<Self>, count: usize) -> IntTensor<Self>
}

const WORKGROUP: usize = 64;

/// Overwrites `out` `[workgroups]` with `count`: every workgroup passes as many barriers.
pub fn barriers(out: Tensor<1, Int>, count: usize) -> Tensor<1, Int> {
    Tensor::from_dispatch(Dispatch::barriers(out.into_dispatch(), count))
}

/// The composed kernel.
pub fn kernel(count: usize) -> Kernel {
    Kernel::new("barriers")
        .binding("out")
        .constant("BARRIERS", count)
        .constant("WORKGROUP", WORKGROUP)
        .module(wgsl!("barriers"))
}

pub(super) fn launch(out: CubeTensor, count: usize) -> CubeTensor {
    let workgroups = out.shape().num_elements() as u32;
    kernel(count).launch(&[&out], [workgroups, 1, 1]);
    out
}

pub(super) fn twin(mut out: FlexTensor, count: usize) -> FlexTensor {
    out.storage_mut::<u32>().fill(count as u32);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::validation::assert_valid;

    #[test]
    fn kernels_are_valid_wgsl() {
        assert_valid([kernel(65)]);
    }
}
