//! A recurrence over many tokens of one sequence, in chunks (Yang et al. 2024, <https://arxiv.org/abs/2406.06484>; Dao and
//! Gu 2024, <https://arxiv.org/abs/2405.21060>): what the tokens of a chunk do to each other is computed for all chunks
//! at once, and only products of matrices remain to be done one chunk after the other.
//!
//! A chunk has 32 tokens, and rounds otherwise than one token after the other. Steps of more than 8 tokens use chunks. They
//! begin at page ends, so a token has the same chunk however the prompt is divided, and tokens after it do not change its
//! bits.

use burn::backend::TensorMetadata;
use burn_wgpu::CubeTensor;

use super::{
    op::output,
    recurrence_shape::{self, RecurrenceShape, WORKGROUP},
    step::PAGE_TOKENS,
};
use crate::kernel::{Kernel, wgsl};

/// Tokens of a chunk: one lane each for queries and for keys. Steps of many tokens begin where a page does. So a token has
/// the same chunk in every step.
const CHUNK: usize = WORKGROUP / 2;
const _: () = assert!(PAGE_TOKENS.is_multiple_of(CHUNK));
/// Words of what is known of a chunk and head: two matrices, three vectors, a number and padding.
const PRODUCT_WORDS: usize = 2 * CHUNK * CHUNK + 3 * CHUNK + 4;

/// The composed kernels: one for the products within chunks, one that passes through the chunks.
pub(super) fn kernels(shape: RecurrenceShape, stride: usize, slot_words: usize) -> [Kernel; 2] {
    let complete = |kernel: Kernel| {
        recurrence_shape::constants(kernel, shape, stride)
            .constant("CHUNK", CHUNK)
            .constant("PRODUCT_WORDS", PRODUCT_WORDS)
            .module(wgsl!("shared/step"))
    };
    let products = Kernel::new("chunk_products")
        .binding("x")
        .binding("rates")
        .binding("shares")
        .binding("heads")
        .binding("products")
        .binding("step");
    let pass = Kernel::new("chunk_recurrence")
        .binding("x")
        .binding("heads")
        .binding("products")
        .binding("states")
        .binding("out")
        .binding("step")
        .constant("VECTORS", recurrence_shape::keys(shape) / 4)
        .constant("SLOT_WORDS", slot_words);
    [
        complete(products).module(wgsl!("chunk_products")),
        complete(pass).module(wgsl!("chunk_recurrence")),
    ]
}

/// Launches the kernels on x, rates, shares and numbers of heads, on states and step.
pub(super) fn launch(
    [x, rates, shares, heads]: [&CubeTensor; 4],
    [states, step]: [&CubeTensor; 2],
    out: &CubeTensor,
    shape: RecurrenceShape,
    slot_words: usize,
) {
    let [tokens, stride] = x.shape().dims();
    let chunks = tokens.div_ceil(CHUNK);
    let [within, pass] = kernels(shape, stride, slot_words);
    let products = output(x, [chunks * shape.heads, PRODUCT_WORDS]);
    let grid = [shape.heads as u32, chunks as u32, 1];
    within.launch(&[x, rates, shares, heads, &products, step], grid);
    let buffers = [x, heads, &products, states, out, step];
    pass.launch(&buffers, [recurrence_shape::workgroups(shape), 1, 1]);
}
