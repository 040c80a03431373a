//! The feed-forward layers, with their norms and residual connections.

use burn::{module::Module, tensor::Tensor};

use super::{
    experts::ExpertFeedForward,
    linear::{Join, Linear, Norm},
    low_rank::LowRank,
};
use crate::ops::{
    Activation, Finish, Variant, gated_matmul::gated_matmul, gated_matvec::gated_matvec,
    matrix::Matrix, matvec::MAX_TOKENS,
};

/// A feed-forward layer of one of the kinds.
#[allow(clippy::large_enum_variant)] // One per layer; a box would save nothing.
#[derive(Module, Debug)]
pub enum FeedForward {
    /// Gated.
    Gated(GatedFeedForward),
    /// One matrix up and one down, without a gate.
    Plain(PlainFeedForward),
    /// A mixture of experts.
    Experts(ExpertFeedForward),
}

impl FeedForward {
    /// `x` `[tokens, dim]`.
    pub fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        match self {
            FeedForward::Gated(layer) => layer.forward(x),
            FeedForward::Plain(layer) => layer.forward(x),
            FeedForward::Experts(layer) => layer.forward(x),
        }
    }

    /// Uses the kernels of `variant` from now on.
    pub fn set_variant(&mut self, variant: Variant) {
        let norms = match self {
            FeedForward::Gated(layer) => norms_of(&mut layer.ffn_norm, &mut layer.join),
            FeedForward::Plain(layer) => norms_of(&mut layer.ffn_norm, &mut layer.join),
            FeedForward::Experts(layer) => {
                layer.ffn_norm.variant = variant;
                [&mut None, &mut None, &mut None]
            }
        };
        norms
            .into_iter()
            .flatten()
            .for_each(|norm| norm.variant = variant);
        match self {
            FeedForward::Gated(layer) => {
                layer.variant = variant;
                layer.ffn_down.variant = variant;
            }
            FeedForward::Plain(layer) => {
                layer.ffn_up.variant = variant;
                layer.ffn_down.variant = variant;
            }
            FeedForward::Experts(layer) => layer.variant = variant,
        }
    }
}

fn norms_of<'a>(before: &'a mut Option<Norm>, join: &'a mut Join) -> [&'a mut Option<Norm>; 3] {
    [before, &mut join.norm, &mut join.sum_norm]
}

/// `x + ffn_down(act(ffn_gate(norm(x))) * ffn_up(norm(x)))`
#[derive(Module, Debug)]
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
    pub low_rank: Option<LowRank>,
    /// `ffn_down`, `[dim, ffn_dim]`
    pub ffn_down: Linear,
    /// The sum with the residual stream, after `post_ffw_norm` if there is one.
    pub join: Join,
    #[module(skip)]
    pub activation: Activation,
    #[module(skip)]
    pub variant: Variant,
}

impl GatedFeedForward {
    fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        let (gate, up) = (&self.ffn_gate, &self.ffn_up);
        let (activation, variant) = (self.activation, self.variant);
        let (input, norm) = Norm::input(self.ffn_norm.as_ref(), x.clone());
        let low_rank = self.low_rank.as_ref();
        let delta = low_rank.map(|it| it.delta(input.clone(), norm.clone(), variant));
        let delta = delta.or_else(|| self.biases.clone());
        let hidden = if x.dims()[0] <= MAX_TOKENS {
            gated_matvec(input, norm, gate, up, delta, activation, variant)
        } else {
            gated_matmul(input, gate, up, delta, activation, variant)
        };
        self.join.onto(x, &self.ffn_down, hidden)
    }
}

/// `x + ffn_down(act(ffn_up(norm(x))))`
#[derive(Module, Debug)]
pub struct PlainFeedForward {
    /// `ffn_norm`
    pub ffn_norm: Option<Norm>,
    /// `ffn_up`, `[ffn_dim, dim]`
    pub ffn_up: Linear,
    /// `ffn_down`, `[dim, ffn_dim]`
    pub ffn_down: Linear,
    /// The sum with the residual stream, after `post_ffw_norm` if there is one.
    pub join: Join,
    #[module(skip)]
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
