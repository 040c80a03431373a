//! The gated half of a mixture of experts for many tokens: `silu(gate * x) * (up * x)` by each
//! token's experts, a tile of pairs of one expert at a time.

use burn::backend::flex::FlexTensor;
use burn::{
    backend::{Cube, Dispatch, Flex, TensorMetadata},
    tensor::{Int, Tensor},
};
use burn_wgpu::CubeTensor;

use super::{
    Arithmetic, Variant,
    backend::{MatrixTensors, Ops, output, twin_output},
    expert_matmul, gated_matmul, group_experts,
    kernel::Kernel,
    matrix::{Matrix, MatrixShape},
    shader,
    store::Store,
};

/// `x` is `[tokens, cols]`, `groups` what [`group_experts::group_experts`] makes of their `used`
/// experts each; `gate` and `up` have `rows` for each expert. Gives `[tokens * used, rows]`.
pub fn expert_gated_matmul(
    x: Tensor<2>,
    gate: &Matrix,
    up: &Matrix,
    rows: usize,
    used: usize,
    groups: Tensor<2, Int>,
    variant: Variant,
) -> Tensor<2> {
    Tensor::from_dispatch(Dispatch::expert_gated_matmul(
        x.into_dispatch(),
        gate.to_dispatch(),
        up.to_dispatch(),
        rows,
        used,
        groups.into_dispatch(),
        variant,
    ))
}

/// The composed kernel; `gate` and `up` are an expert's, formats may differ.
pub fn kernel(gate: MatrixShape, up: MatrixShape, used: usize, variant: Variant) -> Kernel {
    let kernel = Kernel::new(format!("expert_gated_matmul_{}", gate.ty.lowercase_name()))
        .constant("ROWS", gate.rows)
        .constant("COLS", gate.cols)
        .constant("BLOCKS", gate.row_blocks());
    let kernel = group_experts::tile_modules(kernel, used, variant).binding("out");
    let kernel = gated_matmul::matrices(kernel, gate, up, Arithmetic::F32);
    Store::default()
        .modules(kernel)
        .module(shader::activation::SILU)
        .module(if variant.barrier_free {
            shader::kernel::EXPERT_GATED_MATMUL_LANES
        } else {
            shader::kernel::EXPERT_GATED_MATMUL
        })
}

pub(super) fn launch(
    x: CubeTensor,
    gate: MatrixTensors<Cube>,
    up: MatrixTensors<Cube>,
    rows: usize,
    used: usize,
    groups: CubeTensor,
    variant: Variant,
) -> CubeTensor {
    let [tokens, _] = x.shape().dims();
    let out = output(&x, [tokens * used, rows]);
    let mut buffers = vec![&groups, &x, &out];
    gated_matmul::push_matrices(&mut buffers, &gate, &up);
    let of_expert = |shape: MatrixShape| MatrixShape { rows, ..shape };
    let shapes = [gate.shape, up.shape].map(of_expert);
    kernel(shapes[0], shapes[1], used, variant).launch(
        &buffers,
        group_experts::workgroups(&groups, 2 * rows, variant),
    );
    out
}

pub(super) fn twin(
    x: FlexTensor,
    gate: MatrixTensors<Flex>,
    up: MatrixTensors<Flex>,
    rows: usize,
    used: usize,
    groups: FlexTensor,
    _variant: Variant,
) -> FlexTensor {
    let tiles = group_experts::parse(groups.storage());
    gated(x, gate, up, rows, used, &tiles)
}

/// The twin on tiles of experts and their pairs.
pub(super) fn gated(
    x: FlexTensor,
    gate: MatrixTensors<Flex>,
    up: MatrixTensors<Flex>,
    rows: usize,
    used: usize,
    tiles: &[(usize, Vec<usize>)],
) -> FlexTensor {
    let [tokens, _] = x.shape().dims();
    let mut out = expert_matmul::products(x.storage(), used, &gate, rows, tiles);
    let ups = expert_matmul::products(x.storage(), used, &up, rows, tiles);
    out.iter_mut()
        .zip(ups)
        .for_each(|(gate, up)| *gate = *gate / (1.0 + (-*gate).exp()) * up);
    twin_output(out, [tokens * used, rows])
}
