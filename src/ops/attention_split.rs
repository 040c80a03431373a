//! Rotation, write to the KV memory and attention for a few tokens at once, split over the context so
//! that one token keeps a whole GPU busy (flash decoding, Dao et al. 2023,
//! <https://crfm.stanford.edu/2023/10/12/flashdecoding.html>).

use burn::backend::flex::FlexTensor;
use burn::{
    backend::{Cube, Dispatch, Flex, TensorMetadata},
    tensor::{Int, Tensor},
};
use burn_wgpu::CubeTensor;

use super::{
    Variant,
    attention::{self, AttentionShape},
    backend::{Maybe, Ops, maybe, output},
    kernel::Kernel,
    kv_memory::{KvFormat, KvMemory},
    matvec, rope_kv,
    rope_kv::RopeShape,
    shader,
    step::{self, Step},
};

/// Tokens that a workgroup attends to at a time, and its lanes.
const BLOCK_TOKENS: usize = 128;
/// Workgroups that keep a GPU busy for one token; more only cost where the context is short.
const BUSY_WORKGROUPS: usize = 256;
/// Splits of a long context, few where many heads keep the GPU busy.
const MAX_SPLITS: std::ops::RangeInclusive<usize> = 16..=64;
/// Lanes of the workgroup that joins splits.
const WORKGROUP: usize = 64;
/// Workgroup memory that every device has.
const WORKGROUP_BYTES: usize = 16_384;
/// Lanes that share the scores of a query.
const STRIPES: usize = 8;
/// Query heads that a workgroup attends for at most: their outputs are in its lanes' registers.
const MAX_GROUP: usize = 8;

/// Whether it serves steps of `tokens` rows: not where barriers are dear, nor more rows than a batch has.
pub fn serves(tokens: usize, variant: Variant) -> bool {
    tokens <= matvec::MAX_TOKENS && !variant.barrier_free
}

/// What [`rope_kv`](rope_kv::rope_kv) and then [`attention`](attention::attention) do, for steps that
/// it [`serves`].
pub fn attention_split(
    qkv: [Tensor<2>; 3],
    norm: Option<(Tensor<1>, f32)>,
    turns: Tensor<1, Int>,
    kv: &mut KvMemory,
    step: &Step,
    rope: RopeShape,
    shape: AttentionShape,
) -> Tensor<2> {
    assert!(
        qkv[0].dims()[0] <= matvec::MAX_TOKENS,
        "too many tokens for split attention"
    );
    let (format, context_tokens) = (kv.format(), kv.context_tokens());
    let [q, k, v] = qkv.map(Tensor::into_dispatch);
    let (norm, eps) = norm.map_or((None, 0.0), |(norm, eps)| (Some(norm), eps));
    let (out, memory) = Dispatch::attention_split(
        q,
        k,
        v,
        maybe(norm),
        eps,
        turns.into_dispatch(),
        kv.take().into_dispatch(),
        step.words().into_dispatch(),
        rope,
        shape,
        format,
        context_tokens,
    );
    kv.put(Tensor::from_dispatch(memory));
    Tensor::from_dispatch(out)
}

/// Splits of what a query of a sequence of at most `context_tokens` sees: a block each, up to a number
/// that depends on the heads.
fn splits(shape: AttentionShape, context_tokens: usize) -> usize {
    let all = context_tokens.div_ceil(BLOCK_TOKENS);
    // The window's ends may each lie in the middle of a block.
    let seen = shape
        .window
        .map_or(all, |window| (window + BLOCK_TOKENS - 2) / BLOCK_TOKENS + 1);
    let groups = shape.heads / group(shape);
    let most = (BUSY_WORKGROUPS / groups).clamp(*MAX_SPLITS.start(), *MAX_SPLITS.end());
    seen.min(all).clamp(1, most)
}

/// Elements that a token's splits leave to be joined.
pub fn partial_elements(shape: AttentionShape, context_tokens: usize) -> usize {
    splits(shape, context_tokens) * shape.heads * (shape.head_dim + 4)
}

