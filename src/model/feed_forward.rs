//! The gated feed-forward layer.

use burn::{module::Module, tensor::Tensor};

use super::linear::{Linear, Norm};
use crate::ops::{
    Variant, gated_matmul::gated_matmul, gated_matvec::gated_matvec, matrix::Matrix,
    matvec::MAX_TOKENS, rms_norm::rms_norm,
};

/// `x + ffn_down(silu(ffn_gate(norm(x))) * ffn_up(norm(x)))`
#[derive(Module, Debug)]
pub struct FeedForward {
    /// `ffn_norm`
    pub ffn_norm: Norm,
    /// `ffn_gate`, `[ffn_dim, dim]`
    pub ffn_gate: Matrix,
    /// `ffn_up`, `[ffn_dim, dim]`
    pub ffn_up: Matrix,
    /// `ffn_down`, `[dim, ffn_dim]`
    pub ffn_down: Linear,
    #[module(skip)]
    pub variant: Variant,
}

impl FeedForward {
    /// `x` `[tokens, dim]`.
    pub fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        let norm = &self.ffn_norm;
        let hidden = if x.dims()[0] <= MAX_TOKENS {
            let norm = (norm.weight.clone(), norm.eps);
            gated_matvec(x.clone(), norm, &self.ffn_gate, &self.ffn_up, self.variant)
        } else {
            let normed = rms_norm(x.clone(), norm.weight.clone(), norm.eps, None);
            gated_matmul(normed, &self.ffn_gate, &self.ffn_up, self.variant)
        };
        self.ffn_down.onto(x, hidden)
    }
}
