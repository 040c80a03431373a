//! Grouped-query attention over the paged KV cache (Vaswani et al. 2017; Ainslie et al. 2023,
//! <https://arxiv.org/abs/2305.13245>): causal for decode and prefill, whole for encoders, where the tokens of a sequence attend
//! to each other (Devlin et al. 2018, <https://arxiv.org/abs/1810.04805>).
//!
//! An encoder is a decoder without a mask (`ModelConfig::is_causal`). Its step holds whole inputs, the kernels and the
//! loader are the same, and K and V of one layer at a time are kept in pages of f32. Steps are not captured: inputs have
//! any length, and there is one step per batch. They are padded to at least 16 rows, so that a short input runs the same
//! kernels alone and beside others; a token adds the others in the order of their positions, whatever tile or page they
//! are on.

use std::ops::Range;

pub use inpage_cpu::lanes::attention::{AttentionShape, Window};
use inpage_cpu::{
    lanes::{attention::attention_with, kv::Row},
    reference::{add_scaled, dot},
    team,
};

use super::{
    kv_memory::{KvFormat, KvMemory},
    matvec,
    op::*,
    step::{self, Step},
    variant::Variant,
};
use crate::kernel::{Kernel, wgsl};

/// The arguments of the op.
#[derive(ExtensionType)]
pub(super) struct Arguments<B: Backend> {
    pub(super) q: FloatTensor<B>,
    pub(super) kv: IntTensor<B>,
    pub(super) step: IntTensor<B>,
    #[extension_type]
    pub(super) sinks: Maybe<B>,
    pub(super) sight: Sight,
    pub(super) shape: AttentionShape,
    pub(super) format: KvFormat,
    pub(super) variant: Variant,
}

op! {
    cpu if (|it| it.variant.cpu);
    fn attention(Arguments) -> FloatTensor<Self>
}

/// The tokens that a query sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sight {
    /// The tokens up to its own, or up to the end of its segment if that is seen whole.
    Causal,
    /// The tokens of its segment.
    Whole,
}

/// Attends with rotated, scaled queries `[tokens, heads * head_dim]` to all tokens of each query's sequence
/// up to its own, or up to the end of its segment if that is seen whole. Such a segment is not longer than the window.
/// `sinks` `[heads]` are scores that join each softmax without a value (Xiao et al. 2023,
/// <https://arxiv.org/abs/2309.17453>). Returns the same shape; padding rows are undefined. In a step with more rows than a
/// batch, all tokens are consecutive tokens of one sequence.
pub fn attention(
    q: Tensor<2>,
    kv: &KvMemory,
    step: &Step,
    sinks: Option<Tensor<1>>,
    shape: AttentionShape,
    variant: Variant,
) -> Tensor<2> {
    attended(q, kv, step, sinks, Sight::Causal, shape, variant)
}

/// Attends with rotated, scaled queries `[tokens, heads * head_dim]` to all tokens of each query's segment, or,
/// with a window of n, to those less than n away on either side. The segments of the step are whole sequences, which may
/// begin within a page. Returns the same shape; padding rows are undefined.
pub fn whole_attention(
    q: Tensor<2>,
    kv: &KvMemory,
    step: &Step,
    shape: AttentionShape,
    variant: Variant,
) -> Tensor<2> {
    attended(q, kv, step, None, Sight::Whole, shape, variant)
}

fn attended(
    q: Tensor<2>,
    kv: &KvMemory,
    step: &Step,
    sinks: Option<Tensor<1>>,
    sight: Sight,
    shape: AttentionShape,
    variant: Variant,
) -> Tensor<2> {
    Tensor::from_dispatch(Dispatch::attention(Arguments {
        q: q.into_dispatch(),
        kv: kv.words().into_dispatch(),
        step: step.words().into_dispatch(),
        sinks: sinks.into(),
        sight,
        shape,
        format: kv.format(),
        variant,
    }))
}

/// Lanes of a workgroup of the causal kernel, one at least per vector of a head.
fn workgroup(shape: AttentionShape) -> usize {
    (shape.head_dim / 4).next_multiple_of(64)
}

/// Lanes of a workgroup of the whole kernel, one per query.
const WHOLE_WORKGROUP: usize = 64;
/// Vectors of the keys, and of the values, that such a workgroup shares: half of the 16 KiB that every device has.
const WHOLE_TILE_VECTORS: usize = 512;

