//! The gated half of a mixture of experts for many tokens: `act(gate * x) * (up * x)` with the matrices of
//! each token's experts, one tile of pairs of the same expert at a time.

use burn::backend::flex::FlexTensor;
use burn::{
    backend::{
        Cube, Dispatch, Flex, TensorMetadata,
        tensor::{FloatTensor, IntTensor},
    },
    tensor::{Int, Tensor},
};
use burn_wgpu::CubeTensor;
use inpage_cpu::lanes::activation::{self, Activation};

use super::{
    arithmetic::Arithmetic,
    expert_matmul, gated_matmul, group_experts,
    matrix::{Matrix, MatrixShape, MatrixTensors},
    op::{op, output, twin_output},
    variant::Variant,
};
use crate::kernel::Kernel;

op! {
    cpu if (gate.is_panels());
    fn expert_gated_matmul(
        x: FloatTensor<Self>,
        #[extension_type] gate: MatrixTensors<Self>,
        #[extension_type] up: MatrixTensors<Self>,
        rows: usize,
        used: usize,
        groups: IntTensor<Self>,
        activation: Activation,
        variant: Variant,
    ) -> FloatTensor<Self>
}

/// `x` is `[tokens, cols]`, `groups` the result of [`group_experts::group_experts`] with `used` experts per
/// token. `gate` and `up` have `rows` rows per expert. Returns `[tokens * used, rows]`.
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
    Tensor::from_dispatch(Dispatch::expert_gated_matmul(
        x.into_dispatch(),
        gate.to_dispatch(),
        up.to_dispatch(),
        rows,
        used,
        groups.into_dispatch(),
        activation,
        variant,
    ))
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

pub(super) fn launch(
    x: CubeTensor,
    gate: MatrixTensors<Cube>,
    up: MatrixTensors<Cube>,
    rows: usize,
    used: usize,
    groups: CubeTensor,
    activation: Activation,
    variant: Variant,
) -> CubeTensor {
    let [tokens, _] = x.shape().dims();
    let out = output(&x, [tokens * used, rows]);
    let mut buffers = vec![&groups, &x, &out];
    buffers.extend(gate.buffers().chain(up.buffers()));
    let [gate, up] = [&gate, &up].map(|matrix| matrix.shape.of_expert(rows));
    let grid = group_experts::workgroups(&groups, 2 * rows, variant);
    kernel(gate, up, used, activation, variant).launch(&buffers, grid);
    out
}

pub(super) fn twin(
    x: FlexTensor,
    gate: MatrixTensors<Flex>,
    up: MatrixTensors<Flex>,
    rows: usize,
    used: usize,
    groups: FlexTensor,
    activation: Activation,
    _variant: Variant,
) -> FlexTensor {
    let tiles = group_experts::parse(groups.storage());
    gated(x, gate, up, rows, used, &tiles, activation)
}

/// The twin on tiles of experts and their pairs.
pub(super) fn gated(
    x: FlexTensor,
    gate: MatrixTensors<Flex>,
    up: MatrixTensors<Flex>,
    rows: usize,
    used: usize,
    tiles: &[(usize, Vec<usize>)],
    activation: Activation,
) -> FlexTensor {
    let [tokens, _] = x.shape().dims();
    let mut out = expert_matmul::products(x.storage(), used, &gate, rows, tiles);
    let ups = expert_matmul::products(x.storage(), used, &up, rows, tiles);
    out.iter_mut()
        .zip(ups)
        .for_each(|(gate, up)| *gate = activation.apply(*gate) * up);
    twin_output(out, [tokens * used, rows])
}

fn cpu(
    x: FlexTensor,
    gate: MatrixTensors<Flex>,
    up: MatrixTensors<Flex>,
    rows: usize,
    used: usize,
    groups: FlexTensor,
    activation: Activation,
    _variant: Variant,
) -> FlexTensor {
    let tiles = group_experts::parse(groups.storage());
    gated_on_cpu(x, gate, up, rows, used, &tiles, activation)
}

/// As [`gated`], by the kernels of the CPU device.
pub(super) fn gated_on_cpu(
    x: FlexTensor,
    gate: MatrixTensors<Flex>,
    up: MatrixTensors<Flex>,
    rows: usize,
    used: usize,
    tiles: &[(usize, Vec<usize>)],
    activation: Activation,
) -> FlexTensor {
    let [tokens, _] = x.shape().dims();
    let gates = expert_matmul::products_on_cpu(x.storage(), used, &gate, rows, tiles);
    let ups = expert_matmul::products_on_cpu(x.storage(), used, &up, rows, tiles);
    let mut out = vec![0.0; gates.len()];
    activation::gated(&gates, &ups, activation, &mut out);
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
