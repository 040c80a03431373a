//! Root-mean-square normalization: `out = x / sqrt(mean(x^2) + eps) * norm`
//! (Zhang and Sennrich 2019, <https://arxiv.org/abs/1910.07467>).

use burn::backend::flex::FlexTensor;
use burn::{
    backend::{Dispatch, TensorMetadata},
    tensor::Tensor,
};
use burn_wgpu::CubeTensor;

use super::{
    backend::{Ops, output, twin_output},
    kernel::Kernel,
    shader,
};

const WORKGROUP: usize = 64;

/// Normalizes each row of `x` `[tokens, cols]` and scales it by `norm` `[cols]`.
pub fn rms_norm(x: Tensor<2>, norm: Tensor<1>, eps: f32) -> Tensor<2> {
    Tensor::from_dispatch(Dispatch::rms_norm(
        x.into_dispatch(),
        norm.into_dispatch(),
        eps,
    ))
}

/// The composed kernel.
pub fn kernel(cols: usize, eps: f32) -> Kernel {
    Kernel::new("rms_norm")
        .binding("x")
        .binding("norm")
        .binding("out")
        .constant("COLS", cols)
        .constant("WORKGROUP", WORKGROUP)
        .constant_f32("EPS", eps)
        .module(shader::kernel::RMS_NORM)
}

pub(super) fn launch(x: CubeTensor, norm: CubeTensor, eps: f32) -> CubeTensor {
    let [tokens, cols] = x.shape().dims();
    let out = output(&x, [tokens, cols]);
    kernel(cols, eps).launch(&[&x, &norm, &out], [tokens as u32, 1, 1]);
    out
}

pub(super) fn twin(x: FlexTensor, norm: FlexTensor, eps: f32) -> FlexTensor {
    let [tokens, cols] = x.shape().dims();
    let norm = norm.storage::<f32>();
    let mut out = Vec::with_capacity(tokens * cols);
    for row in x.storage::<f32>().chunks_exact(cols) {
        let mean = row.iter().map(|v| v * v).sum::<f32>() / cols as f32;
        let scale = (mean + eps).sqrt().recip();
        out.extend(row.iter().zip(norm).map(|(v, n)| v * scale * n));
    }
    twin_output(out, [tokens, cols])
}
