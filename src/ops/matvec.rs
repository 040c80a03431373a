//! The kernels of a product of a few tokens: the lanes of a group share the rows of the matrix. The result of a token is
//! bit-identical for any number of tokens. `tile` has those of many tokens.

use super::{arithmetic::Arithmetic, matrix::MatrixShape, tile, variant::Variant};
use crate::kernel::{Kernel, grid, wgsl};
use crate::tensor_types::TensorType;

/// Maximum number of tokens of a launch.
pub const MAX_TOKENS: usize = 8;

/// The kernels that compute a product.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Product {
    /// The kernels for at most [`MAX_TOKENS`] tokens. They may normalize the input.
    Matvec,
    /// The kernels for any number of tokens.
    Matmul,
}

impl Product {
    /// The name in the names of kernels.
    pub(super) fn name(self) -> &'static str {
        match self {
            Product::Matvec => "matvec",
            Product::Matmul => "matmul",
        }
    }

    /// The arithmetic for matrices of `types`.
    pub(super) fn arithmetic(self, types: &[TensorType], variant: Variant) -> Arithmetic {
        match self {
            Product::Matvec => variant.matvec.on(types),
            Product::Matmul => tile::arithmetic(types, variant),
        }
    }

    /// Workgroups of a product of `tokens` by the `rows` of each of `matrices` matrices.
    pub(super) fn workgroups(
        self,
        tokens: usize,
        rows: usize,
        matrices: usize,
        variant: Variant,
    ) -> [u32; 3] {
        match self {
            Product::Matvec => workgroups(rows, variant),
            Product::Matmul => tile::workgroups(tokens, matrices * rows, variant),
        }
    }
}

/// # Panics
/// If there are more than [`MAX_TOKENS`].
pub(super) fn assert_few(tokens: usize) {
    assert!(tokens <= MAX_TOKENS, "a matvec of too many tokens");
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
fn workgroups(rows: usize, variant: Variant) -> [u32; 3] {
    let rows_per_workgroup =
        (variant.workgroup / variant.lanes_per_row * variant.rows_per_group) as usize;
    grid(rows.div_ceil(rows_per_workgroup))
}

/// Workgroups of a matvec over `rows` rows of an expert, for each of `count` pairs or tokens.
pub(super) fn expert_workgroups(rows: usize, count: usize, variant: Variant) -> [u32; 3] {
    let [x, y, _] = workgroups(rows, variant);
    assert_eq!(y, 1, "an expert of too many rows");
    [x, count as u32, 1]
}
