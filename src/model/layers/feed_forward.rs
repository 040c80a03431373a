//! The feed-forward layers, with their norms and residual connections.

use burn::tensor::{Int, Tensor};

use super::{
    experts::ExpertFeedForward,
    linear::{Join, Limits, Linear, Norm},
    low_rank::LowRank,
};
use crate::ops::{
    Activation, Finish, Variant,
    gate_columns::gate_columns,
    gated_product::{gated_matmul, gated_matvec},
    matrix::Matrix,
    matvec::MAX_TOKENS,
    sigmoid_gate::{GateShape, sigmoid_gate},
};

/// A feed-forward layer of one of the kinds. Boxed, so that a layer is small: a load moves it on the stack.
#[derive(Debug, Clone)]
pub enum FeedForward {
    /// Gated.
    Gated(Box<GatedFeedForward>),
    /// One matrix up and one down, without a gate.
    Plain(Box<PlainFeedForward>),
    /// A mixture of experts.
    Experts(Box<ExpertFeedForward>),
    /// Gated, and a mixture of experts beside it.
    Mixed(Box<MixedFeedForward>),
    /// A mixture of experts beside a feed-forward that all tokens use.
    Shared(Box<SharedExperts>),
}

impl FeedForward {
    /// `x` `[tokens, dim]`.
    pub fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        match self {
            FeedForward::Gated(layer) => layer.forward(x),
            FeedForward::Plain(layer) => layer.forward(x),
            FeedForward::Experts(layer) => layer.forward(x),
            FeedForward::Mixed(layer) => layer.forward(x),
            FeedForward::Shared(layer) => layer.forward(x),
        }
    }

    /// Uses the kernels of `variant` from now on.
    pub fn set_variant(&mut self, variant: Variant) {
        match self {
            FeedForward::Gated(layer) => layer.set_variant(variant),
            FeedForward::Plain(layer) => {
                set_norms(&mut layer.ffn_norm, &mut layer.join, variant);
                layer.ffn_up.variant = variant;
                layer.ffn_down.variant = variant;
            }
            FeedForward::Experts(layer) => layer.set_variant(variant),
            FeedForward::Mixed(layer) => {
                layer.experts.set_variant(variant);
                layer.dense_norm.variant = variant;
                layer.experts_norm.variant = variant;
                layer.dense.set_variant(variant);
            }
            FeedForward::Shared(layer) => {
                layer.routed.set_variant(variant);
                layer.shared.set_variant(variant);
                let gate = layer.gate.iter_mut();
                gate.for_each(|gate| gate.variant = variant);
            }
        }
    }
}

fn set_norms(before: &mut Option<Norm>, join: &mut Join, variant: Variant) {
    let norms = [before, &mut join.norm, &mut join.sum_norm];
    let norms = norms.into_iter().flatten();
    norms.for_each(|norm| norm.variant = variant);
}

/// `x + ffn_down(act(ffn_gate(norm(x))) * ffn_up(norm(x)))`
#[derive(Debug, Clone)]
pub struct GatedFeedForward {
    /// `ffn_norm`
    pub ffn_norm: Option<Norm>,
    /// `ffn_gate`, `[ffn_dim, dim]`
    pub ffn_gate: Matrix,
    /// `ffn_up`, `[ffn_dim, dim]`
    pub ffn_up: Matrix,
    /// The biases of `ffn_gate` and `ffn_up`, `[1, 2 * ffn_dim]`. Models with adapters have none.
    pub biases: Option<Tensor<2>>,
    /// Adapters of the rows of `ffn_gate`, followed by those of `ffn_up`.
    pub low_rank: Option<Box<LowRank>>,
    /// The limits of the values around both.
    pub limits: Option<Box<GateLimits>>,

    /// `ffn_sub_norm`, of the input of `ffn_down`.
    pub sub_norm: Option<Norm>,
    /// `ffn_down`, `[dim, ffn_dim]`
    pub ffn_down: Linear,
    /// The sum with the residual stream, after `post_ffw_norm` if there is one.
    pub join: Join,
    pub activation: Activation,
    pub variant: Variant,
}

/// Limits of the values around the two matrices of a gated feed-forward.
#[derive(Debug, Clone)]
pub struct GateLimits {
    pub gate: Limits,
    pub up: Limits,
    /// Zero, the column of `ffn_up`'s products that the first one of `ffn_gate` is multiplied by, `[1]`.
    pub first_column: Tensor<1, Int>,
}

