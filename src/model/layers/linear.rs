//! Norms and linear layers. They choose the op for few or for many tokens.

use burn::tensor::Tensor;

use super::low_rank::LowRank;
use crate::ops::{
    Addends, Finish, NormKind, Variant,
    limit::limit,
    matrix::Matrix,
    matvec::MAX_TOKENS,
    norm::{NormParams, Onto, norm as norm_op},
    product::{matmul, matvec},
};

/// A norm of the residual stream, or of a result before it is added to the stream.
#[derive(Debug, Clone)]
pub struct Norm {
    /// `[dim]`
    pub weight: Tensor<1>,
    /// `[dim]`, if the kind has a bias.
    pub bias: Option<Tensor<1>>,
    /// The operation of the layer.
    pub kind: NormKind,
    /// The number that is added to the mean square or the variance.
    pub eps: f32,
    /// The kernels that the tuner chose for the device.
    pub variant: Variant,
}

impl Norm {
    /// `norm(x)`, `x` `[tokens, dim]`.
    pub fn apply(&self, x: Tensor<2>) -> Tensor<2> {
        self.plus(x, None)
    }

    /// `norm(x) + residual`. A residual is only supported by kinds that [add one](NormKind::adds_residual).
    pub fn plus(&self, x: Tensor<2>, residual: Option<Tensor<2>>) -> Tensor<2> {
        let scale = None;
        let onto = residual.map(|residual| Onto { residual, scale });
        norm_op(x, self.params(), onto, self.variant)
    }

    /// `(norm(x) + residual) * scale`, `scale` `[1]`.
    fn plus_scaled(&self, x: Tensor<2>, residual: Tensor<2>, scale: Tensor<1>) -> Tensor<2> {
        let scale = Some(scale);
        norm_op(
            x,
            self.params(),
            Some(Onto { residual, scale }),
            self.variant,
        )
    }

    fn params(&self) -> NormParams {
        NormParams {
            kind: self.kind,
            weight: self.weight.clone(),
            bias: self.bias.clone(),
            eps: self.eps,
        }
    }

    /// The input from which products get `norm(x)`: `x` and the norm that their kernels compute along with the product, or `norm(x)`.
    pub fn input(norm: Option<&Norm>, x: Tensor<2>) -> (Tensor<2>, Option<FusedNorm>) {
        match norm {
            Some(norm) if norm.kind.is_fused() && x.dims()[0] <= MAX_TOKENS => {
                (x, Some((norm.weight.clone(), norm.eps)))
            }
            Some(norm) => (norm.apply(x), None),
            None => (x, None),
        }
    }
}

/// Weight and epsilon of a norm that kernels of products compute.
pub type FusedNorm = (Tensor<1>, f32);

/// `weight * x + bias`, plus the product of the adapters.
#[derive(Debug, Clone)]
pub struct Linear {
    /// `[rows, cols]`
    pub weight: Matrix,
    /// `[rows]`
    pub bias: Option<Tensor<1>>,
    /// Adapters of the weight.
    pub low_rank: Option<Box<LowRank>>,
    /// Limits of its input and of its products; only in layers whose results have a norm.
    pub limits: Option<Box<Limits>>,
    pub variant: Variant,
}

/// Bounds of the values around a product, `[2]` each: the lower and the upper one.
#[derive(Debug, Clone)]
pub struct Limits {
    pub input: Tensor<1>,
    pub output: Tensor<1>,
}

impl Linear {
    /// `finish(weight * norm(x) + bias + delta)`, `x` `[tokens, cols]`.
    pub fn normed(&self, x: Tensor<2>, norm: Option<&Norm>, finish: Finish) -> Tensor<2> {
        let (x, norm) = Norm::input(norm, x);
        self.product(x, norm, finish, None)
    }

    /// `weight * x + bias + residual`, `x` `[tokens, cols]`, `residual` `[tokens, rows]`.
    pub fn plus(&self, x: Tensor<2>, residual: Tensor<2>) -> Tensor<2> {
        self.product(x, None, Finish::Plain, Some(residual))
    }

