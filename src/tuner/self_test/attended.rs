//! Attention for the validation, by the kernels for few tokens and for many.

use burn::tensor::{Device, Tensor};

use super::inputs::{rows, wave};
use crate::ops::{
    Variant,
    attention::{AttentionShape, attention},
    attention_split::{self, attention_split},
    kv_memory::{KvFormat, KvMemory},
    matvec::MAX_TOKENS,
    rope_kv::{RopeShape, turns},
    step::{PAGE_TOKENS, Segment, Step},
};

/// Numbers of tokens to compare attention of.
pub(super) fn attended_tokens(variant: Variant) -> &'static [usize] {
    // Without barriers few tokens and many use the same shader module.
    match variant.barrier_free {
        true => &[3],
        false => &[3, 2 * MAX_TOKENS],
    }
}

/// Attention of queries in the middle of a sequence, by the kernels for that number of tokens.
pub(super) fn attended(
    device: &Device,
    tokens: usize,
    format: KvFormat,
    variant: Variant,
) -> Tensor<2> {
    let shape = AttentionShape {
        heads: 4,
        kv_heads: 2,
        head_dim: 40usize.next_multiple_of(format.head_multiple()),
        window: None,
        soft_cap: None,
    };
    let (position, pages) = (2 * PAGE_TOKENS + 5, [1, 2, 0]);
    let kv_dim = shape.kv_dim();
    let kv_rows = wave(pages.len() * 2 * PAGE_TOKENS * kv_dim, 0.7);
    let mut kv = KvMemory::of(&kv_rows, kv_dim, format, device);
    let mut step = Step::new(tokens, pages.len(), device);
    step.set(&[Segment {
        position,
        tokens,
        pages: &pages,
    }]);
    if !attention_split::serves(tokens, variant) {
        let q = rows(tokens, shape.q_dim(), 0.3, device);
        return attention(q, &kv, &step, shape, variant);
    }
    let (q_dim, stride) = (shape.q_dim(), shape.q_dim() + 2 * kv_dim);
    let rope = RopeShape {
        heads: shape.heads,
        kv_heads: shape.kv_heads,
        head_dim: shape.head_dim,
        neox: true,
        rope_dims: shape.head_dim,
        magnitude: 1.0,
        q_scale: 1.0,
        at: [0, q_dim, q_dim + kv_dim],
        stride: [stride; 3],
    };
    let qkv = rows(tokens, stride, 0.3, device);
    let qkv = [qkv.clone(), qkv.clone(), qkv];
    let radians: Vec<f64> = (0..shape.head_dim / 2).map(|i| 0.1 * i as f64).collect();
    let turns = turns(&radians, device);
    attention_split(qkv, None, turns, &mut kv, &step, rope, shape)
}
