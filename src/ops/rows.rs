//! Consecutive rows of a tensor. On the GPU this is a view of the same memory, without a dispatch.

use burn::backend::flex::FlexTensor;
use burn::{
    backend::{Dispatch, TensorMetadata, tensor::FloatTensor},
    tensor::Tensor,
};
use burn_wgpu::CubeTensor;

use super::op::{op, twin_output};

op! {
    fn rows(x: FloatTensor<Self>, first: usize, count: usize) -> FloatTensor<Self>
}

/// The first row of a view is a multiple of this: bindings start at multiples of 256 bytes, and `cols` is a
/// multiple of 4.
pub const ROW_MULTIPLE: usize = 16;

/// Rows `first..first + count` of `x` `[tokens, cols]`, read-only.
pub fn rows(x: Tensor<2>, first: usize, count: usize) -> Tensor<2> {
    assert!(
        first.is_multiple_of(ROW_MULTIPLE),
        "a view from row {first}"
    );
    assert!(first + count <= x.dims()[0], "a view past the last row");
    Tensor::from_dispatch(Dispatch::rows(x.into_dispatch(), first, count))
}

pub(super) fn launch(x: CubeTensor, first: usize, count: usize) -> CubeTensor {
    let [tokens, cols] = x.shape().dims();
    let bytes = |rows: usize| (rows * cols * x.dtype().size()) as u64;
    let handle = x
        .handle
        .clone()
        .offset_start(bytes(first))
        .offset_end(bytes(tokens - first - count));
    CubeTensor::new_contiguous(
        x.client.clone(),
        x.device.clone(),
        [count, cols].into(),
        handle,
        x.dtype(),
    )
}

pub(super) fn twin(x: FlexTensor, first: usize, count: usize) -> FlexTensor {
    let [_, cols] = x.shape().dims();
    let values = &x.storage::<f32>()[first * cols..][..count * cols];
    twin_output(values.to_vec(), [count, cols])
}
