//! Norms of rows: RMS norm, `x / sqrt(mean(x^2) + eps) * weight` (Zhang and Sennrich 2019, <https://arxiv.org/abs/1910.07467>),
//! and layer norm, `(x - mean(x)) / sqrt(variance(x) + eps) * weight + bias` (Ba et al. 2016,
//! <https://arxiv.org/abs/1607.06450>). A kernel may add the residual stream and scale the sum.

use inpage_cpu::lanes::norm::{layer_norm, rms_norm};

use super::op::*;
use super::variant::Variant;
use crate::kernel::{Kernel, wgsl};

/// A kind of norm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NormKind {
    /// RMS norm: divides by the root of the mean square.
    Rms,
    /// Layer norm: mean zero and variance one, with a bias.
    Layer,
}

/// The properties of a kind.
struct Properties {
    /// The name in the names of kernels.
    name: &'static str,
    wgsl: &'static str,
    has_bias: bool,
    is_fused: bool,
    adds_residual: bool,
}

impl NormKind {
    /// All kinds.
    pub const ALL: [NormKind; 2] = [NormKind::Rms, NormKind::Layer];

    fn properties(self) -> Properties {
        match self {
            NormKind::Rms => Properties {
                name: "rms_norm",
                wgsl: wgsl!("rms_norm"),
                has_bias: false,
                is_fused: true,
                adds_residual: true,
            },
            NormKind::Layer => Properties {
                name: "layer_norm",
                wgsl: wgsl!("layer_norm"),
                has_bias: true,
                is_fused: false,
                adds_residual: false,
            },
        }
    }

    /// The name in the names of kernels.
    pub fn name(self) -> &'static str {
        self.properties().name
    }

    /// Whether it adds a bias.
    pub fn has_bias(self) -> bool {
        self.properties().has_bias
    }

    /// Whether products for few tokens compute it while they read their input.
    pub fn is_fused(self) -> bool {
        self.properties().is_fused
    }

    /// Whether its kernel adds a residual to the result.
    pub fn adds_residual(self) -> bool {
        self.properties().adds_residual
    }

    /// The twin's numbers of a row: the center is subtracted from it, and the result is multiplied by the scale.
    fn center_and_scale(self, row: &[f32], eps: f32) -> (f32, f32) {
        let mean = |values: &mut dyn Iterator<Item = f32>| values.sum::<f32>() / row.len() as f32;
        match self {
            NormKind::Rms => {
                let square = mean(&mut row.iter().map(|v| v * v));
                (0.0, (square + eps).sqrt().recip())
            }
            NormKind::Layer => {
                let center = mean(&mut row.iter().copied());
                let variance = mean(&mut row.iter().map(|v| (v - center) * (v - center)));
                (center, (variance + eps).sqrt().recip())
            }
        }
    }
}

/// The arguments of the op.
#[derive(ExtensionType)]
pub(super) struct Arguments<B: Backend> {
    x: FloatTensor<B>,
    kind: NormKind,
    weight: FloatTensor<B>,
    #[extension_type]
    bias: Maybe<B>,
    eps: f32,
    #[extension_type]
    residual: Maybe<B>,
    #[extension_type]
    scale: Maybe<B>,
    variant: Variant,
}

op! {
    cpu if (|it| it.variant.cpu);
    fn norm(Arguments) -> FloatTensor<Self>
}

const WORKGROUP: usize = 64;

/// A norm with its parameters.
#[derive(Debug, Clone)]
pub struct NormParams {
    /// The operation.
    pub kind: NormKind,
    /// `[cols]`
    pub weight: Tensor<1>,
    /// `[cols]`, if the kind [has one](NormKind::has_bias).
    pub bias: Option<Tensor<1>>,
    /// Added to the mean square or the variance.
    pub eps: f32,
}

impl NormParams {
    /// An RMS norm.
    pub fn rms(weight: Tensor<1>, eps: f32) -> NormParams {
        NormParams {
            kind: NormKind::Rms,
            weight,
            bias: None,
            eps,
        }
    }
}

/// The residual stream that is added to a norm's result.
#[derive(Debug, Clone)]
pub struct Onto {
    /// `[tokens, cols]`
    pub residual: Tensor<2>,
    /// `[1]`, the factor of the sum.
    pub scale: Option<Tensor<1>>,
}

/// Normalizes each row of `x` `[tokens, cols]`, and adds it to the residual stream if the kind
/// [does so](NormKind::adds_residual).
pub fn norm(x: Tensor<2>, params: NormParams, onto: Option<Onto>, variant: Variant) -> Tensor<2> {
    let NormParams {
        kind,
        weight,
        bias,
        eps,
    } = params;
    assert_eq!(
        bias.is_some(),
        kind.has_bias(),
        "the bias of a {kind:?} norm"
    );
    assert!(
        onto.is_none() || kind.adds_residual(),
        "a {kind:?} norm adds no residual"
    );
    let (residual, scale) = match onto {
        Some(onto) => (Some(onto.residual), onto.scale),
        None => (None, None),
    };
    Tensor::from_dispatch(Dispatch::norm(Arguments {
        x: x.into_dispatch(),
        kind,
        weight: weight.into_dispatch(),
        bias: bias.into(),
        eps,
        residual: residual.into(),
        scale: scale.into(),
        variant,
    }))
}

