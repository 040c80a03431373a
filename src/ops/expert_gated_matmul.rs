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
    expert_matmul, gated_matmul, group_experts,
    matrix::{Matrix, MatrixShape, MatrixTensors},
    op::{op, output, twin_output},
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
    pub(super) activation: Activation,
    pub(super) variant: Variant,
}

op! {
    fn expert_gated_matmul(Arguments) -> FloatTensor<Self>
}

/// `x` is `[tokens, cols]`, `groups` the result of [`group_experts::group_experts`] with `used` experts per
/// token. `gate` and `up` have `rows` rows per expert. Returns `[tokens * used, rows]`.
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
        activation,
        variant,
    }))
}

/// The composed kernel. `gate` and `up` have the size of one expert's matrices; their formats may differ.
pub fn kernel(
    gate: MatrixShape,
    up: MatrixShape,
    used: usize,
    activation: Activation,
    variant: Variant,
) -> Kernel {
    let kernel = Kernel::new(format!("expert_gated_matmul_{}", gate.ty.lowercase_name()));
    let kernel =
        group_experts::tile_modules(gate.constants(kernel), 2, used, variant).binding("out");
    let kernel = gated_matmul::matrices(kernel, gate, up, Arithmetic::F32);
    gated_matmul::rows(kernel, gated_matmul::Added::Nothing, activation)
}

pub(super) fn launch(args: Arguments<Cube>) -> CubeTensor {
    let Arguments { gate, up, .. } = args;
    let [tokens, _] = args.x.shape().dims();
    let out = output(&args.x, [tokens * args.used, args.rows]);
    let mut buffers = vec![&args.groups, &args.x, &out];
    buffers.extend(gate.buffers().chain(up.buffers()));
    let [gate, up] = [&gate, &up].map(|matrix| matrix.shape.of_expert(args.rows));
    let grid = group_experts::workgroups(&args.groups, 2 * args.rows, args.variant);
    kernel(gate, up, args.used, args.activation, args.variant).launch(&buffers, grid);
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
    activation: Activation,
) -> FlexTensor {
    let [tokens, _] = x.shape().dims();
    let gates = expert_matmul::products(x.storage(), used, gate, rows, tiles);
    let ups = expert_matmul::products(x.storage(), used, up, rows, tiles);
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
        assert_valid(
            kernels.map(|(shape, variant)| kernel(shape, shape, 8, Activation::Silu, variant)),
        );
    }
}
