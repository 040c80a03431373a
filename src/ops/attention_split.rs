//! Rotation, write to the KV cache and attention of a few tokens in one op. It is split over the context,
//! so that one token keeps a whole GPU busy (flash decoding, Dao et al. 2023,
//! <https://crfm.stanford.edu/2023/10/12/flashdecoding.html>).

use super::{
    attention::{self, AttentionShape, Sight},
    kv_memory::{KvFormat, KvMemory},
    matvec,
    op::*,
    rope_kv::{self, RopeShape},
    step::Step,
    variant::Variant,
};
use crate::kernel::{Kernel, wgsl};

/// The arguments of the op.
#[derive(ExtensionType)]
pub(super) struct Arguments<B: Backend> {
    #[extension_type]
    pub(super) unrotated: rope_kv::Arguments<B>,
    #[extension_type]
    pub(super) sinks: Maybe<B>,
    pub(super) shape: AttentionShape,
    pub(super) context_tokens: usize,
}

op! {
    fn attention_split(Arguments) -> (FloatTensor<Self>, IntTensor<Self>)
}

/// Tokens that a workgroup attends to at a time; also its lanes.
const BLOCK_TOKENS: usize = 128;
/// Workgroups that keep a GPU busy for one token. More only add cost in short contexts.
const BUSY_WORKGROUPS: usize = 256;
/// Maximum number of splits of a context: fewer for models whose many heads keep the GPU busy.
const MAX_SPLITS: std::ops::RangeInclusive<usize> = 16..=64;
/// Lanes of a workgroup that joins splits.
const WORKGROUP: usize = 64;
/// Bytes of workgroup memory that every device has.
const WORKGROUP_BYTES: usize = 16_384;
/// Lanes that share the scores of a query.
const STRIPES: usize = 8;
/// Maximum number of query heads of a workgroup: their outputs are in the registers of its lanes.
const MAX_GROUP: usize = 8;

/// Longer heads do not fit into the memory of a workgroup.
const MAX_HEAD_DIM: usize = 256;

/// Whether the op supports steps of `tokens` rows with such heads: at most a batch, and not where barriers are expensive.
pub fn serves(tokens: usize, head_dim: usize, variant: Variant) -> bool {
    tokens <= matvec::MAX_TOKENS && head_dim <= MAX_HEAD_DIM && !variant.barrier_free
}

/// Does what [`rope_kv`](rope_kv::rope_kv) and then [`attention`](attention::attention) do, for steps that
/// it [`serves`].
#[expect(clippy::too_many_arguments, reason = "those of both")]
pub fn attention_split(
    qkv: [Tensor<2>; 3],
    norm: Option<(Tensor<1>, f32)>,
    turns: Tensor<1, Int>,
    kv: &mut KvMemory,
    step: &Step,
    sinks: Option<Tensor<1>>,
    rope: RopeShape,
    shape: AttentionShape,
) -> Tensor<2> {
    matvec::assert_few(qkv[0].dims()[0]);
    let context_tokens = kv.context_tokens();
    let (out, memory) = Dispatch::attention_split(Arguments {
        unrotated: rope_kv::Arguments::new(qkv, norm, turns, kv, step, rope, Variant::PORTABLE),
        sinks: sinks.into(),
        shape,
        context_tokens,
    });
    kv.put(Tensor::from_dispatch(memory));
    Tensor::from_dispatch(out)
}

/// Splits of the tokens that a query sees in a sequence of at most `context_tokens`: one per block, up to a
/// maximum that depends on the heads.
fn splits(shape: AttentionShape, context_tokens: usize) -> usize {
    let all = context_tokens.div_ceil(BLOCK_TOKENS);
    // The window may begin and end in the middle of a block.
    let seen = shape.window.map_or(all, |window| {
        (window.tokens() + BLOCK_TOKENS - 2) / BLOCK_TOKENS + 1
    });
    let groups = shape.heads / group(shape);
    let most = (BUSY_WORKGROUPS / groups).clamp(*MAX_SPLITS.start(), *MAX_SPLITS.end());
    seen.min(all).clamp(1, most)
}

/// Elements of the partial results of a token's splits.
fn partial_elements(shape: AttentionShape, context_tokens: usize) -> usize {
    splits(shape, context_tokens) * shape.heads * (shape.head_dim + 4)
}

