//! The norms that a model chooses from. Each is an op of its own.

use burn::tensor::Tensor;

use super::{layer_norm::layer_norm, rms_norm::rms_norm, variant::Variant};

/// A kind of norm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NormKind {
    /// RMS norm: divides by the root of the mean square.
    Rms,
    /// Layer norm: mean zero and variance one, with a bias.
    Layer,
}

impl NormKind {
    /// Whether it adds a bias.
    pub fn has_bias(self) -> bool {
        match self {
            NormKind::Rms => false,
            NormKind::Layer => true,
        }
    }

    /// Whether products for few tokens compute it while they read their input.
    pub fn is_fused(self) -> bool {
        match self {
            NormKind::Rms => true,
            NormKind::Layer => false,
        }
    }

    /// Whether its kernel adds a residual to the result.
    pub fn adds_residual(self) -> bool {
        match self {
            NormKind::Rms => true,
            NormKind::Layer => false,
        }
    }
}

/// Normalizes each row of `x` `[tokens, cols]` and scales it by `weight` `[cols]`. `bias` `[cols]` is there if the norm
/// [has one](NormKind::has_bias); `residual` `[tokens, cols]` only if it [adds one](NormKind::adds_residual).
pub fn norm(
    kind: NormKind,
    x: Tensor<2>,
    weight: Tensor<1>,
    bias: Option<Tensor<1>>,
    eps: f32,
    residual: Option<Tensor<2>>,
    variant: Variant,
) -> Tensor<2> {
    assert_eq!(
        bias.is_some(),
        kind.has_bias(),
        "the bias of a {kind:?} norm"
    );
    match (kind, bias) {
        (NormKind::Layer, Some(bias)) => {
            assert!(residual.is_none(), "a layer norm adds no residual");
            layer_norm(x, weight, bias, eps, variant)
        }
        _ => rms_norm(x, weight, eps, residual, None, variant),
    }
}
