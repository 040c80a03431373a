//! Root-mean-square normalization: `out = x / sqrt(mean(x^2) + eps) * norm + residual`, the residual
//! being optional (Zhang and Sennrich 2019, <https://arxiv.org/abs/1910.07467>).

use burn::backend::flex::FlexTensor;
use burn::{
    backend::{Cube, Dispatch, Flex, TensorMetadata},
    tensor::Tensor,
};
use burn_wgpu::CubeTensor;

use super::{
    backend::{Maybe, Ops, maybe, output, twin_output},
    kernel::Kernel,
    shader,
};

const WORKGROUP: usize = 64;

/// Normalizes each row of `x` `[tokens, cols]`, scales it by `norm` `[cols]` and adds `residual`
/// `[tokens, cols]`.
pub fn rms_norm(x: Tensor<2>, norm: Tensor<1>, eps: f32, residual: Option<Tensor<2>>) -> Tensor<2> {
    Tensor::from_dispatch(Dispatch::rms_norm(
        x.into_dispatch(),
        norm.into_dispatch(),
        eps,
        maybe(residual),
    ))
}

/// The composed kernel.
pub fn kernel(cols: usize, eps: f32, residual: bool) -> Kernel {
    let kernel = Kernel::new("rms_norm")
        .binding("x")
        .binding("norm")
        .binding("out");
    let kernel = match residual {
        true => kernel
            .binding("residual")
            .module(shader::norm_store::RESIDUAL),
        false => kernel.module(shader::norm_store::PLAIN),
    };
    kernel
        .constant("COLS", cols)
        .constant("WORKGROUP", WORKGROUP)
        .constant_f32("EPS", eps)
        .module(shader::kernel::RMS_NORM)
}

pub(super) fn launch(
    x: CubeTensor,
    norm: CubeTensor,
    eps: f32,
    residual: Maybe<Cube>,
) -> CubeTensor {
    let [tokens, cols] = x.shape().dims();
    let out = output(&x, [tokens, cols]);
    let residual = residual.as_ref();
    let mut buffers = vec![&x, &norm, &out];
    buffers.extend(residual);
    kernel(cols, eps, residual.is_some()).launch(&buffers, [tokens as u32, 1, 1]);
    out
}

pub(super) fn twin(x: FlexTensor, norm: FlexTensor, eps: f32, residual: Maybe<Flex>) -> FlexTensor {
    let [tokens, cols] = x.shape().dims();
    let norm = norm.storage::<f32>();
    let mut out = Vec::with_capacity(tokens * cols);
    for row in x.storage::<f32>().chunks_exact(cols) {
        let mean = row.iter().map(|v| v * v).sum::<f32>() / cols as f32;
        let scale = (mean + eps).sqrt().recip();
        out.extend(row.iter().zip(norm).map(|(v, n)| v * scale * n));
    }
    if let Maybe::Some(residual) = residual {
        let residual = residual.storage::<f32>();
        out.iter_mut().zip(residual).for_each(|(out, r)| *out += r);
    }
    twin_output(out, [tokens, cols])
}
