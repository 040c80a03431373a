//! A small matrix per head, multiplied with the head's columns: `out[token, head] = [prefix[token, head], matrix[head] *
//! x[token, head]]`. Multi-head latent attention takes queries to the space of the latent with it, and results back.

use burn::tensor::Device;

use super::op::*;
use crate::{
    device::upload_words,
    kernel::{Kernel, wgsl},
    tensor_types::TensorType,
};

/// The arguments of the op.
#[derive(ExtensionType)]
pub(super) struct Arguments<B: Backend> {
    pub(super) x: FloatTensor<B>,
    pub(super) matrix: IntTensor<B>,
    #[extension_type]
    pub(super) prefix: Maybe<B>,
    pub(super) shape: HeadShape,
}

op! {
    fn head_product(Arguments) -> FloatTensor<Self>
}

const WORKGROUP: usize = 64;
/// Tokens of a lane, in steps of a multiple of as many.
const TOKENS: usize = 4;

/// Sizes of the matrices, and where their inputs are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeadShape {
    /// Matrices.
    pub heads: usize,
    /// Rows of a matrix; even.
    pub rows: usize,
    /// Columns of a matrix.
    pub cols: usize,
    /// Columns of the input that belong to a head.
    pub x_len: usize,
    /// The first of them that is multiplied.
    pub x_at: usize,
    /// Elements of a head in front of its product; even.
    pub prefix: usize,
}

/// The matrices of all heads on the device, from `values` `[heads, rows, cols]`: f16 of two neighboring rows in a word, `[heads,
/// cols, rows / 2]`.
pub fn upload_head_matrices(
    values: &[f32],
    rows: usize,
    cols: usize,
    device: &Device,
) -> Tensor<1, Int> {
    let mut ordered = Vec::with_capacity(values.len());
    for matrix in values.chunks_exact(rows * cols) {
        for col in 0..cols {
            ordered.extend(matrix.iter().skip(col).step_by(cols));
        }
    }
    let bytes = TensorType::F16.quantize(&ordered);
    let words = bytes.as_chunks::<4>().0;
    let words: Vec<u32> = words.iter().map(|it| u32::from_le_bytes(*it)).collect();
    let len = words.len();
    upload_words(words, [len], device)
}

/// `x` is `[tokens, heads * x_len]`, `matrix` the result of [`upload_head_matrices`], `prefix` `[tokens, heads * prefix]`.
/// Returns `[tokens, heads * (prefix + rows)]`.
pub fn head_product(
    x: Tensor<2>,
    matrix: Tensor<1, Int>,
    prefix: Option<Tensor<2>>,
    shape: HeadShape,
) -> Tensor<2> {
    let HeadShape {
        heads, rows, cols, ..
    } = shape;
    assert_eq!(x.dims()[1], heads * shape.x_len, "heads of the input");
    assert!(shape.x_at + cols <= shape.x_len && rows % 2 == 0 && shape.prefix.is_multiple_of(2));
    assert_eq!(
        matrix.dims()[0],
        heads * cols * rows / 2,
        "a matrix per head"
    );
    let prefixes = prefix.as_ref().map_or(0, |it| it.dims()[1]);
    assert_eq!(prefixes, heads * shape.prefix, "a prefix per head");
    Tensor::from_dispatch(Dispatch::head_product(Arguments {
        x: x.into_dispatch(),
        matrix: matrix.into_dispatch(),
        prefix: prefix.into(),
        shape,
    }))
}

/// The tokens of a lane in a step of `tokens`.
fn lane_tokens(tokens: usize) -> usize {
    if tokens.is_multiple_of(TOKENS) {
        TOKENS
    } else {
        1
    }
}

/// The composed kernel for lanes of `tokens`.
fn kernel(shape: HeadShape, tokens: usize) -> Kernel {
    Kernel::new("head_product")
        .binding("x")
        .binding("matrix")
        .binding("prefix")
        .binding("out")
        .constant("HEADS", shape.heads)
        .constant("ROWS", shape.rows)
        .constant("COLS", shape.cols)
        .constant("X_LEN", shape.x_len)
        .constant("X_AT", shape.x_at)
        .constant("PREFIX", shape.prefix)
        .constant("TOKENS", tokens)
        .constant("WORKGROUP", WORKGROUP)
        .module(wgsl!("head_product"))
}

pub(super) fn launch(args: Arguments<Cube>) -> CubeTensor {
    let Arguments { shape, .. } = args;
    let [tokens, _] = args.x.shape().dims();
    let columns = shape.heads * (shape.prefix + shape.rows);
    let out = output(&args.x, [tokens, columns]);
    // A kernel without prefix reads none.
    let prefix = args.prefix.as_ref().unwrap_or(&args.x);
    let lanes = (columns / 2).div_ceil(WORKGROUP) as u32;
    let of_lane = lane_tokens(tokens);
    let grid = [lanes, (tokens / of_lane) as u32, 1];
    kernel(shape, of_lane).launch(&[&args.x, &args.matrix, prefix, &out], grid);
    out
}

/// Also the function of the CPU device.
pub(super) fn twin(args: Arguments<Flex>) -> FlexTensor {
    let Arguments { shape, .. } = args;
    let HeadShape {
        heads, rows, cols, ..
    } = shape;
    let [tokens, _] = args.x.shape().dims();
    let words = args.matrix.storage::<u32>();
    let bytes: Vec<u8> = words.iter().flat_map(|it| it.to_le_bytes()).collect();
    let mut matrix = vec![0.0; heads * rows * cols];
    TensorType::F16.dequantize(&bytes, &mut matrix);
    let x = args.x.storage::<f32>();
    let prefix = args.prefix.as_ref().map(|it| it.storage::<f32>());
    let mut out = Vec::with_capacity(tokens * heads * (shape.prefix + rows));
    for (at, x) in x.chunks_exact(shape.x_len).enumerate() {
        if let Some(prefix) = prefix {
            out.extend_from_slice(&prefix[at * shape.prefix..][..shape.prefix]);
        }
        let mut sums = vec![0.0; rows];
        let of_head = &matrix[at % heads * rows * cols..][..rows * cols];
        for (x, column) in x[shape.x_at..].iter().zip(of_head.chunks_exact(rows)) {
            for (sum, weight) in sums.iter_mut().zip(column) {
                *sum += weight * x;
            }
        }
        out.extend(sums);
    }
    twin_output(out, [tokens, heads * (shape.prefix + rows)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::validation::assert_valid;

    #[test]
    fn kernels_are_valid_wgsl() {
        let shape = HeadShape {
            heads: 3,
            rows: 10,
            cols: 7,
            x_len: 9,
            x_at: 2,
            prefix: 4,
        };
        let without = HeadShape { prefix: 0, ..shape };
        assert_valid([kernel(shape, 1), kernel(shape, 4), kernel(without, 4)]);
    }
}
