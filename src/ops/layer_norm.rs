//! Layer normalization: `out = (x - mean(x)) / sqrt(variance(x) + eps) * norm + bias`
//! (Ba et al. 2016, <https://arxiv.org/abs/1607.06450>).

use burn::backend::flex::FlexTensor;
use burn::{
    backend::{Backend, Cube, Dispatch, ExtensionType, Flex, TensorMetadata, tensor::FloatTensor},
    tensor::Tensor,
};
use burn_wgpu::CubeTensor;

use super::op::{op, output, twin_output};
use super::variant::Variant;
use crate::kernel::{Kernel, wgsl};

/// The arguments of the op.
#[derive(ExtensionType)]
pub(super) struct Arguments<B: Backend> {
    pub(super) x: FloatTensor<B>,
    pub(super) norm: FloatTensor<B>,
    pub(super) bias: FloatTensor<B>,
    pub(super) eps: f32,
    pub(super) variant: Variant,
}

op! {
    cpu if (|it| it.variant.cpu);
    fn layer_norm(Arguments) -> FloatTensor<Self>
}

const WORKGROUP: usize = 64;

/// Normalizes each row of `x` `[tokens, cols]`, scales it by `norm` `[cols]` and adds `bias` `[cols]`.
pub fn layer_norm(
    x: Tensor<2>,
    norm: Tensor<1>,
    bias: Tensor<1>,
    eps: f32,
    variant: Variant,
) -> Tensor<2> {
    Tensor::from_dispatch(Dispatch::layer_norm(Arguments {
        x: x.into_dispatch(),
        norm: norm.into_dispatch(),
        bias: bias.into_dispatch(),
        eps,
        variant,
    }))
}

/// The composed kernel.
pub fn kernel(cols: usize, eps: f32) -> Kernel {
    Kernel::new("layer_norm")
        .binding("x")
        .binding("norm")
        .binding("bias")
        .binding("out")
        .constant("COLS", cols)
        .constant("WORKGROUP", WORKGROUP)
        .constant_f32("EPS", eps)
        .module(wgsl!("layer_norm"))
}

pub(super) fn launch(args: Arguments<Cube>) -> CubeTensor {
    let [tokens, cols] = args.x.shape().dims();
    let out = output(&args.x, [tokens, cols]);
    kernel(cols, args.eps).launch(
        &[&args.x, &args.norm, &args.bias, &out],
        [tokens as u32, 1, 1],
    );
    out
}

pub(super) fn twin(args: Arguments<Flex>) -> FlexTensor {
    let Arguments { norm, bias, .. } = args;
    let [tokens, cols] = args.x.shape().dims();
    let (norm, bias) = (norm.storage::<f32>(), bias.storage::<f32>());
    let mut out = Vec::with_capacity(tokens * cols);
    for row in args.x.storage::<f32>().chunks_exact(cols) {
        let mean = row.iter().sum::<f32>() / cols as f32;
        let variance = row.iter().map(|v| (v - mean) * (v - mean)).sum::<f32>() / cols as f32;
        let scale = (variance + args.eps).sqrt().recip();
        let row = row.iter().zip(norm).zip(bias);
        out.extend(row.map(|((v, n), b)| (v - mean) * scale * n + b));
    }
    twin_output(out, [tokens, cols])
}

fn cpu(args: Arguments<Flex>) -> FlexTensor {
    let Arguments { bias, .. } = args;
    let [tokens, cols] = args.x.shape().dims();
    let mut out = vec![0.0; tokens * cols];
    let (weight, bias) = (args.norm.storage(), bias.storage());
    inpage_cpu::lanes::norm::layer_norm(args.x.storage(), weight, bias, args.eps, &mut out);
    twin_output(out, [tokens, cols])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::validation::assert_valid;

    #[test]
    fn kernels_are_valid_wgsl() {
        assert_valid([kernel(172, 1e-5)]);
    }
}
