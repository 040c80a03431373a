//! Upload into a part of a tensor.

use burn::backend::flex::FlexTensor;
use burn::{
    backend::{Dispatch, TensorMetadata, tensor::IntTensor},
    tensor::{Bytes, Int, Tensor},
};
use burn_wgpu::CubeTensor;

use super::op::op;

op! {
    fn write_words(tensor: IntTensor<Self>, at: usize, words: Vec<u32>) -> IntTensor<Self>
}

/// Overwrites words of an unsigned integer tensor in place, from word `at` on. Takes the tensor by
/// value, because the twin writes in place only while nothing else holds the tensor.
pub fn write_words(tensor: Tensor<1, Int>, at: usize, words: Vec<u32>) -> Tensor<1, Int> {
    Tensor::from_dispatch(Dispatch::write_words(tensor.into_dispatch(), at, words))
}

fn launch(tensor: CubeTensor, at: usize, words: Vec<u32>) -> CubeTensor {
    let total = tensor.shape().num_elements();
    assert!(at + words.len() <= total, "upload outside its tensor");
    let end = total - at - words.len();
    let part = tensor
        .handle
        .clone()
        .offset_start(at as u64 * 4)
        .offset_end(end as u64 * 4);
    tensor.client.write(&part, Bytes::from_elems(words));
    tensor
}

fn twin(mut tensor: FlexTensor, at: usize, words: Vec<u32>) -> FlexTensor {
    tensor.storage_mut::<u32>()[at..at + words.len()].copy_from_slice(&words);
    tensor
}
