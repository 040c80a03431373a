//! Another shape for the elements of a matrix. No element moves.

use burn::backend::flex::FlexTensor;
use burn::{
    backend::{Dispatch, TensorMetadata, tensor::FloatTensor},
    tensor::Tensor,
};
use burn_wgpu::CubeTensor;

use super::op::op;

op! {
    fn reshape(x: FloatTensor<Self>, rows: usize, cols: usize) -> FloatTensor<Self>
}

/// The elements of `x` as `[rows, cols]`.
///
/// # Panics
/// If `x` has another number of elements.
pub fn reshape<const D: usize>(x: Tensor<D>, [rows, cols]: [usize; 2]) -> Tensor<2> {
    assert_eq!(x.shape().num_elements(), rows * cols, "elements of a shape");
    Tensor::from_dispatch(Dispatch::reshape(x.into_dispatch(), rows, cols))
}

pub(super) fn launch(x: CubeTensor, rows: usize, cols: usize) -> CubeTensor {
    let dtype = x.dtype();
    CubeTensor::new_contiguous(x.client, x.device, [rows, cols].into(), x.handle, dtype)
}

pub(super) fn twin(x: FlexTensor, rows: usize, cols: usize) -> FlexTensor {
    x.reshape([rows, cols].into())
}
