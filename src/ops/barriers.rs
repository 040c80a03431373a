//! Workgroup barriers and nothing else: the tuner times this op.

use super::op::*;
use crate::kernel::{Kernel, wgsl};

/// The arguments of the op.
#[derive(ExtensionType)]
pub(super) struct Arguments<B: Backend> {
    pub(super) out: IntTensor<B>,
    pub(super) count: usize,
}

op! {
    fn barriers(Arguments) -> IntTensor<Self>
}

const WORKGROUP: usize = 64;

/// Overwrites `out` `[workgroups]` with `count`: every workgroup passes as many barriers.
pub fn barriers(out: Tensor<1, Int>, count: usize) -> Tensor<1, Int> {
    Tensor::from_dispatch(Dispatch::barriers(Arguments {
        out: out.into_dispatch(),
        count,
    }))
}

/// The composed kernel.
pub fn kernel(count: usize) -> Kernel {
    Kernel::new("barriers")
        .binding("out")
        .constant("BARRIERS", count)
        .constant("WORKGROUP", WORKGROUP)
        .module(wgsl!("barriers"))
}

pub(super) fn launch(args: Arguments<Cube>) -> CubeTensor {
    let workgroups = args.out.shape().num_elements() as u32;
    kernel(args.count).launch(&[&args.out], [workgroups, 1, 1]);
    args.out
}

pub(super) fn twin(args: Arguments<Flex>) -> FlexTensor {
    let Arguments { mut out, .. } = args;
    out.storage_mut::<u32>().fill(args.count as u32);
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
