//! Root-mean-square normalization: `out = (x / sqrt(mean(x^2) + eps) * norm + residual) * scale`, where the
//! residual and its scale are optional (Zhang and Sennrich 2019, <https://arxiv.org/abs/1910.07467>).

use burn::backend::flex::FlexTensor;
use burn::{
    backend::{Backend, Cube, Dispatch, ExtensionType, Flex, TensorMetadata, tensor::FloatTensor},
    tensor::Tensor,
};
use burn_wgpu::CubeTensor;

use super::op::{Maybe, op, output, twin_output};
use super::variant::Variant;
use crate::kernel::{Kernel, wgsl};

/// The arguments of the op.
#[derive(ExtensionType)]
pub(super) struct Arguments<B: Backend> {
    pub(super) x: FloatTensor<B>,
    pub(super) norm: FloatTensor<B>,
    pub(super) eps: f32,
    #[extension_type]
    pub(super) residual: Maybe<B>,
    #[extension_type]
    pub(super) scale: Maybe<B>,
    pub(super) variant: Variant,
}

op! {
    cpu if (|it| it.variant.cpu);
    fn rms_norm(Arguments) -> FloatTensor<Self>
}

const WORKGROUP: usize = 64;

/// Normalizes each row of `x` `[tokens, cols]`, scales it by `norm` `[cols]` and adds `residual`
/// `[tokens, cols]`. With a residual, the sum may be multiplied by `scale` `[1]`.
pub fn rms_norm(
    x: Tensor<2>,
    norm: Tensor<1>,
    eps: f32,
    residual: Option<Tensor<2>>,
    scale: Option<Tensor<1>>,
    variant: Variant,
) -> Tensor<2> {
    assert!(scale.is_none() || residual.is_some(), "a scale of no sum");
    Tensor::from_dispatch(Dispatch::rms_norm(Arguments {
        x: x.into_dispatch(),
        norm: norm.into_dispatch(),
        eps,
        residual: residual.into(),
        scale: scale.into(),
        variant,
    }))
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
            norm,
            eps,
            residual: Maybe::None,
            scale: Maybe::None,
            variant: Variant::PORTABLE,
        })
    }
}

/// The composed kernel.
pub fn kernel(cols: usize, eps: f32, residual: bool, scaled: bool) -> Kernel {
    let kernel = Kernel::new("rms_norm")
        .binding("x")
        .binding("norm")
        .binding("out");
    let kernel = match residual {
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
        .module(wgsl!("rms_norm"))
}

pub(super) fn launch(args: Arguments<Cube>) -> CubeTensor {
    let [tokens, cols] = args.x.shape().dims();
    let out = output(&args.x, [tokens, cols]);
    let (residual, scale) = (args.residual.as_ref(), args.scale.as_ref());
    let mut buffers = vec![&args.x, &args.norm, &out];
    buffers.extend(residual.into_iter().chain(scale));
    let kernel = kernel(cols, args.eps, residual.is_some(), scale.is_some());
    kernel.launch(&buffers, [tokens as u32, 1, 1]);
    out
}

pub(super) fn twin(args: Arguments<Flex>) -> FlexTensor {
    let Arguments {
        norm,
        residual,
        scale,
        ..
    } = args;
    let [tokens, cols] = args.x.shape().dims();
    let norm = norm.storage::<f32>();
    let mut out = Vec::with_capacity(tokens * cols);
    for row in args.x.storage::<f32>().chunks_exact(cols) {
        let mean = row.iter().map(|v| v * v).sum::<f32>() / cols as f32;
        let scale = (mean + args.eps).sqrt().recip();
        out.extend(row.iter().zip(norm).map(|(v, n)| v * scale * n));
    }
    if let Maybe::Some(residual) = residual {
        let residual = residual.storage::<f32>();
        out.iter_mut().zip(residual).for_each(|(out, r)| *out += r);
    }
    multiply(&mut out, &scale);
    twin_output(out, [tokens, cols])
}

fn multiply(out: &mut [f32], scale: &Maybe<Flex>) {
    if let Some(scale) = scale.as_ref() {
        let scale = scale.storage::<f32>()[0];
        out.iter_mut().for_each(|out| *out *= scale);
    }
}

fn cpu(args: Arguments<Flex>) -> FlexTensor {
    let Arguments { residual, .. } = args;
    let [tokens, cols] = args.x.shape().dims();
    let mut out = vec![0.0; tokens * cols];
    let residual = residual.as_ref().map(|residual| residual.storage::<f32>());
    inpage_cpu::lanes::norm::rms_norm(
        args.x.storage(),
        args.norm.storage(),
        args.eps,
        residual,
        &mut out,
    );
    multiply(&mut out, &args.scale);
    twin_output(out, [tokens, cols])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::validation::assert_valid;

    #[test]
    fn kernels_are_valid_wgsl() {
        let cases = [(false, false), (true, false), (true, true)];
        assert_valid(cases.map(|(residual, scaled)| kernel(64, 1e-5, residual, scaled)));
    }
}
