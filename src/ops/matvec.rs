//! Matrix times the vectors of a few tokens, for decode:
//! `out = finish(weights * norm(x) + bias + delta) + residual`, where norm and addends are optional and
//! nothing costs a dispatch of its own. What a token gets does not depend on how many there are, to the
//! last bit.

use burn::backend::flex::FlexTensor;
use burn::{
    backend::{Cube, Dispatch, Flex, TensorMetadata},
    tensor::Tensor,
};
use burn_wgpu::CubeTensor;

use super::{
    Arithmetic, Variant,
    backend::{MatrixTensors, Maybe, Ops, maybe, output},
    kernel::{Kernel, grid},
    matmul,
    matrix::{Matrix, MatrixShape},
    rms_norm, shader,
    store::{Addends, Finish, Store},
};

/// Most tokens of one launch.
pub const MAX_TOKENS: usize = 8;

/// `x` is `[tokens, cols]` with at most [`MAX_TOKENS`], `norm` `[cols]`; gives `[tokens, rows]`.
pub fn matvec(
    x: Tensor<2>,
    norm: Option<(Tensor<1>, f32)>,
    weights: &Matrix,
    addends: Addends,
    finish: Finish,
    variant: Variant,
) -> Tensor<2> {
    assert!(x.dims()[0] <= MAX_TOKENS, "a matvec of too many tokens");
    let (norm, eps) = norm.map_or((None, 0.0), |(norm, eps)| (Some(norm), eps));
    Tensor::from_dispatch(Dispatch::matvec(
        x.into_dispatch(),
        maybe(norm),
        eps,
        weights.to_dispatch(),
        maybe(addends.bias),
        maybe(addends.delta),
        finish,
        maybe(addends.residual),
        variant,
    ))
}

/// The composed kernel: one for a single token, one for all other numbers of `tokens`.
pub fn kernel(
    weights: MatrixShape,
    tokens: usize,
    norm_eps: Option<f32>,
    store: Store,
    variant: Variant,
) -> Kernel {
    let mut kernel = Kernel::new(format!("matvec_{}", weights.ty.lowercase_name()))
        .variant(variant)
        .binding("x")
        .binding("out")
        .binding("weights_quants");
    if weights.ty.has_scales() {
        kernel = kernel.binding("weights_scales");
    }
    let input = match norm_eps {
        Some(eps) => {
            kernel = kernel.binding("norm").constant_f32("EPS", eps);
            shader::matvec_input::RMS_NORM
        }
        None => shader::matvec_input::PLAIN,
    };
    let kernel = store.modules(kernel);
    let arithmetic = variant.matvec.on(&[weights.ty]);
    lanes(kernel, weights, tokens, arithmetic, variant, 1)
        .module(arithmetic.weights(weights.ty))
        .module(input)
        .module(if tokens == 1 {
            shader::kernel::MATVEC
        } else {
            shader::kernel::MATVEC_BATCH
        })
}

/// The constants and the reduction that matvec kernels share; `matrices` are summed per row.
pub(super) fn lanes(
    kernel: Kernel,
    weights: MatrixShape,
    tokens: usize,
    arithmetic: Arithmetic,
    variant: Variant,
    matrices: usize,
) -> Kernel {
    let rows_per_group = variant.rows_per_group as usize;
    arithmetic
        .blocks(kernel)
        .module(match arithmetic {
            Arithmetic::F32 => shader::matvec_input::BLOCK_F32,
            Arithmetic::F16 => unreachable!("no matvec is in f16"),
            Arithmetic::I8 => shader::matvec_input::BLOCK_I8,
        })
        .constant("TOKENS", if tokens == 1 { 1 } else { MAX_TOKENS })
        .constant("ROWS", weights.rows)
        .constant("COLS", weights.cols)
        .constant("BLOCKS", weights.row_blocks())
        .constant("WORKGROUP", variant.workgroup as usize)
        .constant("LANES", variant.lanes_per_row as usize)
        .constant("ROWS_PER_GROUP", rows_per_group)
        .constant("SUMS", matrices * rows_per_group + 1)
        .module(if variant.subgroups {
            shader::reduce::SUBGROUP
        } else {
            shader::reduce::WORKGROUP
        })
}

/// Workgroups of a matvec over `rows` rows.
pub(super) fn workgroups(rows: usize, variant: Variant) -> [u32; 3] {
    let rows_per_workgroup =
        (variant.workgroup / variant.lanes_per_row * variant.rows_per_group) as usize;
    grid(rows.div_ceil(rows_per_workgroup))
}

#[allow(clippy::too_many_arguments)]
pub(super) fn launch(
    x: CubeTensor,
    norm: Maybe<Cube>,
    eps: f32,
    weights: MatrixTensors<Cube>,
    bias: Maybe<Cube>,
    delta: Maybe<Cube>,
    finish: Finish,
    residual: Maybe<Cube>,
    variant: Variant,
) -> CubeTensor {
    let [tokens, _] = x.shape().dims();
    let shape = weights.shape;
    let out = output(&x, [tokens, shape.rows]);
    let norm = norm.as_ref();
    let (bias, delta, residual) = (bias.as_ref(), delta.as_ref(), residual.as_ref());
    let store = Store {
        bias: bias.is_some(),
        delta: delta.is_some(),
        finish,
        residual: residual.is_some(),
    };
    let kernel = kernel(shape, tokens, norm.map(|_| eps), store, variant);
    let mut buffers = vec![&x, &out, &weights.quants];
    if shape.ty.has_scales() {
        buffers.push(&weights.scales);
    }
    buffers.extend([norm, bias, delta, residual].into_iter().flatten());
    kernel.launch(&buffers, workgroups(shape.rows, variant));
    out
}

#[allow(clippy::too_many_arguments)]
pub(super) fn twin(
    x: FlexTensor,
    norm: Maybe<Flex>,
    eps: f32,
    weights: MatrixTensors<Flex>,
    bias: Maybe<Flex>,
    delta: Maybe<Flex>,
    finish: Finish,
    residual: Maybe<Flex>,
    variant: Variant,
) -> FlexTensor {
    let x = match norm {
        Maybe::Some(norm) => rms_norm::twin(x, norm, eps, Maybe::None),
        Maybe::None => x,
    };
    let arithmetic = variant.matvec.on(&[weights.shape.ty]);
    matmul::sums(x, &weights, bias, delta, finish, residual, arithmetic)
}
