//! Matrix times the vectors of a few tokens, for decode: `out = finish(weights * norm(x) + bias + delta) +
//! residual` in one dispatch. The norm and the addends are optional. The result of a token is bit-identical
//! for any number of tokens.

use burn::backend::flex::FlexTensor;
use burn::{
    backend::{Backend, Cube, Dispatch, ExtensionType, Flex, TensorMetadata, tensor::FloatTensor},
    tensor::Tensor,
};
use burn_wgpu::CubeTensor;

use super::{
    arithmetic::Arithmetic,
    matmul,
    matrix::{Matrix, MatrixShape, MatrixTensors},
    op::{op, output},
    rms_norm::InputNorm,
    store::{AddendTensors, Addends, Finish, Store},
    variant::Variant,
};
use crate::kernel::{Kernel, grid, wgsl};

/// The arguments of the op.
#[derive(ExtensionType)]
pub(super) struct Arguments<B: Backend> {
    pub(super) x: FloatTensor<B>,
    #[extension_type]
    pub(super) norm: InputNorm<B>,
    #[extension_type]
    pub(super) weights: MatrixTensors<B>,
    #[extension_type]
    pub(super) addends: AddendTensors<B>,
    pub(super) finish: Finish,
    pub(super) variant: Variant,
}

op! {
    fn matvec(Arguments) -> FloatTensor<Self>
}

/// Maximum number of tokens of a launch.
pub const MAX_TOKENS: usize = 8;

/// `x` is `[tokens, cols]` with at most [`MAX_TOKENS`], `norm` `[cols]`. Returns `[tokens, rows]`.
pub fn matvec(
    x: Tensor<2>,
    norm: Option<(Tensor<1>, f32)>,
    weights: &Matrix,
    addends: Addends,
    finish: Finish,
    variant: Variant,
) -> Tensor<2> {
    assert!(x.dims()[0] <= MAX_TOKENS, "a matvec of too many tokens");
    Tensor::from_dispatch(Dispatch::matvec(Arguments {
        x: x.into_dispatch(),
        norm: norm.into(),
        weights: weights.to_dispatch(),
        addends: addends.into(),
        finish,
        variant,
    }))
}

/// The composed kernel: there is one for a single token and one for other numbers of `tokens`.
pub fn kernel(
    weights: MatrixShape,
    tokens: usize,
    norm_eps: Option<f32>,
    store: Store,
    variant: Variant,
) -> Kernel {
    let kernel = Kernel::new(format!("matvec_{}", weights.ty.lowercase_name()))
        .binding("x")
        .binding("out");
    let kernel = input(weights.bindings(kernel, "weights"), norm_eps);
    let kernel = store.rows(kernel);
    let arithmetic = variant.matvec.on(&[weights.ty]);
    let kernel = lanes(kernel, weights, tokens, arithmetic, variant);
    main(kernel.module(arithmetic.weights(weights.ty)), tokens)
}

/// Adds the entry point for `tokens`.
pub(super) fn main(kernel: Kernel, tokens: usize) -> Kernel {
    match tokens {
        1 => kernel.module(wgsl!("matvec")),
        _ => kernel.module(wgsl!("matvec_batch")),
    }
}

/// Adds the module that reads the input. Declares the binding of the norm, if there is one.
pub(super) fn input(kernel: Kernel, norm_eps: Option<f32>) -> Kernel {
    match norm_eps {
        Some(eps) => kernel
            .binding("norm")
            .constant_f32("EPS", eps)
            .module(wgsl!("shared/matvec_input/rms_norm")),
        None => kernel.module(wgsl!("shared/matvec_input/plain")),
    }
}

/// Adds the constants and the reduction that matvec kernels share.
pub(super) fn lanes(
    kernel: Kernel,
    weights: MatrixShape,
    tokens: usize,
    arithmetic: Arithmetic,
    variant: Variant,
) -> Kernel {
    weights
        .constants(arithmetic.blocks(variant.enable(kernel)))
        .module(match arithmetic {
            Arithmetic::F32 => wgsl!("shared/matvec_input/block_f32"),
            Arithmetic::F16 => unreachable!("no matvec is in f16"),
            Arithmetic::I8 => wgsl!("shared/matvec_input/block_i8"),
        })
        .constant("TOKENS", if tokens == 1 { 1 } else { MAX_TOKENS })
        .constant("WORKGROUP", variant.workgroup as usize)
        .constant("LANES", variant.lanes_per_row as usize)
        .constant("ROWS_PER_GROUP", variant.rows_per_group as usize)
        .module(if variant.subgroups {
            wgsl!("shared/reduce/subgroup")
        } else {
            wgsl!("shared/reduce/workgroup")
        })
}

/// Workgroups of a matvec over `rows` rows.
pub(super) fn workgroups(rows: usize, variant: Variant) -> [u32; 3] {
    let rows_per_workgroup =
        (variant.workgroup / variant.lanes_per_row * variant.rows_per_group) as usize;
    grid(rows.div_ceil(rows_per_workgroup))
}

pub(super) fn launch(args: Arguments<Cube>) -> CubeTensor {
    let [tokens, _] = args.x.shape().dims();
    let shape = args.weights.shape;
    let out = output(&args.x, [tokens, shape.rows]);
    let kernel = kernel(
        shape,
        tokens,
        args.norm.eps(),
        args.addends.store(args.finish),
        args.variant,
    );
    let mut buffers = vec![&args.x, &out];
    buffers.extend(args.weights.buffers());
    buffers.extend(args.norm.norm());
    buffers.extend(args.addends.buffers());
    kernel.launch(&buffers, workgroups(shape.rows, args.variant));
    out
}

pub(super) fn twin(args: Arguments<Flex>) -> FlexTensor {
    let arithmetic = args.variant.matvec.on(&[args.weights.shape.ty]);
    let x = args.norm.apply(args.x, args.weights.is_panels());
    matmul::finished(x, &args.weights, args.addends, args.finish, arithmetic)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::validation::assert_valid;
    use crate::ops::test_cases::{matrices, stores};

    #[test]
    fn kernels_are_valid_wgsl() {
        for (shape, variant) in matrices() {
            for store in stores(shape.ty) {
                let tokens = match store.bias == store.residual {
                    true => 1,
                    false => MAX_TOKENS,
                };
                let kernel = |norm_eps| kernel(shape, tokens, norm_eps, store, variant);
                assert_valid([None, Some(1e-5)].map(kernel));
            }
        }
    }
}
