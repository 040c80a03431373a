//! Workgroup barriers and nothing else: the tuner times this op.

use burn::backend::flex::FlexTensor;
use burn::{
    backend::{Dispatch, TensorMetadata},
    tensor::{Int, Tensor},
};
use burn_wgpu::CubeTensor;

use super::{backend::Ops, kernel::Kernel, shader};

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
        .module(shader::kernel::BARRIERS)
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
