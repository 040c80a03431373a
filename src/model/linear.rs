//! A linear layer: one op whether a step feeds a few tokens or many.

use burn::{module::Module, tensor::Tensor};

use crate::ops::{
    Variant,
    matmul::matmul,
    matrix::Matrix,
    matvec::{MAX_TOKENS, matvec},
    rms_norm::rms_norm,
};

/// A root-mean-square norm's weight.
#[derive(Module, Debug)]
pub struct Norm {
    /// `[dim]`
    pub weight: Tensor<1>,
    /// Added to the mean square.
    #[module(skip)]
    pub eps: f32,
}

/// `weight * x + bias`.
#[derive(Module, Debug)]
pub struct Linear {
    /// `[rows, cols]`
    pub weight: Matrix,
    /// `[rows]`
    pub bias: Option<Tensor<1>>,
    #[module(skip)]
    pub variant: Variant,
}

impl Linear {
    /// `weight * norm(x) + bias`, `x` `[tokens, cols]`.
    pub fn normed(&self, x: Tensor<2>, norm: &Norm) -> Tensor<2> {
        if x.dims()[0] <= MAX_TOKENS {
            let norm = Some((norm.weight.clone(), norm.eps));
            return matvec(x, norm, &self.weight, self.bias.clone(), None, self.variant);
        }
        let x = rms_norm(x, norm.weight.clone(), norm.eps, None);
        matmul(x, &self.weight, self.bias.clone(), None, self.variant)
    }

    /// `residual + weight * x + bias`, `x` `[tokens, cols]`, `residual` `[tokens, rows]`.
    pub fn onto(&self, residual: Tensor<2>, x: Tensor<2>) -> Tensor<2> {
        let (bias, residual) = (self.bias.clone(), Some(residual));
        if x.dims()[0] <= MAX_TOKENS {
            return matvec(x, None, &self.weight, bias, residual, self.variant);
        }
        matmul(x, &self.weight, bias, residual, self.variant)
    }
}
