//! Causal self-attention with grouped queries.

use burn::{
    module::Module,
    tensor::{Int, Tensor},
};

use super::linear::{Join, Linear, Norm};
use crate::ops::{
    Finish, Variant,
    attention::{AttentionShape, attention},
    attention_split::{self, attention_split},
    kv_memory::KvMemory,
    rope_kv::{RopeShape, rope_kv},
    step::Step,
};

/// The projections to queries, keys and values.
#[allow(clippy::large_enum_variant)] // One per layer; an indirection would buy nothing.
#[derive(Module, Debug)]
pub enum Qkv {
    /// One matrix with the rows of all three: one dispatch.
    Fused(Linear),
    /// Three, where their formats differ or rows are normalized.
    Split([Linear; 3]),
}

/// `x + attn_output(attention(attn_qkv(norm(x))))`
#[derive(Module, Debug)]
pub struct Attention {
    /// `attn_norm`
    pub attn_norm: Option<Norm>,
    /// `attn_q`, `attn_k`, `attn_v`
    pub attn_qkv: Qkv,
    /// `attn_output`
    pub attn_output: Linear,
    /// With `post_attention_norm`.
    pub join: Join,
    /// `attn_q_norm` and, behind it, `attn_k_norm`, where each head is normalized: `[2 * head_dim]`.
    pub head_norm: Option<Norm>,
    /// `attn_q_norm` and `attn_k_norm`, where all heads are normalized at once: `[heads * head_dim]`.
    /// Projections are split then.
    pub row_norms: Option<[Norm; 2]>,
    /// Turns per position (see [`crate::ops::rope_kv::turns`]), `[rope_dims / 2]`.
    pub rope_turns: Tensor<1, Int>,
    #[module(skip)]
    pub shape: AttentionShape,
    #[module(skip)]
    pub rotation: Rotation,
}

/// How a layer rotates and scales its queries and keys.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rotation {
    /// Pairs are halves of what is rotated apart, not neighbours.
    pub neox: bool,
    /// Elements of a head that are rotated, its first; a multiple of 4, 0 for none.
    pub rope_dims: usize,
    /// What rotated elements are multiplied with.
    pub magnitude: f32,
    /// What queries are multiplied with; most models have `1 / sqrt(head_dim)`.
    pub q_scale: f32,
}

impl Attention {
    /// `x` `[tokens, dim]`; writes this step's keys and values to `kv`.
    pub fn forward(&self, x: Tensor<2>, kv: &mut KvMemory, step: &Step) -> Tensor<2> {
        let (qkv, at, stride) = self.project(x.clone());
        let (shape, variant) = (self.shape, self.attn_output.variant);
        let rope = RopeShape {
            heads: shape.heads,
            kv_heads: shape.kv_heads,
            head_dim: shape.head_dim,
            neox: self.rotation.neox,
            rope_dims: self.rotation.rope_dims,
            magnitude: self.rotation.magnitude,
            q_scale: self.rotation.q_scale,
            at,
            stride,
        };
        let norm = self.head_norm.as_ref();
        let norm = norm.map(|norm| (norm.weight.clone(), norm.eps));
        let turns = self.rope_turns.clone();
        let attended = if attention_split::serves(x.dims()[0], variant) {
            attention_split(qkv, norm, turns, kv, step, rope, shape)
        } else {
            let q = rope_kv(qkv, norm, turns, kv, step, rope);
            attention(q, kv, step, shape, variant)
        };
        self.join.onto(x, &self.attn_output, attended)
    }

    /// Computes by kernels of another form from now on.
    pub fn set_variant(&mut self, variant: Variant) {
        match &mut self.attn_qkv {
            Qkv::Fused(linear) => linear.variant = variant,
            Qkv::Split(linears) => linears.iter_mut().for_each(|it| it.variant = variant),
        }
        self.attn_output.variant = variant;
    }

    /// Queries, keys and values, each with its first column and the length of its rows.
    fn project(&self, x: Tensor<2>) -> ([Tensor<2>; 3], [usize; 3], [usize; 3]) {
        let (q_dim, kv_dim) = (self.shape.q_dim(), self.shape.kv_dim());
        let norm = self.attn_norm.as_ref();
        match &self.attn_qkv {
            Qkv::Fused(linear) => {
                let qkv = linear.normed(x, norm, Finish::Plain);
                let at = [0, q_dim, q_dim + kv_dim];
                ([qkv.clone(), qkv.clone(), qkv], at, [q_dim + 2 * kv_dim; 3])
            }
            Qkv::Split(linears) => {
                // Once for all three, if it takes a dispatch.
                let (x, norm) = match norm {
                    Some(norm) if norm.bias.is_some() => (norm.apply(x), None),
                    norm => (x, norm),
                };
                let project = |i: usize| linears[i].normed(x.clone(), norm, Finish::Plain);
                let [mut q, mut k, v] = std::array::from_fn(project);
                if let Some([q_norm, k_norm]) = &self.row_norms {
                    (q, k) = (q_norm.apply(q), k_norm.apply(k));
                }
                ([q, k, v], [0; 3], [q_dim, kv_dim, kv_dim])
            }
        }
    }
}
