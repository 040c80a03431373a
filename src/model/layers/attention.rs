//! Self-attention with grouped queries (Ainslie et al. 2023, <https://arxiv.org/abs/2305.13245>): causal, or of
//! whole sequences.

use burn::tensor::{Int, Tensor};

use super::{
    latent::{HeadMatrices, LatentProjections},
    linear::{Join, Linear, Norm},
};
use crate::ops::{
    Finish, Variant,
    attention::{AttentionShape, attention, whole_attention},
    attention_split::{self, attention_split},
    kv_memory::KvMemory,
    rope_kv::{RopeShape, rope_kv},
    sigmoid_gate::{GateShape, sigmoid_gate},
    step::Step,
};

/// The projections to queries, keys and values.
#[derive(Debug, Clone)]
pub enum Qkv {
    /// One matrix with the rows of all three: one dispatch.
    Fused(Box<Linear>),
    /// A matrix each, if their formats differ or if their products are normalized separately. There is none for values
    /// that are the keys, and only that of the queries for a layer that uses the keys and values of another.
    Split(Vec<Linear>),
    /// Products with latents, from which keys and values follow.
    Latent(Box<LatentProjections>),
}

impl Qkv {
    /// First columns of q, k and v in the tensors of [`Attention::project`], and the row lengths of these.
    pub fn columns(&self, q_dim: usize, kv_dim: usize) -> ([usize; 3], [usize; 3]) {
        match self {
            Qkv::Fused(linear) => {
                let row = linear.weight.shape.rows;
                let values = if row < q_dim + 2 * kv_dim {
                    q_dim
                } else {
                    q_dim + kv_dim
                };
                let keys = if row == q_dim { 0 } else { q_dim };
                ([0, keys, if row == q_dim { 0 } else { values }], [row; 3])
            }
            Qkv::Split(linears) if linears.len() == 1 => ([0; 3], [q_dim; 3]),
            Qkv::Split(_) | Qkv::Latent(_) => ([0; 3], [q_dim, kv_dim, kv_dim]),
        }
    }
}

/// `x + attn_output(attention(attn_qkv(norm(x))))`
#[derive(Debug, Clone)]
pub struct Attention {
    /// `attn_norm`
    pub attn_norm: Option<Norm>,
    /// `attn_q`, `attn_k`, `attn_v`
    pub attn_qkv: Qkv,
    /// The gate, whose sigmoid multiplies the output: the rows of `attn_q` behind those of each head, `[heads * head_dim, dim]`.
    pub gate: Option<Linear>,
    /// `attn_v_b`: from the latent that a head attended to, which is behind rotated elements, to its value.
    pub values: Option<HeadMatrices>,
    /// `attn_sub_norm`, of the input of `attn_output`.
    pub sub_norm: Option<Norm>,
    /// `attn_output`
    pub attn_output: Linear,
    /// The sum with the residual stream, after `post_attention_norm` if there is one.
    pub join: Join,
    /// `attn_q_norm` followed by `attn_k_norm`, if each head is normalized: `[2 * head_dim]`.
    pub head_norm: Option<Norm>,
    /// `attn_q_norm` and `attn_k_norm`, if all heads are normalized together: `[heads * head_dim]`.
    /// Requires [`Qkv::Split`].
    pub row_norms: Option<[Norm; 2]>,
    /// `attn_sinks`, `[heads]`: scores that join each softmax without a value.
    pub sinks: Option<Tensor<1>>,
    /// Turns per position (see [`crate::ops::rope_kv::turns`]), `[rope_dims / 2]`.
    pub rope_turns: Tensor<1, Int>,
    /// Whether tokens attend to each other; the segments of a step are whole sequences.
    pub is_whole: bool,
    pub shape: AttentionShape,
    pub rope: RopeShape,
}

