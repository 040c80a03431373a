//! Causal self-attention with grouped queries and rotary positions.

use burn::{module::Module, tensor::Tensor};

use super::linear::{Linear, Norm};
use crate::ops::{
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
    /// Three, where their formats differ.
    Split([Linear; 3]),
}

impl Qkv {
    /// Dispatches it takes.
    pub fn count(&self) -> usize {
        match self {
            Qkv::Fused(_) => 1,
            Qkv::Split(_) => 3,
        }
    }
}

/// `x + attn_output(attention(attn_qkv(norm(x))))`
#[derive(Module, Debug)]
pub struct Attention {
    /// `attn_norm`
    pub attn_norm: Norm,
    /// `attn_q`, `attn_k`, `attn_v`
    pub attn_qkv: Qkv,
    /// `attn_output`
    pub attn_output: Linear,
    /// `attn_q_norm` and, behind it, `attn_k_norm`, where each head is normalized: `[2 * head_dim]`.
    pub head_norm: Option<Norm>,
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
    /// What queries are multiplied with; most models have `1 / sqrt(head_dim)`.
    pub q_scale: f32,
}

impl Attention {
    /// `x` `[tokens, dim]`; writes this step's keys and values to `kv`.
    pub fn forward(
        &self,
        x: Tensor<2>,
        rope_freqs: &Tensor<1>,
        kv: &mut KvMemory,
        step: &Step,
    ) -> Tensor<2> {
        let (qkv, at, stride) = self.project(x.clone());
        let (shape, variant) = (self.shape, self.attn_output.variant);
        let rope = RopeShape {
            heads: shape.heads,
            kv_heads: shape.kv_heads,
            head_dim: shape.head_dim,
            neox: self.rotation.neox,
            rope_dims: self.rotation.rope_dims,
            q_scale: self.rotation.q_scale,
            at,
            stride,
        };
        let norm = self.head_norm.as_ref();
        let norm = norm.map(|norm| (norm.weight.clone(), norm.eps));
        let freqs = rope_freqs.clone();
        let attended = if attention_split::serves(x.dims()[0], variant) {
            attention_split(qkv, norm, freqs, kv, step, rope, shape)
        } else {
            let q = rope_kv(qkv, norm, freqs, kv, step, rope);
            attention(q, kv, step, shape, variant)
        };
        self.attn_output.onto(x, attended)
    }

    /// Dispatches of a decode step: the projections, rotation and attention or their two halves, and
    /// the output.
    pub fn decode_dispatches(&self) -> usize {
        self.attn_qkv.count() + 3
    }

    /// Queries, keys and values, each with its first column and the length of its rows.
    fn project(&self, x: Tensor<2>) -> ([Tensor<2>; 3], [usize; 3], [usize; 3]) {
        let (q_dim, kv_dim) = (self.shape.q_dim(), self.shape.kv_dim());
        match &self.attn_qkv {
            Qkv::Fused(linear) => {
                let qkv = linear.normed(x, &self.attn_norm);
                let at = [0, q_dim, q_dim + kv_dim];
                ([qkv.clone(), qkv.clone(), qkv], at, [q_dim + 2 * kv_dim; 3])
            }
            Qkv::Split(linears) => {
                let qkv = std::array::from_fn(|i| linears[i].normed(x.clone(), &self.attn_norm));
                (qkv, [0; 3], [q_dim, kv_dim, kv_dim])
            }
        }
    }
}