/// Query heads of one key head that share a workgroup, and its loads.
fn group(shape: AttentionShape) -> usize {
    // Keys of the step's own tokens and partial sums are there once, the rest for each head.
    let shared = 4 * (matvec::MAX_TOKENS * shape.head_dim + 4 * BLOCK_TOKENS);
    let of_head = 4 * (shape.head_dim + BLOCK_TOKENS + STRIPES);
    let most = ((WORKGROUP_BYTES - shared) / of_head).clamp(1, MAX_GROUP);
    let per_kv_head = shape.heads / shape.kv_heads;
    let divisors = (1..=most).filter(|group| per_kv_head.is_multiple_of(*group));
    divisors.max().unwrap_or(1)
}

/// The composed kernels: one for splits, one that joins them.
pub fn kernels(
    rope: RopeShape,
    shape: AttentionShape,
    norm_eps: Option<f32>,
    format: KvFormat,
    context_tokens: usize,
) -> [Kernel; 2] {
    let layout = |kernel: Kernel| {
        let kernel = kernel
            .binding("step")
            .constant("BLOCK_TOKENS", BLOCK_TOKENS)
            .constant("SPLITS", splits(shape, context_tokens));
        step::layout(attention::sight(kernel, shape)).module(shader::STEP)
    };
    let split = Kernel::new(format!("attention_split_{}", format.name()))
        .binding("partials")
        .binding("kv")
        .constant("GROUP", group(shape))
        .constant("FRESH_TOKENS", matvec::MAX_TOKENS)
        .constant("STRIPES", STRIPES)
        .constant("STORE_VECTORS", format.store_vectors());
    let split = rope_kv::rotation(layout(split), rope, norm_eps)
        .module(format.load_wgsl())
        .module(format.store_wgsl())
        .module(shader::SOFT_CAP)
        .module(shader::kernel::ATTENTION_SPLIT);
    let merge = Kernel::new("attention_merge")
        .binding("partials")
        .binding("out")
        .constant("HEADS", shape.heads)
        .constant("KV_DIM", shape.kv_dim())
        .constant("HEAD_DIM", shape.head_dim)
        .constant("WORKGROUP", WORKGROUP);
    let merge = layout(merge).module(shader::kernel::ATTENTION_MERGE);
    [split, merge]
}

#[allow(clippy::too_many_arguments)]
pub(super) fn launch(
    [q, k, v]: [CubeTensor; 3],
    norm: Maybe<Cube>,
    eps: f32,
    turns: CubeTensor,
    kv: CubeTensor,
    step: CubeTensor,
    rope: RopeShape,
    shape: AttentionShape,
    format: KvFormat,
    context_tokens: usize,
) -> (CubeTensor, CubeTensor) {
    let [tokens, _] = q.shape().dims();
    let norm = norm.as_ref();
    let [split, merge] = kernels(rope, shape, norm.map(|_| eps), format, context_tokens);
    let partials = output(&q, [tokens, partial_elements(shape, context_tokens)]);
    let mut tensors = vec![&partials, &kv, &step, &q, &k, &v, &turns];
    tensors.extend(norm);
    let groups = shape.heads / group(shape);
    let grid = [groups, splits(shape, context_tokens), tokens].map(|n| n as u32);
    split.launch(&tensors, grid);
    let out = output(&q, [tokens, shape.q_dim()]);
    let workgroups = (shape.q_dim() / 4).div_ceil(WORKGROUP);
    let grid = [workgroups as u32, tokens as u32, 1];
    merge.launch(&[&partials, &out, &step], grid);
    (out, kv)
}

#[allow(clippy::too_many_arguments)]
pub(super) fn twin(
    [q, k, v]: [FlexTensor; 3],
    norm: Maybe<Flex>,
    eps: f32,
    turns: FlexTensor,
    kv: FlexTensor,
    step: FlexTensor,
    rope: RopeShape,
    shape: AttentionShape,
    format: KvFormat,
    _context_tokens: usize,
) -> (FlexTensor, FlexTensor) {
    let (q, kv) = rope_kv::twin(q, k, v, norm, eps, turns, kv, step.clone(), rope, format);
    let out = attention::twin(q, kv.clone(), step, shape, format, Variant::PORTABLE);
    (out, kv)
}
