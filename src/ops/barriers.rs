//! What waiting for each other costs the lanes of a workgroup on a device. Decides nothing.

use burn::backend::flex::FlexTensor;
use burn::{
    backend::{Dispatch, TensorMetadata},
    tensor::{DType, Int, Tensor, TensorData},
};
use burn_wgpu::CubeTensor;

use super::{backend::Ops, kernel::Kernel, shader};
use crate::{Error, Result, device::Gpu};

const WORKGROUP: usize = 64;
/// Workgroups that wait side by side.
const WORKGROUPS: usize = 64;
/// The difference of two numbers of barriers is free of what a launch costs.
const BARRIERS: [usize; 2] = [1, 65];
const ROUNDS: usize = 3;

/// Overwrites `out` `[workgroups]` with `count`, by way of as many barriers.
pub fn barriers(out: Tensor<1, Int>, count: usize) -> Tensor<1, Int> {
    Tensor::from_dispatch(Dispatch::barriers(out.into_dispatch(), count))
}

/// Microseconds that a barrier costs a workgroup of 64 lanes while the device is full of them: some
/// nanoseconds on a GPU, more than one microsecond where lanes are emulated.
///
/// # Errors
/// When the device failed or miscounts.
pub async fn barrier_us(gpu: &Gpu) -> Result<f64> {
    let zeros = TensorData::new(vec![0u32; WORKGROUPS], [WORKGROUPS]);
    let mut out = Tensor::from_data(zeros, (gpu.device(), DType::U32));
    let mut best_ms = [f64::INFINITY; 2];
    for round in 0..=ROUNDS {
        for (count, best_ms) in BARRIERS.into_iter().zip(&mut best_ms) {
            let start_ms = gpu.now_ms();
            out = barriers(out, count);
            gpu.sync().await?;
            // The first round compiles.
            if round > 0 {
                *best_ms = best_ms.min(gpu.now_ms() - start_ms);
            }
        }
    }
    let counted = out.into_data_async().await;
    let counted = counted.map_err(|e| gpu.failure(format!("{e:?}")))?;
    if counted
        .iter::<u32>()
        .any(|count| count as usize != BARRIERS[1])
    {
        return Err(Error::NoDevice("barriers do not hold".into()));
    }
    let difference = (BARRIERS[1] - BARRIERS[0]) * WORKGROUPS;
    Ok((best_ms[1] - best_ms[0]).max(0.0) * 1e3 / difference as f64)
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
