//! Norms of rows. A kernel may add the residual stream and scale the sum. What the kinds are is declared in the CPU
//! crate (`src/cpu/lanes/norm.rs`).

use inpage_cpu::lanes::norm::{NormKind, Rows};

use super::op::*;
use super::variant::Variant;
use crate::kernel::{Kernel, wgsl};

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
    /// The number that is added to the mean square or the variance.
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
        .module(kind.wgsl())
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
    let bias = args.bias.as_ref().map(|bias| bias.storage());
    let rows = Rows {
        x: args.x.storage(),
        weight: args.weight.storage(),
        bias: bias.unwrap_or_default(),
        eps: args.eps,
        residual: args.residual.as_ref().map(|residual| residual.storage()),
    };
    inpage_cpu::lanes::norm::norm(args.kind, rows, &mut out);
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
