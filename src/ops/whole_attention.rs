//! Grouped-query attention without a causal mask (Vaswani et al. 2017; Devlin et al. 2018,
//! <https://arxiv.org/abs/1810.04805>): the tokens of a sequence attend to each other. For encoders.

use burn::backend::flex::FlexTensor;
use burn::{
    backend::{
        Dispatch, TensorMetadata,
        tensor::{FloatTensor, IntTensor},
    },
    tensor::Tensor,
};
use burn_wgpu::CubeTensor;
use inpage_cpu::{
    lanes::attention::{AttentionShape, attention_with},
    team,
};

use super::{
    kv_memory::{KvFormat, KvMemory},
    op::{op, output, twin_output},
    step::{self, Step},
    variant::Variant,
};
use crate::kernel::{Kernel, wgsl};

op! {
    cpu if (variant.cpu);
    fn whole_attention(
        q: FloatTensor<Self>,
        kv: IntTensor<Self>,
        step: IntTensor<Self>,
        shape: AttentionShape,
        format: KvFormat,
        variant: Variant,
    ) -> FloatTensor<Self>
}

const WORKGROUP: usize = 64;
/// Vectors of the keys, and of the values, that a workgroup shares: half of the 16 KiB that every device has.
const TILE_VECTORS: usize = 512;

/// Attends with rotated, scaled queries `[tokens, heads * head_dim]` to all tokens of each query's segment, or,
/// with a window of n, to those less than n away on either side. The segments of the step are whole sequences, which may
/// begin within a page.
/// Returns the same shape; padding rows are undefined.
pub fn whole_attention(
    q: Tensor<2>,
    kv: &KvMemory,
    step: &Step,
    shape: AttentionShape,
    variant: Variant,
) -> Tensor<2> {
    Tensor::from_dispatch(Dispatch::whole_attention(
        q.into_dispatch(),
        kv.words().into_dispatch(),
        step.words().into_dispatch(),
        shape,
        kv.format(),
        variant,
    ))
}

/// The composed kernel.
pub fn kernel(shape: AttentionShape, format: KvFormat) -> Kernel {
    let vectors = shape.head_dim / 4;
    let kernel = Kernel::new(format!("whole_attention_{}", format.name()))
        .binding("q")
        .binding("kv")
        .binding("out")
        .binding("step")
        .constant("HEADS", shape.heads)
        .constant("KV_HEADS", shape.kv_heads)
        .constant("VECTORS", vectors)
        .constant("Q_DIM", shape.q_dim())
        .constant("KV_DIM", shape.kv_dim())
        .constant("WORKGROUP", WORKGROUP)
        .constant("TILE", (TILE_VECTORS / vectors).clamp(1, 32))
        .constant("WINDOW", shape.window.unwrap_or(u32::MAX as usize))
        .constant_f32("SOFT_CAP", shape.soft_cap.unwrap_or(0.0));
    step::layout(kernel)
        .module(wgsl!("shared/step"))
        .module(format.load_wgsl())
        .module(wgsl!("shared/soft_cap"))
        .module(wgsl!("whole_attention"))
}

pub(super) fn launch(
    q: CubeTensor,
    kv: CubeTensor,
    step: CubeTensor,
    shape: AttentionShape,
    format: KvFormat,
    _variant: Variant,
) -> CubeTensor {
    let [tokens, dim] = q.shape().dims();
    let out = output(&q, [tokens, dim]);
    let grid = [shape.heads as u32, tokens.div_ceil(WORKGROUP) as u32, 1];
    kernel(shape, format).launch(&[&q, &kv, &out, &step], grid);
    out
}

pub(super) fn twin(
    q: FlexTensor,
    kv: FlexTensor,
    step: FlexTensor,
    shape: AttentionShape,
    format: KvFormat,
    _variant: Variant,
) -> FlexTensor {
    let [tokens, dim] = q.shape().dims();
    let (q, memory, words) = (
        q.storage::<f32>(),
        kv.storage::<u32>(),
        step.storage::<u32>(),
    );
    let window = shape.window.unwrap_or(usize::MAX);
    let soft_capped = |score: f32| match shape.soft_cap {
        Some(cap) => cap * (score / cap).tanh(),
        None => score,
    };
    let mut out = vec![0.0; tokens * dim];
    let mut vector = vec![0.0; shape.head_dim];
    for token in 0..(words[step::TOKENS] as usize).min(tokens) {
        let position = step::row_position(words, token);
        let table = step::row_table(words, token);
        for head in 0..shape.heads {
            let at = token * dim + head * shape.head_dim;
            let query = &q[at..at + shape.head_dim];
            let kv_at = head / (shape.heads / shape.kv_heads) * shape.head_dim;
            let load = |other: usize, value: usize, vector: &mut [f32]| {
                let at = step::kv_row(words, table, other, value, shape.kv_dim()) + kv_at;
                format.load(memory, at, vector);
            };
            let all = step::row_first(words, token)..step::row_length(words, token);
            let seen: Vec<usize> = all.filter(|it| it.abs_diff(position) < window).collect();
            let scores = seen.iter().map(|&other| {
                load(other, 0, &mut vector);
                let products = query.iter().zip(&vector).map(|(a, b)| a * b);
                soft_capped(products.sum())
            });
            let scores: Vec<f32> = scores.collect();
            let peak = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            let weights: Vec<f32> = scores.iter().map(|score| (score - peak).exp()).collect();
            let total: f32 = weights.iter().sum();
            for (&other, weight) in seen.iter().zip(&weights) {
                load(other, 1, &mut vector);
                for (o, v) in out[at..at + shape.head_dim].iter_mut().zip(&vector) {
                    *o += weight / total * v;
                }
            }
        }
    }
    twin_output(out, [tokens, dim])
}

fn cpu(
    q: FlexTensor,
    kv: FlexTensor,
    step: FlexTensor,
    shape: AttentionShape,
    format: KvFormat,
    _variant: Variant,
) -> FlexTensor {
    let [tokens, dim] = q.shape().dims();
    let words = step.storage();
    let mut rows = step::cpu_rows(words, tokens);
    for (token, row) in rows.iter_mut().enumerate() {
        let first = step::row_first(words, token);
        *row = row.seeing(step::row_length(words, token)).since(first);
    }
    let mut out = vec![0.0; tokens * dim];
    let team = team::current();
    attention_with(
        team,
        q.storage(),
        kv.storage(),
        &rows,
        shape,
        format,
        &mut out,
    );
    twin_output(out, [tokens, dim])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::validation::assert_valid;
    use crate::ops::test_cases::heads;

    #[test]
    fn kernels_are_valid_wgsl() {
        assert_valid(
            heads()
                .into_iter()
                .map(|(_, shape, _, format)| kernel(shape, format)),
        );
    }
}