impl GatedFeedForward {
    fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        let hidden = self.hidden(x.clone());
        let sub_norm = self.sub_norm.as_ref();
        self.join.onto_normed(x, &self.ffn_down, hidden, sub_norm)
    }

    fn set_variant(&mut self, variant: Variant) {
        set_norms(&mut self.ffn_norm, &mut self.join, variant);
        let sub_norm = self.sub_norm.iter_mut();
        sub_norm.for_each(|norm| norm.variant = variant);
        self.variant = variant;
        self.ffn_down.variant = variant;
    }

    /// The input of `ffn_down`.
    fn hidden(&self, x: Tensor<2>) -> Tensor<2> {
        let (gate, up) = (&self.ffn_gate, &self.ffn_up);
        let (activation, variant) = (self.activation, self.variant);
        if let Some(limits) = &self.limits {
            return self.limited(x, limits);
        }
        let (input, norm) = Norm::input(self.ffn_norm.as_ref(), x.clone());
        let low_rank = self.low_rank.as_ref();
        let delta = low_rank.map(|it| it.delta(input.clone(), norm.clone(), variant));
        let delta = delta.or_else(|| self.biases.clone());
        if x.dims()[0] <= MAX_TOKENS {
            gated_matvec(input, norm, gate, up, delta, activation, variant)
        } else {
            gated_matmul(input, gate, up, delta, activation, variant)
        }
    }

    /// Same as [`hidden`](Self::hidden), between limits: one matrix after the other.
    fn limited(&self, x: Tensor<2>, limits: &GateLimits) -> Tensor<2> {
        let x = match &self.ffn_norm {
            Some(norm) => norm.apply(x),
            None => x,
        };
        let half = |weight: &Matrix, limits: &Limits, finish: Finish| {
            let linear = Linear {
                weight: weight.clone(),
                bias: None,
                low_rank: None,
                limits: Some(Box::new(limits.clone())),
                variant: self.variant,
            };
            linear.product(x.clone(), None, finish, None)
        };
        let activation = Finish::Activation(self.activation);
        let gate = half(&self.ffn_gate, &limits.gate, activation);
        let up = half(&self.ffn_up, &limits.up, Finish::Plain);
        gate_columns(gate, up, limits.first_column.clone())
    }
}

/// `x + norm(dense_norm(dense(x)) + experts_norm(experts(x)))`, times the factor of the join.
#[derive(Debug, Clone)]
pub struct MixedFeedForward {
    /// The dense feed-forward. Its join has the norm of the sum, `post_ffw_norm`.
    pub dense: GatedFeedForward,
    /// `post_ffw_norm_1`
    pub dense_norm: Norm,
    /// The mixture of experts. The norm of its input is `pre_ffw_norm_2`.
    pub experts: ExpertFeedForward,
    /// `post_ffw_norm_2`
    pub experts_norm: Norm,
}

impl MixedFeedForward {
    fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        let hidden = self.dense.hidden(x.clone());
        let dense = self
            .dense
            .ffn_down
            .product(hidden, None, Finish::Plain, None);
        let dense = self.dense_norm.apply(dense);
        let experts = self.experts.output(x.clone());
        let sum = self.experts_norm.plus(experts, Some(dense));
        self.dense.join.add(x, sum)
    }
}

/// `x + routed(x) + shared(x)`, where a gate may weigh the output of the second.
#[derive(Debug, Clone)]
pub struct SharedExperts {
    /// The experts that a router chooses.
    pub routed: ExpertFeedForward,
    /// `ffn_gate_shexp`, `ffn_up_shexp`, `ffn_down_shexp`, with the same norm. Its join has no norms.
    pub shared: GatedFeedForward,
    /// `ffn_gate_inp_shexp`, `[1, dim]`: a sigmoid of its product is the weight.
    pub gate: Option<Linear>,
}

impl SharedExperts {
    fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        let routed = self.routed.forward(x.clone());
        let hidden = self.shared.hidden(x.clone());
        let Some(gate) = &self.gate else {
            return self.shared.join.onto(routed, &self.shared.ffn_down, hidden);
        };
        let norm = self.shared.ffn_norm.as_ref();
        let weights = gate.normed(x, norm, Finish::Plain);
        let shared = self.shared.ffn_down.normed(hidden, None, Finish::Plain);
        let shape = GateShape {
            is_per_token: true,
            at: 0,
            stride: 1,
        };
        sigmoid_gate(shared, weights, Some(routed), shape)
    }
}

/// `x + ffn_down(act(ffn_up(norm(x))))`
#[derive(Debug, Clone)]
pub struct PlainFeedForward {
    /// `ffn_norm`
    pub ffn_norm: Option<Norm>,
    /// `ffn_up`, `[ffn_dim, dim]`
    pub ffn_up: Linear,
    /// `ffn_down`, `[dim, ffn_dim]`
    pub ffn_down: Linear,
    /// The sum with the residual stream, after `post_ffw_norm` if there is one.
    pub join: Join,
    pub activation: Activation,
}

impl PlainFeedForward {
    fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        let finish = Finish::Activation(self.activation);
        let norm = self.ffn_norm.as_ref();
        let hidden = self.ffn_up.normed(x.clone(), norm, finish);
        self.join.onto(x, &self.ffn_down, hidden)
    }
}