/// The composed kernel.
fn kernel(kind: NormKind, cols: usize, eps: f32, residual: bool, scaled: bool) -> Kernel {
    let kernel = Kernel::new(kind.name()).binding("x").binding("norm");
    let kernel = match kind.has_bias() {
        true => kernel.binding("bias"),
        false => kernel,
    };
    let kernel = kernel.binding("out");
    let kernel = match residual {
        _ if !kind.adds_residual() => kernel,
        true if scaled => kernel
            .binding("residual")
            .binding("scale")
            .module(wgsl!("shared/norm_store/scaled_residual")),
        true => kernel
            .binding("residual")
            .module(wgsl!("shared/norm_store/residual")),
        false => kernel.module(wgsl!("shared/norm_store/plain")),
    };
    kernel
        .constant("COLS", cols)
        .constant("WORKGROUP", WORKGROUP)
        .constant_f32("EPS", eps)
        .module(kind.properties().wgsl)
}

fn launch(args: Arguments<Cube>) -> CubeTensor {
    let [tokens, cols] = args.x.shape().dims();
    let out = output(&args.x, [tokens, cols]);
    let (residual, scale) = (args.residual.as_ref(), args.scale.as_ref());
    let mut buffers = vec![&args.x, &args.weight];
    buffers.extend(args.bias.as_ref());
    buffers.push(&out);
    buffers.extend(residual.into_iter().chain(scale));
    let (has_residual, is_scaled) = (residual.is_some(), scale.is_some());
    let kernel = kernel(args.kind, cols, args.eps, has_residual, is_scaled);
    kernel.launch(&buffers, [tokens as u32, 1, 1]);
    out
}

fn twin(args: Arguments<Flex>) -> FlexTensor {
    let [tokens, cols] = args.x.shape().dims();
    let weight = args.weight.storage::<f32>();
    let mut out = Vec::with_capacity(tokens * cols);
    for row in args.x.storage::<f32>().chunks_exact(cols) {
        let (center, scale) = args.kind.center_and_scale(row, args.eps);
        out.extend(
            row.iter()
                .zip(weight)
                .map(|(v, w)| (v - center) * scale * w),
        );
    }
    if let Some(bias) = args.bias.as_ref() {
        for row in out.chunks_exact_mut(cols) {
            add(row, bias.storage());
        }
    }
    if let Some(residual) = args.residual.as_ref() {
        add(&mut out, residual.storage());
    }
    multiply(&mut out, &args.scale);
    twin_output(out, [tokens, cols])
}

fn cpu(args: Arguments<Flex>) -> FlexTensor {
    let [tokens, cols] = args.x.shape().dims();
    let mut out = vec![0.0; tokens * cols];
    let (x, weight) = (args.x.storage(), args.weight.storage());
    let residual = args.residual.as_ref().map(|residual| residual.storage());
    match (args.kind, args.bias.as_ref()) {
        (NormKind::Layer, Some(bias)) => layer_norm(x, weight, bias.storage(), args.eps, &mut out),
        _ => rms_norm(x, weight, args.eps, residual, &mut out),
    }
    multiply(&mut out, &args.scale);
    twin_output(out, [tokens, cols])
}

fn multiply(out: &mut [f32], scale: &Maybe<Flex>) {
    if let Some(scale) = scale.as_ref() {
        let scale = scale.storage::<f32>()[0];
        out.iter_mut().for_each(|out| *out *= scale);
    }
}

/// An optional RMS norm of an op's input, which the op computes while it reads the input.
#[derive(ExtensionType)]
pub(super) enum InputNorm<B: Backend> {
    Rms { norm: FloatTensor<B>, eps: f32 },
    None,
}

impl From<Option<(Tensor<1>, f32)>> for InputNorm<Dispatch> {
    fn from(norm: Option<(Tensor<1>, f32)>) -> Self {
        match norm {
            Some((norm, eps)) => InputNorm::Rms {
                norm: norm.into_dispatch(),
                eps,
            },
            None => InputNorm::None,
        }
    }
}

impl<B: Backend> InputNorm<B> {
    pub(super) fn norm(&self) -> Option<&FloatTensor<B>> {
        match self {
            InputNorm::Rms { norm, .. } => Some(norm),
            InputNorm::None => None,
        }
    }

    pub(super) fn eps(&self) -> Option<f32> {
        match self {
            InputNorm::Rms { eps, .. } => Some(*eps),
            InputNorm::None => None,
        }
    }
}

impl InputNorm<Flex> {
    /// The normalized input, by the twin or by the kernels of the CPU device.
    pub(super) fn apply(self, x: FlexTensor, is_on_cpu: bool) -> FlexTensor {
        let InputNorm::Rms { norm, eps } = self else {
            return x;
        };
        let compute = if is_on_cpu { cpu } else { twin };
        compute(Arguments {
            x,
            kind: NormKind::Rms,
            weight: norm,
            bias: Maybe::None,
            eps,
            residual: Maybe::None,
            scale: Maybe::None,
            variant: Variant::PORTABLE,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::validation::assert_valid;

    #[test]
    fn kernels_are_valid_wgsl() {
        for kind in NormKind::ALL {
            let cases = [(false, false), (true, false), (true, true)];
            let cases = cases
                .into_iter()
                .filter(|(residual, _)| !residual || kind.adds_residual());
            assert_valid(cases.map(|(residual, scaled)| kernel(kind, 172, 1e-5, residual, scaled)));
        }
    }
}
