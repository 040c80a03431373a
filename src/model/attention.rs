//! Causal self-attention with grouped queries and rotary positions.

use burn::{module::Module, tensor::Tensor};

use super::linear::{Linear, Norm};
use crate::ops::{
    attention::{AttentionShape, attention},
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
    #[module(skip)]
    pub heads: usize,
    #[module(skip)]
    pub kv_heads: usize,
    #[module(skip)]
    pub head_dim: usize,
    #[module(skip)]
    pub neox: bool,
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
        let rope = RopeShape {
            heads: self.heads,
            kv_heads: self.kv_heads,
            head_dim: self.head_dim,
            neox: self.neox,
            at,
            stride,
        };
        let q = rope_kv(qkv, rope_freqs.clone(), kv, step, rope);
        let shape = AttentionShape {
            heads: self.heads,
            kv_heads: self.kv_heads,
            head_dim: self.head_dim,
        };
        let attended = attention(q, kv, step, shape, self.attn_output.variant);
        self.attn_output.onto(x, attended)
    }

    /// Queries, keys and values, each with its first column and the length of its rows.
    fn project(&self, x: Tensor<2>) -> ([Tensor<2>; 3], [usize; 3], [usize; 3]) {
        let (q_dim, kv_dim) = (self.heads * self.head_dim, self.kv_heads * self.head_dim);
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
