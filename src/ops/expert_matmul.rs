//! Experts' matrices times the inputs of many pairs, one tile of pairs of the same expert at a time:
//! `out = weights * x`.

use super::{
    group_experts,
    host_products::expert_products,
    matrix::{Matrix, MatrixShape, MatrixTensors},
    op::*,
    store::Store,
    variant::Variant,
};
use crate::kernel::Kernel;

/// The arguments of the op.
#[derive(ExtensionType)]
pub(super) struct Arguments<B: Backend> {
    x: FloatTensor<B>,
    #[extension_type]
    weights: MatrixTensors<B>,
    rows: usize,
    groups: IntTensor<B>,
    variant: Variant,
}

op! {
    fn expert_matmul(Arguments) -> FloatTensor<Self>
}

/// `x` is `[pairs, cols]`, `groups` the result of [`group_experts::group_experts`] for their experts.
/// `weights` has `rows` rows per expert. Returns `[pairs, rows]`.
pub fn expert_matmul(
    x: Tensor<2>,
    weights: &Matrix,
    rows: usize,
    groups: Tensor<2, Int>,
    variant: Variant,
) -> Tensor<2> {
    Tensor::from_dispatch(Dispatch::expert_matmul(Arguments {
        x: x.into_dispatch(),
        weights: weights.to_dispatch(),
        rows,
        groups: groups.into_dispatch(),
        variant,
    }))
}

/// The composed kernel. `weights` has the size of one expert's matrix.
fn kernel(weights: MatrixShape, variant: Variant) -> Kernel {
    let kernel = Kernel::new(format!("expert_matmul_{}", weights.ty.lowercase_name()));
    let kernel =
        group_experts::tile_modules(weights.constants(kernel), 1, 1, variant).binding("out");
    let kernel = weights.bindings(kernel, "weights");
    Store::default().rows(kernel.modules(weights.ty.wgsl()))
}

fn launch(args: Arguments<Cube>) -> CubeTensor {
    let [pairs, _] = args.x.shape().dims();
    let out = output(&args.x, [pairs, args.rows]);
    let shape = args.weights.shape.of_expert(args.rows);
    let mut buffers = vec![&args.groups, &args.x, &out];
    buffers.extend(args.weights.buffers());
    let grid = group_experts::workgroups(&args.groups, args.rows, args.variant);
    kernel(shape, args.variant).launch(&buffers, grid);
    out
}

fn twin(args: Arguments<Flex>) -> FlexTensor {
    let [pairs, _] = args.x.shape().dims();
    let tiles = group_experts::parse(args.groups.storage());
    let out = expert_products(args.x.storage(), 1, &args.weights, args.rows, &tiles);
    twin_output(out, [pairs, args.rows])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::validation::assert_valid;
    use crate::ops::test_cases::matrices;

    #[test]
    fn kernels_are_valid_wgsl() {
        let kernels = matrices().into_iter();
        assert_valid(kernels.map(|(shape, variant)| kernel(shape, variant)));
    }
}
