//! Consecutive rows of a tensor. On the GPU this is a view of the same memory, without a dispatch.

use super::op::*;

/// The arguments of the op.
#[derive(ExtensionType)]
pub(super) struct Arguments<B: Backend> {
    pub(super) x: FloatTensor<B>,
    pub(super) first: usize,
    pub(super) count: usize,
}

op! {
    fn rows(Arguments) -> FloatTensor<Self>
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
    Tensor::from_dispatch(Dispatch::rows(Arguments {
        x: x.into_dispatch(),
        first,
        count,
    }))
}

pub(super) fn launch(args: Arguments<Cube>) -> CubeTensor {
    let [tokens, cols] = args.x.shape().dims();
    let bytes = |rows: usize| (rows * cols * args.x.dtype().size()) as u64;
    let handle = args
        .x
        .handle
        .clone()
        .offset_start(bytes(args.first))
        .offset_end(bytes(tokens - args.first - args.count));
    CubeTensor::new_contiguous(
        args.x.client.clone(),
        args.x.device.clone(),
        [args.count, cols].into(),
        handle,
        args.x.dtype(),
    )
}

pub(super) fn twin(args: Arguments<Flex>) -> FlexTensor {
    let [_, cols] = args.x.shape().dims();
    let values = &args.x.storage::<f32>()[args.first * cols..][..args.count * cols];
    twin_output(values.to_vec(), [args.count, cols])
}
