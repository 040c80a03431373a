//! Layer normalization: `out = (x - mean(x)) / sqrt(variance(x) + eps) * norm + bias`
//! (Ba et al. 2016, <https://arxiv.org/abs/1607.06450>).

use burn::backend::flex::FlexTensor;
use burn::{
    backend::{Dispatch, TensorMetadata, tensor::FloatTensor},
    tensor::Tensor,
};
use burn_wgpu::CubeTensor;

use super::op::{op, output, twin_output};
use super::variant::Variant;
use crate::kernel::{Kernel, wgsl};

op! {
    cpu if (variant.cpu);
    fn layer_norm(
        x: FloatTensor<Self>,
        norm: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        eps: f32,
        variant: Variant,
    ) -> FloatTensor<Self>
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
    Tensor::from_dispatch(Dispatch::layer_norm(
        x.into_dispatch(),
        norm.into_dispatch(),
        bias.into_dispatch(),
        eps,
        variant,
    ))
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

pub(super) fn launch(
    x: CubeTensor,
    norm: CubeTensor,
    bias: CubeTensor,
    eps: f32,
    _variant: Variant,
) -> CubeTensor {
    let [tokens, cols] = x.shape().dims();
    let out = output(&x, [tokens, cols]);
    kernel(cols, eps).launch(&[&x, &norm, &bias, &out], [tokens as u32, 1, 1]);
    out
}

pub(super) fn twin(
    x: FlexTensor,
    norm: FlexTensor,
    bias: FlexTensor,
    eps: f32,
    _variant: Variant,
) -> FlexTensor {
    let [tokens, cols] = x.shape().dims();
    let (norm, bias) = (norm.storage::<f32>(), bias.storage::<f32>());
    let mut out = Vec::with_capacity(tokens * cols);
    for row in x.storage::<f32>().chunks_exact(cols) {
        let mean = row.iter().sum::<f32>() / cols as f32;
        let variance = row.iter().map(|v| (v - mean) * (v - mean)).sum::<f32>() / cols as f32;
        let scale = (variance + eps).sqrt().recip();
        let row = row.iter().zip(norm).zip(bias);
        out.extend(row.map(|((v, n), b)| (v - mean) * scale * n + b));
    }
    twin_output(out, [tokens, cols])
}

fn cpu(
    x: FlexTensor,
    norm: FlexTensor,
    bias: FlexTensor,
    eps: f32,
    _variant: Variant,
) -> FlexTensor {
    let [tokens, cols] = x.shape().dims();
    let mut out = vec![0.0; tokens * cols];
    let (weight, bias) = (norm.storage(), bias.storage());
    inpage_cpu::lanes::norm::layer_norm(x.storage(), weight, bias, eps, &mut out);
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