    /// `finish(weight * norm(x) + bias + delta) + residual`, `x` `[tokens, cols]`. There is only a norm for few tokens.
    pub fn product(
        &self,
        x: Tensor<2>,
        norm: Option<FusedNorm>,
        finish: Finish,
        residual: Option<Tensor<2>>,
    ) -> Tensor<2> {
        if let Some(limits) = &self.limits {
            return self.limited(x, norm, finish, limits);
        }
        let addends = self.addends(&x, norm.clone(), residual);
        if x.dims()[0] <= MAX_TOKENS {
            return matvec(x, norm, &self.weight, addends, finish, self.variant);
        }
        matmul(x, &self.weight, addends, finish, self.variant)
    }

    /// Same as [`product`](Self::product), without a residual, between limits.
    fn limited(
        &self,
        x: Tensor<2>,
        norm: Option<FusedNorm>,
        finish: Finish,
        limits: &Limits,
    ) -> Tensor<2> {
        let x = match norm {
            Some((weight, eps)) => {
                let params = NormParams {
                    kind: NormKind::Rms,
                    weight,
                    bias: None,
                    eps,
                };
                norm_op(x, params, None, self.variant)
            }
            None => x,
        };
        let x = limit(x, limits.input.clone(), Finish::Plain);
        let addends = self.addends(&x, None, None);
        let products = match x.dims()[0] <= MAX_TOKENS {
            true => matvec(x, None, &self.weight, addends, Finish::Plain, self.variant),
            false => matmul(x, &self.weight, addends, Finish::Plain, self.variant),
        };
        limit(products, limits.output.clone(), finish)
    }

    /// The terms that are added to the products with `norm(x)`.
    fn addends(
        &self,
        x: &Tensor<2>,
        norm: Option<FusedNorm>,
        residual: Option<Tensor<2>>,
    ) -> Addends {
        let low_rank = self.low_rank.as_ref();
        Addends {
            bias: self.bias.clone(),
            delta: low_rank.map(|it| it.delta(x.clone(), norm, self.variant)),
            residual,
        }
    }
}

/// The way in which a result is added to the residual stream.
#[derive(Debug, Clone)]
pub struct Join {
    /// Norm of the result.
    pub norm: Option<Norm>,
    /// Norm of the sum, in layers that normalize the residual stream itself.
    pub sum_norm: Option<Norm>,
    /// Factor of a result without norm.
    pub scale: f32,
    /// Factor of the sum, `[1]`; only with a norm of the result.
    pub out_scale: Option<Tensor<1>>,
}

impl Join {
    /// `sum_norm(residual + norm(linear(x)))`, `x` `[tokens, cols]`, `residual` `[tokens, rows]`.
    pub fn onto(&self, residual: Tensor<2>, linear: &Linear, x: Tensor<2>) -> Tensor<2> {
        self.onto_normed(residual, linear, x, None)
    }

    /// `sum_norm(residual + norm(linear(sub_norm(x))))`
    pub fn onto_normed(
        &self,
        residual: Tensor<2>,
        linear: &Linear,
        x: Tensor<2>,
        sub_norm: Option<&Norm>,
    ) -> Tensor<2> {
        let (x, fused) = Norm::input(sub_norm, x);
        let finish = match self.scale {
            1.0 => Finish::Plain,
            scale => Finish::Scale(scale),
        };
        let sum = match &self.norm {
            Some(_) => self.add(residual, linear.product(x, fused, finish, None)),
            None => linear.product(x, fused, finish, Some(residual)),
        };
        match &self.sum_norm {
            Some(norm) => norm.apply(sum),
            None => sum,
        }
    }

    /// `(residual + norm(result)) * out_scale`, where the result has a norm.
    pub fn add(&self, residual: Tensor<2>, result: Tensor<2>) -> Tensor<2> {
        let norm = self.norm.as_ref().expect("a norm of the result");
        match &self.out_scale {
            Some(scale) => norm.plus_scaled(result, residual, scale.clone()),
            None => norm.plus(result, Some(residual)),
        }
    }
}