/// Tokens that share a load of K and V: more than one only if all tokens are of one sequence.
fn group_tokens(tokens: usize, variant: Variant) -> usize {
    match variant.barrier_free && tokens > matvec::MAX_TOKENS {
        true => 4,
        false => 1,
    }
}

/// The composed causal kernel for a step of `tokens`: there is one for batches and one for longer steps.
fn causal_kernel(
    shape: AttentionShape,
    tokens: usize,
    has_sinks: bool,
    format: KvFormat,
    variant: Variant,
) -> Kernel {
    let kernel = common("attention", shape, format).constant("HEAD_DIM", shape.head_dim);
    let kernel = with_sinks(kernel, has_sinks);
    if variant.barrier_free {
        let lanes = variant.lanes_per_row as usize;
        variant
            .enable(kernel)
            .constant("LANES", lanes)
            .constant("GROUP_TOKENS", group_tokens(tokens, variant))
            .constant("LANE_VECTORS", (shape.head_dim / 4).div_ceil(lanes))
            .module(wgsl!("attention_lanes"))
    } else {
        kernel
            .constant("WORKGROUP", workgroup(shape))
            .module(wgsl!("attention"))
    }
}

/// The composed whole kernel.
fn whole_kernel(shape: AttentionShape, format: KvFormat) -> Kernel {
    let vectors = shape.head_dim / 4;
    common("whole_attention", shape, format)
        .constant("VECTORS", vectors)
        .constant("WORKGROUP", WHOLE_WORKGROUP)
        .constant("TILE", (WHOLE_TILE_VECTORS / vectors).clamp(1, 32))
        .module(wgsl!("whole_attention"))
}

/// The bindings, sizes and modules of both kernels.
fn common(name: &str, shape: AttentionShape, format: KvFormat) -> Kernel {
    let kernel = Kernel::new(format!("{name}_{}", format.name()))
        .binding("q")
        .binding("kv")
        .binding("out")
        .binding("step")
        .constant("HEADS", shape.heads)
        .constant("KV_HEADS", shape.kv_heads)
        .constant("Q_DIM", shape.q_dim());
    in_step(kernel, shape)
        .module(wgsl!("shared/kv/place"))
        .module(format.load_wgsl())
        .module(wgsl!("shared/soft_cap"))
}

/// Declares the constants of the window, the soft cap and the step, and adds their modules.
pub(super) fn in_step(kernel: Kernel, shape: AttentionShape) -> Kernel {
    let kernel = kernel.constant_f32("SOFT_CAP", shape.soft_cap.unwrap_or(0.0));
    let tokens = shape.window.map_or(u32::MAX as usize, Window::tokens);
    let kernel = kernel.constant("WINDOW", tokens);
    let kernel = match shape.window {
        Some(Window::Chunk(_)) => kernel.module(wgsl!("shared/window/chunk")),
        Some(Window::Sliding(_)) | None => kernel.module(wgsl!("shared/window/sliding")),
    };
    step::layout(kernel).module(wgsl!("shared/step"))
}

/// Adds the module of the sinks, and their binding if there are some.
pub(super) fn with_sinks(kernel: Kernel, has_sinks: bool) -> Kernel {
    match has_sinks {
        true => kernel.binding("sinks").module(wgsl!("shared/sink/sinks")),
        false => kernel.module(wgsl!("shared/sink/none")),
    }
}

fn launch(args: Arguments<Cube>) -> CubeTensor {
    let Arguments {
        shape,
        format,
        variant,
        ..
    } = args;
    let [tokens, dim] = args.q.shape().dims();
    let out = output(&args.q, [tokens, dim]);
    let mut buffers = vec![&args.q, &args.kv, &out, &args.step];
    buffers.extend(args.sinks.as_ref());
    let has_sinks = args.sinks.as_ref().is_some();
    let (kernel, queries) = match args.sight {
        Sight::Causal => (
            causal_kernel(shape, tokens, has_sinks, format, variant),
            group_tokens(tokens, variant),
        ),
        Sight::Whole => (whole_kernel(shape, format), WHOLE_WORKGROUP),
    };
    let grid = [shape.heads as u32, tokens.div_ceil(queries) as u32, 1];
    kernel.launch(&buffers, grid);
    out
}

