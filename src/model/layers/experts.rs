//! The feed-forward layer as a mixture of experts: a router sends each token to a few of many gated
//! feed-forwards (Shazeer et al. 2017, <https://arxiv.org/abs/1701.06538>).

use burn::tensor::Tensor;

use super::linear::Norm;
use crate::ops::{
    Activation, Addends, Finish, Variant,
    expert_gated_product::{expert_gated_matmul, expert_gated_matvec},
    expert_matmul::expert_matmul,
    expert_matvec::expert_matvec,
    group_experts::group_experts,
    matrix::Matrix,
    matvec::MAX_TOKENS,
    product::{matmul, matvec},
    route_experts::{ExpertGroups, RouteShape, Routes, route_experts},
    sum_experts::sum_experts,
};

/// `x + sum(share * ffn_down(act(ffn_gate(norm(x))) * ffn_up(norm(x))))` over the experts that
/// `ffn_gate_inp(norm(x))` chooses. An expert's rows follow the previous one's.
#[derive(Debug, Clone)]
pub struct ExpertFeedForward {
    /// `ffn_norm`
    pub ffn_norm: Norm,
    /// The norm of the router's input, where it is not that of the experts.
    pub router_norm: Option<Norm>,
    /// `ffn_gate_inp`, the router, `[experts, dim]`
    pub ffn_gate_inp: Matrix,
    /// Its biases, `[experts]`.
    pub ffn_gate_inp_bias: Option<Tensor<1>>,
    /// `exp_probs_b`, `[experts]`: counts for the selection only.
    pub bias: Option<Tensor<1>>,
    /// `ffn_gate_exps`, `[experts * ffn_dim, dim]`
    pub ffn_gate_exps: Matrix,
    /// `ffn_up_exps`, `[experts * ffn_dim, dim]`
    pub ffn_up_exps: Matrix,
    /// `ffn_down_exps`, `[experts * dim, ffn_dim]`
    pub ffn_down_exps: Matrix,
    /// Biases of `ffn_gate_exps` and `ffn_up_exps`, `[experts, 2 * ffn_dim]`.
    pub gate_biases: Option<Tensor<2>>,
    /// Biases of `ffn_down_exps`, `[experts, dim]`.
    pub down_biases: Option<Tensor<2>>,
    /// `ffn_down_exps.scale`, `[experts]`: factors of the experts' shares.
    pub shares_scale: Option<Tensor<1>>,
    /// Experts that a token uses.
    pub used: usize,
    /// The activation function of an expert.
    pub activation: Activation,
    /// Whether shares are a softmax over the chosen experts (Mixtral, Qwen3) or over all (OLMoE).
    pub renormalize: bool,
    /// Whether shares are sigmoids instead of a softmax.
    pub is_sigmoid: bool,
    /// Whether shares are factors of the experts' inputs instead of their outputs. The activation is that of the product with
    /// gate alone, so this is a factor of that product besides the one of the output.
    pub scales_inputs: bool,
    /// Factor of the output.
    pub scale: f32,
    /// Groups of experts, if experts are chosen from some of them.
    pub groups: Option<ExpertGroups>,
    /// The kernels that the tuner chose for the device.
    pub variant: Variant,
}

impl ExpertFeedForward {
    /// `x` `[tokens, dim]`.
    pub fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        self.onto(Some(x.clone()), x)
    }

    /// Same as [`Self::forward`], without `x` in the sum.
    pub fn output(&self, x: Tensor<2>) -> Tensor<2> {
        self.onto(None, x)
    }

    fn onto(&self, residual: Option<Tensor<2>>, x: Tensor<2>) -> Tensor<2> {
        if x.dims()[0] <= MAX_TOKENS {
            self.few(residual, x)
        } else {
            self.many(residual, x)
        }
    }

    /// Uses the kernels of `variant` from now on.
    pub fn set_variant(&mut self, variant: Variant) {
        self.ffn_norm.variant = variant;
        self.variant = variant;
        self.router_norm
            .iter_mut()
            .for_each(|norm| norm.variant = variant);
    }

    fn few(&self, residual: Option<Tensor<2>>, x: Tensor<2>) -> Tensor<2> {
        // The kernel has no place for both.
        let (input, norm) = match self.gate_biases.is_some() || self.scales_inputs {
            true => (self.ffn_norm.apply(x.clone()), None),
            false => Norm::input(Some(&self.ffn_norm), x.clone()),
        };
        let (router_input, router_norm) = match &self.router_norm {
            Some(own) => Norm::input(Some(own), x.clone()),
            None => (input.clone(), norm.clone()),
        };
        let logits = matvec(
            router_input,
            router_norm,
            &self.ffn_gate_inp,
            self.router_addends(),
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
            self.gate_biases.clone(),
            self.gate_factors(&routes),
            self.activation,
            self.variant,
        );
        let biases = self.down_biases.clone();
        let (down, dim) = (&self.ffn_down_exps, x.dims()[1]);
        expert_matvec(hidden, down, biases, routes, residual, dim, self.variant)
    }

    fn many(&self, residual: Option<Tensor<2>>, x: Tensor<2>) -> Tensor<2> {
        let [_, dim] = x.dims();
        let normed = self.ffn_norm.apply(x.clone());
        let router_input = match &self.router_norm {
            Some(own) => own.apply(x),
            None => normed.clone(),
        };
        let logits = matmul(
            router_input,
            &self.ffn_gate_inp,
            self.router_addends(),
            Finish::Plain,
            self.variant,
        );
        let routes = self.route(logits);
        let groups = group_experts(routes.experts.clone(), self.ffn_gate_inp.shape.rows);
        let hidden = expert_gated_matmul(
            normed,
            &self.ffn_gate_exps,
            &self.ffn_up_exps,
            self.ffn_dim(),
            self.used,
            groups.clone(),
            self.gate_biases.clone(),
            self.gate_factors(&routes),
            self.activation,
            self.variant,
        );
        let products = expert_matmul(hidden, &self.ffn_down_exps, dim, groups, self.variant);
        sum_experts(products, routes, self.down_biases.clone(), residual)
    }

    fn gate_factors(&self, routes: &Routes) -> Option<Tensor<2>> {
        self.scales_inputs.then(|| routes.shares.clone())
    }

    fn router_addends(&self) -> Addends {
        Addends {
            bias: self.ffn_gate_inp_bias.clone(),
            ..Addends::default()
        }
    }

    fn route(&self, logits: Tensor<2>) -> Routes {
        let shape = RouteShape {
            experts: self.ffn_gate_inp.shape.rows,
            used: self.used,
            renormalize: self.renormalize,
            is_sigmoid: self.is_sigmoid,
            scale: self.scale,
            groups: self.groups,
        };
        route_experts(logits, self.bias.clone(), self.shares_scale.clone(), shape)
    }

    fn ffn_dim(&self) -> usize {
        self.ffn_down_exps.shape.cols
    }
}
