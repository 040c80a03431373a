//! Upload into a part of a tensor.

use burn::tensor::Bytes;

use super::op::*;

/// The arguments of the op.
#[derive(ExtensionType)]
pub(super) struct Arguments<B: Backend> {
    pub(super) tensor: IntTensor<B>,
    pub(super) at: usize,
    pub(super) words: Vec<u32>,
}

op! {
    fn write_words(Arguments) -> IntTensor<Self>
}

/// Overwrites words of an unsigned integer tensor in place, from word `at` on. Takes the tensor by
/// value, because the twin writes in place only while nothing else holds the tensor.
pub fn write_words(tensor: Tensor<1, Int>, at: usize, words: Vec<u32>) -> Tensor<1, Int> {
    Tensor::from_dispatch(Dispatch::write_words(Arguments {
        tensor: tensor.into_dispatch(),
        at,
        words,
    }))
}

fn launch(args: Arguments<Cube>) -> CubeTensor {
    let total = args.tensor.shape().num_elements();
    assert!(
        args.at + args.words.len() <= total,
        "upload outside its tensor"
    );
    let end = total - args.at - args.words.len();
    let part = args
        .tensor
        .handle
        .clone()
        .offset_start(args.at as u64 * 4)
        .offset_end(end as u64 * 4);
    args.tensor
        .client
        .write(&part, Bytes::from_elems(args.words));
    args.tensor
}

fn twin(args: Arguments<Flex>) -> FlexTensor {
    let Arguments { mut tensor, .. } = args;
    tensor.storage_mut::<u32>()[args.at..args.at + args.words.len()].copy_from_slice(&args.words);
    tensor
}