/// Query heads of one key head that share a workgroup and its loads.
fn group(shape: AttentionShape) -> usize {
    // Keys of the step's own tokens and partial sums are stored once, the rest once per head.
    let shared = 4 * (matvec::MAX_TOKENS * shape.head_dim + 4 * BLOCK_TOKENS);
    let of_head = 4 * (shape.head_dim + BLOCK_TOKENS + STRIPES);
    let most = ((WORKGROUP_BYTES - shared) / of_head).clamp(1, MAX_GROUP);
    let per_kv_head = shape.heads / shape.kv_heads;
    let divisors = (1..=most).filter(|group| per_kv_head.is_multiple_of(*group));
    divisors.max().unwrap_or(1)
}

/// The composed kernels: one for the splits, one that joins them.
pub fn kernels(
    rope: RopeShape,
    shape: AttentionShape,
    norm_eps: Option<f32>,
    has_sinks: bool,
    format: KvFormat,
    context_tokens: usize,
) -> [Kernel; 2] {
    let layout = |kernel: Kernel| {
        let kernel = kernel
            .binding("step")
            .constant("BLOCK_TOKENS", BLOCK_TOKENS)
            .constant("SPLITS", splits(shape, context_tokens));
        attention::in_step(kernel, shape)
    };
    let split = Kernel::new(format!("attention_split_{}", format.name()))
        .binding("partials")
        .binding("kv")
        .constant("GROUP", group(shape))
        .constant("FRESH_TOKENS", matvec::MAX_TOKENS)
        .constant("STRIPES", STRIPES)
        .constant("STORE_VECTORS", format.store_vectors());
    let split = rope_kv::rotation(layout(split), rope, norm_eps)
        .module(wgsl!("shared/kv/place"))
        .module(format.load_wgsl())
        .module(format.store_wgsl())
        .module(wgsl!("shared/soft_cap"))
        .module(wgsl!("attention_split"));
    let merge = Kernel::new("attention_merge")
        .binding("partials")
        .binding("out")
        .constant("HEADS", shape.heads)
        .constant("HEAD_DIM", shape.head_dim)
        .constant("WORKGROUP", WORKGROUP);
    let merge = attention::with_sinks(layout(merge), has_sinks).module(wgsl!("attention_merge"));
    [split, merge]
}

fn launch(args: Arguments<Cube>) -> (CubeTensor, CubeTensor) {
    let Arguments {
        unrotated,
        shape,
        context_tokens,
        ..
    } = args;
    let heads = &unrotated.heads;
    let [tokens, _] = heads.q.shape().dims();
    let [split, merge] = kernels(
        unrotated.shape,
        shape,
        heads.norm.eps(),
        args.sinks.as_ref().is_some(),
        unrotated.format,
        context_tokens,
    );
    let partials = output(&heads.q, [tokens, partial_elements(shape, context_tokens)]);
    let mut buffers = vec![&partials, &unrotated.kv, &unrotated.step];
    buffers.extend(heads.buffers());
    let splits = splits(shape, context_tokens);
    let grid = [shape.heads / group(shape), splits, tokens].map(|n| n as u32);
    split.launch(&buffers, grid);
    let out = output(&heads.q, [tokens, shape.q_dim()]);
    let workgroups = (shape.q_dim() / 4).div_ceil(WORKGROUP);
    let grid = [workgroups as u32, tokens as u32, 1];
    let mut buffers = vec![&partials, &out, &unrotated.step];
    buffers.extend(args.sinks.as_ref());
    merge.launch(&buffers, grid);
    (out, unrotated.kv)
}

fn twin(args: Arguments<Flex>) -> (FlexTensor, FlexTensor) {
    let (step, format) = (args.unrotated.step.clone(), args.unrotated.format);
    let (q, kv) = rope_kv::twin(args.unrotated);
    let out = attention::twin(attention::Arguments {
        q,
        kv: kv.clone(),
        step,
        sinks: args.sinks,
        sight: Sight::Causal,
        shape: args.shape,
        format,
        variant: Variant::PORTABLE,
    });
    (out, kv)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::validation::assert_valid;
    use crate::ops::test_cases::heads;

    #[test]
    fn kernels_are_valid_wgsl() {
        for (rope, shape, norm_eps, format) in heads() {
            let has_sinks = norm_eps.is_none();
            assert_valid(kernels(rope, shape, norm_eps, has_sinks, format, 4096));
        }
    }
}
