//! Rows of floats that are the first words of a tensor. On the GPU this is a view of the same memory, without a dispatch.

use burn::tensor::DType;

use super::{in_place::InPlace, op::*};

/// The arguments of the op.
#[derive(ExtensionType)]
pub(super) struct Arguments<B: Backend> {
    pub(super) words: IntTensor<B>,
    pub(super) rows: usize,
    pub(super) cols: usize,
}

op! {
    fn word_rows(Arguments) -> FloatTensor<Self>
}

/// The first words as floats `[rows, cols]`, read-only.
///
/// # Panics
/// If there are fewer words.
pub fn word_rows(words: &InPlace, [rows, cols]: [usize; 2]) -> Tensor<2> {
    let words = words.get();
    assert!(rows * cols <= words.dims()[0], "rows past the last word");
    Tensor::from_dispatch(Dispatch::word_rows(Arguments {
        words: words.into_dispatch(),
        rows,
        cols,
    }))
}

pub(super) fn launch(args: Arguments<Cube>) -> CubeTensor {
    let unused = args.words.shape().num_elements() - args.rows * args.cols;
    let handle = args.words.handle.clone().offset_end(4 * unused as u64);
    CubeTensor::new_contiguous(
        args.words.client.clone(),
        args.words.device.clone(),
        [args.rows, args.cols].into(),
        handle,
        DType::F32,
    )
}

pub(super) fn twin(args: Arguments<Flex>) -> FlexTensor {
    let words = &args.words.storage::<u32>()[..args.rows * args.cols];
    let values = words.iter().map(|word| f32::from_bits(*word)).collect();
    twin_output(values, [args.rows, args.cols])
}
