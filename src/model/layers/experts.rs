//! The feed-forward layer as a mixture of experts: a router sends each token to a few of many gated
//! feed-forwards (Shazeer et al. 2017, <https://arxiv.org/abs/1701.06538>).

use burn::{module::Module, tensor::Tensor};

use super::linear::Norm;
use crate::ops::{
    Activation, Addends, Finish, Variant,
    expert_gated_matmul::expert_gated_matmul,
    expert_gated_matvec::expert_gated_matvec,
    expert_matmul::expert_matmul,
    expert_matvec::expert_matvec,
    group_experts::group_experts,
    matmul::matmul,
    matrix::Matrix,
    matvec::{MAX_TOKENS, matvec},
    route_experts::{RouteShape, Routes, route_experts},
    sum_experts::sum_experts,
};

/// `x + sum(share * ffn_down(act(ffn_gate(norm(x))) * ffn_up(norm(x))))` over the experts that
/// `ffn_gate_inp(norm(x))` chooses. An expert's rows follow the previous one's.
#[derive(Module, Debug)]
pub struct ExpertFeedForward {
    /// `ffn_norm`
    pub ffn_norm: Norm,
    /// `ffn_gate_inp`, the router, `[experts, dim]`
    pub ffn_gate_inp: Matrix,
    /// `exp_probs_b`, `[experts]`: counts for the selection only.
    pub bias: Option<Tensor<1>>,
    /// `ffn_gate_exps`, `[experts * ffn_dim, dim]`
    pub ffn_gate_exps: Matrix,
    /// `ffn_up_exps`, `[experts * ffn_dim, dim]`
    pub ffn_up_exps: Matrix,
    /// `ffn_down_exps`, `[experts * dim, ffn_dim]`
    pub ffn_down_exps: Matrix,
    /// Experts that a token uses.
    #[module(skip)]
    pub used: usize,
    /// The activation function of an expert.
    #[module(skip)]
    pub activation: Activation,
    /// Whether shares are a softmax over the chosen experts (Mixtral, Qwen3) or over all (OLMoE).
    #[module(skip)]
    pub renormalize: bool,
    /// Whether shares are sigmoids instead of a softmax.
    #[module(skip)]
    pub is_sigmoid: bool,
    /// Factor of the output.
    #[module(skip)]
    pub scale: f32,
    /// The kernels that the tuner chose for the device.
    #[module(skip)]
    pub variant: Variant,
}

impl ExpertFeedForward {
    /// `x` `[tokens, dim]`.
    pub fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        if x.dims()[0] <= MAX_TOKENS {
            self.few(x)
        } else {
            self.many(x)
        }
    }

    /// Uses the kernels of `variant` from now on.
    pub fn set_variant(&mut self, variant: Variant) {
        self.ffn_norm.variant = variant;
        self.variant = variant;
    }

    fn few(&self, x: Tensor<2>) -> Tensor<2> {
        let (input, norm) = Norm::input(Some(&self.ffn_norm), x.clone());
        let logits = matvec(
            input.clone(),
            norm.clone(),
            &self.ffn_gate_inp,
            Addends::default(),
            Finish::Plain,
            self.variant,
        );
        let routes = self.route(logits);
        let hidden = expert_gated_matvec(
            input,
            norm,
            &self.ffn_gate_exps,
            &self.ffn_up_exps,
            self.ffn_dim(),
            routes.experts.clone(),
            self.activation,
            self.variant,
        );
        expert_matvec(hidden, &self.ffn_down_exps, routes, x, self.variant)
    }

    fn many(&self, x: Tensor<2>) -> Tensor<2> {
        let [_, dim] = x.dims();
        let normed = self.ffn_norm.apply(x.clone());
        let logits = matmul(
            normed.clone(),
            &self.ffn_gate_inp,
            Addends::default(),
            Finish::Plain,
            self.variant,
        );
        let routes = self.route(logits);
        let groups = group_experts(routes.experts, self.ffn_gate_inp.shape.rows);
        let hidden = expert_gated_matmul(
            normed,
            &self.ffn_gate_exps,
            &self.ffn_up_exps,
            self.ffn_dim(),
            self.used,
            groups.clone(),
            self.activation,
            self.variant,
        );
        let products = expert_matmul(hidden, &self.ffn_down_exps, dim, groups, self.variant);
        sum_experts(products, routes.shares, x)
    }

    fn route(&self, logits: Tensor<2>) -> Routes {
        let shape = RouteShape {
            experts: self.ffn_gate_inp.shape.rows,
            used: self.used,
            renormalize: self.renormalize,
            is_sigmoid: self.is_sigmoid,
            scale: self.scale,
        };
        route_experts(logits, self.bias.clone(), shape)
    }

    fn ffn_dim(&self) -> usize {
        self.ffn_down_exps.shape.cols
    }
}
