//! The kernels of a product of a few tokens: the lanes of a group share the rows of the matrix. The result of a token is
//! bit-identical for any number of tokens. `tile` has those of many tokens.

use super::{arithmetic::Arithmetic, matrix::MatrixShape, tile, variant::Variant};
use crate::kernel::{Kernel, grid, wgsl};
use crate::tensor_types::TensorType;

/// Maximum number of tokens of a launch.
pub const MAX_TOKENS: usize = 8;
/// Groups of [`Variant::lanes_per_row`] lanes that share the rows of a product of quarters: few rows alone would leave most
/// processors of a wide device idle.
const QUARTER_GROUPS: u32 = 4;
/// A single group has the rows of a product with at least this many. On an NVIDIA H200 one group is faster for 65,536 rows,
/// and four are for 8,192; the limit between them is not measured.
const MANY_ROWS: usize = 16384;
/// Rows of a group of lanes in a product of quarters.
const QUARTER_ROWS: u32 = 2;

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

    /// Workgroups of a product of `tokens` by the `rows` of each of the matrices of `types`.
    pub(super) fn workgroups(
        self,
        tokens: usize,
        rows: usize,
        types: &[TensorType],
        variant: Variant,
    ) -> [u32; 3] {
        match self {
            Product::Matvec => workgroups(rows, self.arithmetic(types, variant), variant),
            Product::Matmul => tile::workgroups(tokens, types.len() * rows, variant),
        }
    }

    /// The modules of a matrix of type `ty` in a kernel with `arithmetic`.
    pub(super) fn weights(
        self,
        ty: TensorType,
        arithmetic: Arithmetic,
        variant: Variant,
    ) -> &'static [&'static str] {
        match self {
            Product::Matvec if in_quarters(arithmetic, variant) => ty.quarter_wgsl(),
            Product::Matvec | Product::Matmul => arithmetic.weights(ty),
        }
    }
}

/// Whether four lanes share a block. Bytes are quantized per block, so there each lane needs whole blocks.
fn in_quarters(arithmetic: Arithmetic, variant: Variant) -> bool {
    variant.quarters && arithmetic == Arithmetic::F32
}

/// The lanes of a workgroup, and what they share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Lanes {
    workgroup: u32,
    /// Lanes that share rows.
    group: u32,
    /// Rows that they share.
    group_rows: u32,
}

impl Lanes {
    /// The lanes of a product with `rows` rows.
    fn of(rows: usize, arithmetic: Arithmetic, variant: Variant) -> Lanes {
        if !in_quarters(arithmetic, variant) {
            return Lanes {
                workgroup: variant.workgroup,
                group: variant.lanes_per_row,
                group_rows: variant.rows_per_group,
            };
        }
        let workgroup = QUARTER_GROUPS * variant.lanes_per_row;
        Lanes {
            workgroup,
            group: match rows < MANY_ROWS {
                true => workgroup,
                false => variant.lanes_per_row,
            },
            group_rows: QUARTER_ROWS,
        }
    }

    /// Rows of a workgroup.
    fn rows(self) -> usize {
        (self.workgroup / self.group * self.group_rows) as usize
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
    let lanes = Lanes::of(weights.rows, arithmetic, variant);
    let kernel = weights.constants(variant.enable(kernel));
    let kernel = match in_quarters(arithmetic, variant) {
        true => kernel
            .alias("Block", "array<vec4<f32>, 2>")
            .alias("Fours", "array<vec4<f32>, 2>")
            .module(wgsl!("shared/block_part/quarter")),
        false => arithmetic
            .blocks(kernel)
            .alias("Fours", "array<vec4<f32>, 8>")
            .module(wgsl!("shared/block_part/whole")),
    };
    let kernel = kernel
        .module(match arithmetic {
            Arithmetic::F32 => wgsl!("shared/matvec_input/block_f32"),
            Arithmetic::F16 => unreachable!("no matvec is in f16"),
            Arithmetic::I8 => wgsl!("shared/matvec_input/block_i8"),
        })
        .constant("TOKENS", if tokens == 1 { 1 } else { MAX_TOKENS })
        .constant("WORKGROUP", lanes.workgroup as usize)
        .constant("LANES", lanes.group as usize)
        .constant("ROWS_PER_GROUP", lanes.group_rows as usize);
    if !variant.subgroups {
        return kernel.module(wgsl!("shared/reduce/workgroup"));
    }
    kernel
        .constant("SUBGROUP_LANES", variant.lanes_per_row as usize)
        .module(wgsl!("shared/reduce/shuffles"))
        .module(match lanes.group <= variant.lanes_per_row {
            true => wgsl!("shared/reduce/subgroup"),
            false => wgsl!("shared/reduce/subgroups"),
        })
}

/// Workgroups of a product with `rows` rows.
fn workgroups(rows: usize, arithmetic: Arithmetic, variant: Variant) -> [u32; 3] {
    grid(rows.div_ceil(Lanes::of(rows, arithmetic, variant).rows()))
}

/// Workgroups of a matvec over `rows` rows of an expert, for each of `count` pairs or tokens.
pub(super) fn expert_workgroups(rows: usize, count: usize, variant: Variant) -> [u32; 3] {
    let [x, y, _] = workgroups(rows, Arithmetic::F32, variant);
    assert_eq!(y, 1, "an expert of too many rows");
    [x, count as u32, 1]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_of_few_and_of_many_rows() {
        let quarters = Variant {
            subgroups: true,
            lanes_per_row: 32,
            quarters: true,
            ..Variant::PORTABLE
        };
        let rows_of_a_workgroup = |rows, arithmetic| Lanes::of(rows, arithmetic, quarters).rows();
        assert_eq!(rows_of_a_workgroup(MANY_ROWS - 1, Arithmetic::F32), 2);
        assert_eq!(rows_of_a_workgroup(MANY_ROWS, Arithmetic::F32), 8);
        // Products of bytes have the lanes of the variant: two groups of 32 in a workgroup of 64, two rows each.
        assert_eq!(rows_of_a_workgroup(100, Arithmetic::I8), 4);
        assert_eq!(workgroups(5, Arithmetic::F32, quarters), [3, 1, 1]);
    }
}