impl Sight {
    /// The tokens that the query of a row of the step sees.
    fn seen(self, words: &[u32], row: usize, shape: AttentionShape) -> Range<usize> {
        let position = step::row_position(words, row);
        match self {
            Sight::Causal => shape.window_begin(position)..step::row_end(words, row),
            Sight::Whole => {
                let window = shape.window.map_or(usize::MAX, Window::tokens);
                let first = step::row_first(words, row).max((position + 1).saturating_sub(window));
                first..step::row_length(words, row).min(position.saturating_add(window))
            }
        }
    }

    /// The same as [`seen`](Self::seen) without the window, for the CPU device.
    fn row<'a>(self, words: &[u32], token: usize, row: Row<'a>) -> Row<'a> {
        match self {
            Sight::Causal => row.seeing(step::row_end(words, token)),
            Sight::Whole => row
                .seeing(step::row_length(words, token))
                .since(step::row_first(words, token)),
        }
    }
}

pub(super) fn twin(args: Arguments<Flex>) -> FlexTensor {
    let Arguments { shape, format, .. } = args;
    let [tokens, dim] = args.q.shape().dims();
    let (q, memory) = (args.q.storage::<f32>(), args.kv.storage::<u32>());
    let words = args.step.storage::<u32>();
    let sinks = args.sinks.as_ref().map(|sinks| sinks.storage::<f32>());
    let soft_capped = |score: f32| match shape.soft_cap {
        Some(cap) => cap * (score / cap).tanh(),
        None => score,
    };
    let mut out = vec![0.0; tokens * dim];
    let mut vector = vec![0.0; shape.head_dim];
    for token in 0..(words[step::TOKENS] as usize).min(tokens) {
        let table = step::row_table(words, token);
        let seen = args.sight.seen(words, token, shape);
        for head in 0..shape.heads {
            let at = token * dim + head * shape.head_dim;
            let query = &q[at..at + shape.head_dim];
            let kv_head = head / (shape.heads / shape.kv_heads);
            let load = |other: usize, value: usize, vector: &mut [f32]| {
                let place = step::kv_place(words, table, other);
                let heads = [shape.kv_heads, shape.head_dim];
                let at = format.head_at(place, value, kv_head, heads);
                format.load(&memory[at..], 0, vector);
            };
            let scores = seen.clone().map(|other| {
                load(other, 0, &mut vector);
                soft_capped(dot(query, &vector))
            });
            let scores: Vec<f32> = scores.collect();
            let sink = sinks.map_or(f32::NEG_INFINITY, |sinks| sinks[head]);
            let peak = scores.iter().copied().fold(sink, f32::max);
            let weights: Vec<f32> = scores.iter().map(|score| (score - peak).exp()).collect();
            let total = weights.iter().sum::<f32>() + (sink - peak).exp();
            for (other, weight) in seen.clone().zip(&weights) {
                load(other, 1, &mut vector);
                let out = &mut out[at..at + shape.head_dim];
                add_scaled(out, weight / total, &vector);
            }
        }
    }
    twin_output(out, [tokens, dim])
}

fn cpu(args: Arguments<Flex>) -> FlexTensor {
    let [tokens, dim] = args.q.shape().dims();
    let words = args.step.storage();
    let rows = step::cpu_rows(words, tokens).into_iter().enumerate();
    let rows = rows.map(|(token, row)| args.sight.row(words, token, row));
    let rows: Vec<Row> = rows.collect();
    let mut out = vec![0.0; tokens * dim];
    let (q, kv) = (args.q.storage(), args.kv.storage());
    attention_with(
        team::current(),
        q,
        kv,
        &rows,
        args.shape,
        args.format,
        args.sinks.as_ref().map(|sinks| sinks.storage()),
        &mut out,
    );
    twin_output(out, [tokens, dim])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::validation::assert_valid;
    use crate::ops::test_cases::{heads, variants};

    #[test]
    fn causal_kernels_are_valid_wgsl() {
        for (_, shape, _, format) in heads() {
            for variant in variants() {
                let has_sinks = shape.window.is_some();
                let kernel = |tokens| causal_kernel(shape, tokens, has_sinks, format, variant);
                assert_valid([1, 16].map(kernel));
            }
        }
    }

    #[test]
    fn whole_kernels_are_valid_wgsl() {
        let kernels = heads().into_iter();
        assert_valid(kernels.map(|(_, shape, _, format)| whole_kernel(shape, format)));
    }
}
