//! The gated half of a mixture of experts for many tokens: `act(gate * x) * (up * x)` with the matrices of
//! each token's experts, one tile of pairs of the same expert at a time.

use burn::backend::flex::FlexTensor;
use burn::{
    backend::{
        Backend, Cube, Dispatch, ExtensionType, Flex, TensorMetadata,
        tensor::{FloatTensor, IntTensor},
    },
    tensor::{Int, Tensor},
};
use burn_wgpu::CubeTensor;
use inpage_cpu::lanes::activation::Activation;

use super::{
    arithmetic::Arithmetic,
    expert_matmul,
    gated_matmul::{self, Added},
    group_experts,
    matrix::{Matrix, MatrixShape, MatrixTensors},
    op::{Maybe, op, output, twin_output},
    variant::Variant,
};
use crate::kernel::Kernel;

/// The arguments of the op.
#[derive(ExtensionType)]
pub(super) struct Arguments<B: Backend> {
    pub(super) x: FloatTensor<B>,
    #[extension_type]
    pub(super) gate: MatrixTensors<B>,
    #[extension_type]
    pub(super) up: MatrixTensors<B>,
    pub(super) rows: usize,
    pub(super) used: usize,
    pub(super) groups: IntTensor<B>,
    #[extension_type]
    pub(super) biases: Maybe<B>,
    pub(super) activation: Activation,
    pub(super) variant: Variant,
}

op! {
    fn expert_gated_matmul(Arguments) -> FloatTensor<Self>
}

/// `x` is `[tokens, cols]`, `groups` the result of [`group_experts::group_experts`] with `used` experts per
/// token. `gate` and `up` have `rows` rows per expert, `biases` are as in `expert_gated_matvec`. Returns `[tokens * used, rows]`.
#[expect(
    clippy::too_many_arguments,
    reason = "two matrices and how tokens choose experts"
)]
pub fn expert_gated_matmul(
    x: Tensor<2>,
    gate: &Matrix,
    up: &Matrix,
    rows: usize,
    used: usize,
    groups: Tensor<2, Int>,
    biases: Option<Tensor<2>>,
    activation: Activation,
    variant: Variant,
) -> Tensor<2> {
    Tensor::from_dispatch(Dispatch::expert_gated_matmul(Arguments {
        x: x.into_dispatch(),
        gate: gate.to_dispatch(),
        up: up.to_dispatch(),
        rows,
        used,
        groups: groups.into_dispatch(),
        biases: biases.into(),
        activation,
        variant,
    }))
}

/// The composed kernel. `gate` and `up` have the size of one expert's matrices; their formats may differ.
pub fn kernel(
    gate: MatrixShape,
    up: MatrixShape,
    used: usize,
    added: Added,
    activation: Activation,
    variant: Variant,
) -> Kernel {
    let kernel = Kernel::new(format!("expert_gated_matmul_{}", gate.ty.lowercase_name()));
    let kernel =
        group_experts::tile_modules(gate.constants(kernel), 2, used, variant).binding("out");
    let kernel = gated_matmul::matrices(kernel, gate, up, Arithmetic::F32);
    gated_matmul::rows(kernel, added, activation)
}

pub(super) fn launch(args: Arguments<Cube>) -> CubeTensor {
    let Arguments { gate, up, .. } = args;
    let [tokens, _] = args.x.shape().dims();
    let out = output(&args.x, [tokens * args.used, args.rows]);
    let mut buffers = vec![&args.groups, &args.x, &out];
    buffers.extend(gate.buffers().chain(up.buffers()));
    buffers.extend(args.biases.as_ref());
    let added = Added::of_experts(&args.biases);
    let [gate, up] = [&gate, &up].map(|matrix| matrix.shape.of_expert(args.rows));
    let grid = group_experts::workgroups(&args.groups, 2 * args.rows, args.variant);
    kernel(gate, up, args.used, added, args.activation, args.variant).launch(&buffers, grid);
    out
}

pub(super) fn twin(args: Arguments<Flex>) -> FlexTensor {
    let tiles = group_experts::parse(args.groups.storage());
    let matrices = [&args.gate, &args.up];
    products(
        args.x,
        matrices,
        args.rows,
        args.used,
        &tiles,
        &args.biases,
        args.activation,
    )
}

/// The twin, or the product on the CPU device, on tiles of experts and their pairs.
pub(super) fn products(
    x: FlexTensor,
    [gate, up]: [&MatrixTensors<Flex>; 2],
    rows: usize,
    used: usize,
    tiles: &[(usize, Vec<usize>)],
    biases: &Maybe<Flex>,
    activation: Activation,
) -> FlexTensor {
    let [tokens, _] = x.shape().dims();
    let mut gates = expert_matmul::products(x.storage(), used, gate, rows, tiles);
    let mut ups = expert_matmul::products(x.storage(), used, up, rows, tiles);
    if let Some(biases) = biases.as_ref() {
        let biases = biases.storage::<f32>();
        for (expert, pairs) in tiles {
            let (gate, up) = biases[expert * 2 * rows..][..2 * rows].split_at(rows);
            for pair in pairs {
                let add = |to: &mut [f32], bias: &[f32]| {
                    let to = &mut to[pair * rows..][..rows];
                    to.iter_mut().zip(bias).for_each(|(v, b)| *v += b);
                };
                add(&mut gates, gate);
                add(&mut ups, up);
            }
        }
    }
    let out = gated_matmul::joined(gates, &ups, activation, gate.is_panels());
    twin_output(out, [tokens * used, rows])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::validation::assert_valid;
    use crate::ops::test_cases::matrices;

    #[test]
    fn kernels_are_valid_wgsl() {
        let kernels = matrices().into_iter();
        assert_valid(kernels.flat_map(|(shape, variant)| {
            [Added::Nothing, Added::ToExperts]
                .map(|added| kernel(shape, shape, 8, added, Activation::ClampedSilu, variant))
        }));
    }
}
