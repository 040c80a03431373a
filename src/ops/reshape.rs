//! Another shape for the elements of a matrix. No element moves.

use super::op::*;

/// The arguments of the op.
#[derive(ExtensionType)]
pub(super) struct Arguments<B: Backend> {
    pub(super) x: FloatTensor<B>,
    pub(super) rows: usize,
    pub(super) cols: usize,
}

op! {
    fn reshape(Arguments) -> FloatTensor<Self>
}

/// The elements of `x` as `[rows, cols]`.
///
/// # Panics
/// If `x` has another number of elements.
pub fn reshape<const D: usize>(x: Tensor<D>, [rows, cols]: [usize; 2]) -> Tensor<2> {
    assert_eq!(x.shape().num_elements(), rows * cols, "elements of a shape");
    Tensor::from_dispatch(Dispatch::reshape(Arguments {
        x: x.into_dispatch(),
        rows,
        cols,
    }))
}

pub(super) fn launch(args: Arguments<Cube>) -> CubeTensor {
    let dtype = args.x.dtype();
    CubeTensor::new_contiguous(
        args.x.client,
        args.x.device,
        [args.rows, args.cols].into(),
        args.x.handle,
        dtype,
    )
}

pub(super) fn twin(args: Arguments<Flex>) -> FlexTensor {
    args.x.reshape([args.rows, args.cols].into())
}
