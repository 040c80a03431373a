//! Causal grouped-query attention over the paged KV cache, for decode and prefill
//! (Vaswani et al. 2017; Ainslie et al. 2023, <https://arxiv.org/abs/2305.13245>).

use std::ops::Range;

use burn::backend::flex::FlexTensor;
use burn::{
    backend::{
        Backend, Cube, Dispatch, ExtensionType, Flex, TensorMetadata,
        tensor::{FloatTensor, IntTensor},
    },
    tensor::Tensor,
};
use burn_wgpu::CubeTensor;
pub use inpage_cpu::lanes::attention::AttentionShape;
use inpage_cpu::{
    lanes::{attention::attention_with, kv::Row},
    team,
};

use super::{
    kv_memory::{KvFormat, KvMemory},
    matvec,
    op::{Maybe, op, output, twin_output},
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
    pub(super) shape: AttentionShape,
    pub(super) format: KvFormat,
    pub(super) variant: Variant,
}

op! {
    cpu if (|it| it.variant.cpu);
    fn attention(Arguments) -> FloatTensor<Self>
}

/// Lanes of a workgroup, one at least per vector of a head.
fn workgroup(shape: AttentionShape) -> usize {
    (shape.head_dim / 4).next_multiple_of(64)
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
    Tensor::from_dispatch(Dispatch::attention(Arguments {
        q: q.into_dispatch(),
        kv: kv.words().into_dispatch(),
        step: step.words().into_dispatch(),
        sinks: sinks.into(),
        shape,
        format: kv.format(),
        variant,
    }))
}

/// Tokens that share a load of K and V: more than one only if all tokens are of one sequence.
fn group_tokens(tokens: usize, variant: Variant) -> usize {
    match variant.barrier_free && tokens > matvec::MAX_TOKENS {
        true => 4,
        false => 1,
    }
}

/// The composed kernel for a step of `tokens`: there is one for batches and one for longer steps.
pub fn kernel(
    shape: AttentionShape,
    tokens: usize,
    has_sinks: bool,
    format: KvFormat,
    variant: Variant,
) -> Kernel {
    let kernel = Kernel::new(format!("attention_{}", format.name()))
        .binding("q")
        .binding("kv")
        .binding("out")
        .binding("step")
        .constant("HEADS", shape.heads)
        .constant("KV_HEADS", shape.kv_heads)
        .constant("HEAD_DIM", shape.head_dim)
        .constant("Q_DIM", shape.q_dim())
        .constant("KV_DIM", shape.kv_dim());
    let kernel = step::layout(sight(kernel, shape))
        .module(wgsl!("shared/step"))
        .module(format.load_wgsl())
        .module(wgsl!("shared/soft_cap"));
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

/// Adds the module of the sinks, and their binding if there are some.
pub(super) fn with_sinks(kernel: Kernel, has_sinks: bool) -> Kernel {
    match has_sinks {
        true => kernel.binding("sinks").module(wgsl!("shared/sink/sinks")),
        false => kernel.module(wgsl!("shared/sink/none")),
    }
}

/// Declares the constants of the window and the soft cap.
pub(super) fn sight(kernel: Kernel, shape: AttentionShape) -> Kernel {
    kernel
        .constant("WINDOW", shape.window.unwrap_or(u32::MAX as usize))
        .constant_f32("SOFT_CAP", shape.soft_cap.unwrap_or(0.0))
}

pub(super) fn launch(args: Arguments<Cube>) -> CubeTensor {
    let [tokens, dim] = args.q.shape().dims();
    let out = output(&args.q, [tokens, dim]);
    let groups = tokens.div_ceil(group_tokens(tokens, args.variant));
    let grid = [args.shape.heads as u32, groups as u32, 1];
    let mut buffers = vec![&args.q, &args.kv, &out, &args.step];
    buffers.extend(args.sinks.as_ref());
    let has_sinks = args.sinks.as_ref().is_some();
    kernel(args.shape, tokens, has_sinks, args.format, args.variant).launch(&buffers, grid);
    out
}

pub(super) fn twin(args: Arguments<Flex>) -> FlexTensor {
    let shape = args.shape;
    attended(args, |words, row| {
        shape.window_begin(step::row_position(words, row))..step::row_end(words, row)
    })
}

/// The twin of an attention. `seen` gives the tokens that the query of a row of the step sees.
pub(super) fn attended(
    args: Arguments<Flex>,
    seen: impl Fn(&[u32], usize) -> Range<usize>,
) -> FlexTensor {
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
        for head in 0..shape.heads {
            let at = token * dim + head * shape.head_dim;
            let query = &q[at..at + shape.head_dim];
            let kv_at = head / (shape.heads / shape.kv_heads) * shape.head_dim;
            let load = |other: usize, value: usize, vector: &mut [f32]| {
                let at = step::kv_row(words, table, other, value, shape.kv_dim()) + kv_at;
                format.load(memory, at, vector);
            };
            let scores = seen(words, token).map(|other| {
                load(other, 0, &mut vector);
                let products = query.iter().zip(&vector).map(|(a, b)| a * b);
                soft_capped(products.sum())
            });
            let scores: Vec<f32> = scores.collect();
            let sink = sinks.map_or(f32::NEG_INFINITY, |sinks| sinks[head]);
            let peak = scores.iter().copied().fold(sink, f32::max);
            let weights: Vec<f32> = scores.iter().map(|score| (score - peak).exp()).collect();
            let total = weights.iter().sum::<f32>() + (sink - peak).exp();
            for (other, weight) in seen(words, token).zip(&weights) {
                load(other, 1, &mut vector);
                for (o, v) in out[at..at + shape.head_dim].iter_mut().zip(&vector) {
                    *o += weight / total * v;
                }
            }
        }
    }
    twin_output(out, [tokens, dim])
}

fn cpu(args: Arguments<Flex>) -> FlexTensor {
    attended_on_cpu(args, |words, token, row| {
        row.seeing(step::row_end(words, token))
    })
}

/// An attention on the CPU device. `sight` changes a row of the step, which is causal, to what its query sees.
pub(super) fn attended_on_cpu(
    args: Arguments<Flex>,
    sight: impl for<'a> Fn(&[u32], usize, Row<'a>) -> Row<'a>,
) -> FlexTensor {
    let [tokens, dim] = args.q.shape().dims();
    let words = args.step.storage();
    let rows = step::cpu_rows(words, tokens).into_iter().enumerate();
    let rows: Vec<Row> = rows.map(|(token, row)| sight(words, token, row)).collect();
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
    fn kernels_are_valid_wgsl() {
        for (_, shape, _, format) in heads() {
            for variant in variants() {
                let has_sinks = shape.window.is_some();
                let kernel = |tokens| kernel(shape, tokens, has_sinks, format, variant);
                assert_valid([1, 16].map(kernel));
            }
        }
    }
}