impl Attention {
    /// `x` `[tokens, dim]`. Writes the K and V of this step to `kv`.
    pub fn forward(&self, x: Tensor<2>, kv: &mut KvMemory, step: &Step) -> Tensor<2> {
        let qkv = self.project(x.clone());
        let (shape, rope, variant) = (self.shape, self.rope, self.attn_output.variant);
        let norm = self.head_norm.as_ref();
        let norm = norm.map(|norm| (norm.weight.clone(), norm.eps));
        let (turns, sinks) = (self.rope_turns.clone(), self.sinks.clone());
        let attended = if self.is_whole {
            let q = rope_kv(qkv, norm, turns, kv, step, rope, variant);
            whole_attention(q, kv, step, shape, variant)
        } else if attention_split::serves(x.dims()[0], shape.head_dim, variant) {
            attention_split(qkv, norm, turns, kv, step, sinks, rope, shape)
        } else {
            let q = rope_kv(qkv, norm, turns, kv, step, rope, variant);
            attention(q, kv, step, sinks, shape, variant)
        };
        let attended = match &self.values {
            Some(values) => values.apply(attended, None),
            None => attended,
        };
        let attended = match &self.gate {
            Some(gate) => {
                let gates = gate.normed(x.clone(), self.attn_norm.as_ref(), Finish::Plain);
                let shape = GateShape {
                    is_per_token: false,
                    at: 0,
                    stride: gates.dims()[1],
                };
                sigmoid_gate(attended, gates, None, shape)
            }
            None => attended,
        };
        let sub_norm = self.sub_norm.as_ref();
        self.join
            .onto_normed(x, &self.attn_output, attended, sub_norm)
    }

    /// Writes the K and V of `x` `[tokens, dim]` to `kv`, and computes nothing else.
    pub fn remember(&self, x: Tensor<2>, kv: &mut KvMemory, step: &Step) {
        let norm = self.head_norm.as_ref();
        let norm = norm.map(|norm| (norm.weight.clone(), norm.eps));
        let (turns, variant) = (self.rope_turns.clone(), self.attn_output.variant);
        rope_kv(self.project(x), norm, turns, kv, step, self.rope, variant);
    }

    /// Uses the kernels of `variant` from now on.
    pub fn set_variant(&mut self, variant: Variant) {
        match &mut self.attn_qkv {
            Qkv::Fused(linear) => linear.variant = variant,
            Qkv::Split(linears) => linears.iter_mut().for_each(|it| it.variant = variant),
            Qkv::Latent(latent) => latent.set_variant(variant),
        }
        self.attn_output.variant = variant;
        let gate = self.gate.iter_mut();
        gate.for_each(|gate| gate.variant = variant);
        let norms = self.attn_norm.iter_mut().chain(&mut self.join.norm);
        let norms = norms.chain(&mut self.sub_norm);
        let norms = norms.chain(&mut self.join.sum_norm);
        norms
            .chain(self.row_norms.iter_mut().flatten())
            .for_each(|norm| norm.variant = variant);
    }

    /// The tensors that hold queries, keys and values, in the columns of [`Qkv::columns`].
    fn project(&self, x: Tensor<2>) -> [Tensor<2>; 3] {
        let norm = self.attn_norm.as_ref();
        match &self.attn_qkv {
            Qkv::Fused(linear) => {
                let qkv = linear.normed(x, norm, Finish::Plain);
                [qkv.clone(), qkv.clone(), qkv]
            }
            Qkv::Latent(latent) => latent.project(x, norm),
            Qkv::Split(linears) => {
                // A norm that needs a dispatch of its own is computed once for all three.
                let (x, norm) = Norm::input(norm, x);
                let project =
                    |i: usize| linears[i].product(x.clone(), norm.clone(), Finish::Plain, None);
                let (mut q, count) = (project(0), linears.len());
                if count == 1 {
                    return [q.clone(), q.clone(), q];
                }
                let mut k = project(1);
                // Before the norm.
                let v = if count == 2 { k.clone() } else { project(2) };
                if let Some([q_norm, k_norm]) = &self.row_norms {
                    (q, k) = (q_norm.apply(q), k_norm.apply(k));
                }
                [q, k, v]
            }
        }
    }
}
