//! The second half of a mixture of experts for a few tokens: the weighted sum of the products of each
//! token's experts in one pass, `out = residual + sum(share * (weights * x + bias))`.

use super::{
    arithmetic::Arithmetic,
    group_experts,
    host_products::expert_products,
    matrix::{Matrix, MatrixShape, MatrixTensors},
    matvec::{self, Product},
    op::*,
    route_experts::Routes,
    store::Store,
    sum_experts,
    variant::Variant,
};
use crate::kernel::{Kernel, wgsl};

/// The arguments of the op.
#[derive(ExtensionType)]
pub(super) struct Arguments<B: Backend> {
    x: FloatTensor<B>,
    #[extension_type]
    weights: MatrixTensors<B>,
    experts: IntTensor<B>,
    shares: FloatTensor<B>,
    #[extension_type]
    biases: Maybe<B>,
    #[extension_type]
    residual: Maybe<B>,
    rows: usize,
    variant: Variant,
}

op! {
    fn expert_matvec(Arguments) -> FloatTensor<Self>
}

/// `x` is `[tokens * used, cols]` with at most [`matvec::MAX_TOKENS`], `residual` `[tokens, rows]`;
/// `weights` has `rows` rows per expert, `biases` `[experts, rows]`. Returns `[tokens, rows]`.
pub fn expert_matvec(
    x: Tensor<2>,
    weights: &Matrix,
    biases: Option<Tensor<2>>,
    routes: Routes,
    residual: Option<Tensor<2>>,
    rows: usize,
    variant: Variant,
) -> Tensor<2> {
    matvec::assert_few(routes.experts.dims()[0]);
    Tensor::from_dispatch(Dispatch::expert_matvec(Arguments {
        x: x.into_dispatch(),
        weights: weights.to_dispatch(),
        experts: routes.experts.into_dispatch(),
        shares: routes.shares.into_dispatch(),
        biases: biases.into(),
        residual: residual.into(),
        rows,
        variant,
    }))
}

/// The composed kernel for any number of tokens. `weights` has the size of one expert's matrix.
fn kernel(
    weights: MatrixShape,
    used: usize,
    has_biases: bool,
    residual: bool,
    variant: Variant,
) -> Kernel {
    let kernel = Kernel::new(format!("expert_matvec_{}", weights.ty.lowercase_name()))
        .binding("x")
        .binding("experts")
        .binding("shares")
        .binding("out")
        .constant("USED", used);
    let kernel = weights.bindings(kernel, "weights");
    let modules = Product::Matvec.weights(weights.ty, Arithmetic::F32, variant);
    let kernel = matvec::lanes(kernel, weights, 1, Arithmetic::F32, variant).modules(modules);
    let kernel = matvec::input(kernel, None);
    let store = Store {
        residual,
        ..Store::default()
    };
    sum_experts::biases(store.rows(kernel), has_biases).module(wgsl!("expert_matvec"))
}

fn launch(args: Arguments<Cube>) -> CubeTensor {
    let rows = args.rows;
    let [tokens, used] = args.experts.shape().dims();
    let shape = args.weights.shape.of_expert(rows);
    let out = output(&args.x, [tokens, rows]);
    let mut buffers = vec![&args.x, &args.experts, &args.shares, &out];
    buffers.extend(args.weights.buffers());
    let (residual, biases) = (args.residual.as_ref(), args.biases.as_ref());
    buffers.extend(residual.into_iter().chain(biases));
    let (has_biases, residual) = (biases.is_some(), residual.is_some());
    let kernel = kernel(shape, used, has_biases, residual, args.variant);
    kernel.launch(
        &buffers,
        matvec::expert_workgroups(rows, tokens, args.variant),
    );
    out
}

fn twin(args: Arguments<Flex>) -> FlexTensor {
    let rows = args.rows;
    let [pairs, _] = args.x.shape().dims();
    let tiles = group_experts::single_pairs(args.experts.storage());
    let products = expert_products(args.x.storage(), 1, &args.weights, rows, &tiles);
    sum_experts::twin(sum_experts::Arguments {
        products: twin_output(products, [pairs, rows]),
        experts: args.experts,
        biases: args.biases,
        shares: args.shares,
        residual: args.residual,
    })
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
            [false, true].map(|has_biases| kernel(shape, 8, has_biases, !has_biases, variant))
        }));
    }
}
