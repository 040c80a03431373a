//! The gated half of a feed-forward layer: `act(gate * norm(x)) * (up * norm(x))` (Shazeer 2020,
//! <https://arxiv.org/abs/2002.05202>), for few tokens and for many.

use inpage_cpu::lanes::activation::{Activation, gated};

use super::{
    host_products::products,
    matrix::{Matrix, MatrixShape, MatrixTensors},
    matvec::{self, Product},
    norm::InputNorm,
    op::*,
    store::Store,
    tile,
    variant::Variant,
};
use crate::{
    kernel::{Kernel, wgsl},
    tensor_types::TensorType,
};

/// The arguments of the op.
#[derive(ExtensionType)]
pub(super) struct Arguments<B: Backend> {
    x: FloatTensor<B>,
    #[extension_type]
    norm: InputNorm<B>,
    #[extension_type]
    gate: MatrixTensors<B>,
    #[extension_type]
    up: MatrixTensors<B>,
    #[extension_type]
    delta: Maybe<B>,
    activation: Activation,
    product: Product,
    variant: Variant,
}

op! {
    fn gated_product(Arguments) -> FloatTensor<Self>
}

/// `x` is `[tokens, cols]` with at most [`matvec::MAX_TOKENS`], `norm` `[cols]` (`None` if `x` is already
/// normalized), `delta` what is added to the products with gate and with up: `[tokens, 2 * rows]`, such as the
/// adapters' output, or `[1, 2 * rows]` for all tokens, such as biases. Returns `[tokens, rows]`.
pub fn gated_matvec(
    x: Tensor<2>,
    norm: Option<(Tensor<1>, f32)>,
    gate: &Matrix,
    up: &Matrix,
    delta: Option<Tensor<2>>,
    activation: Activation,
    variant: Variant,
) -> Tensor<2> {
    matvec::assert_few(x.dims()[0]);
    Tensor::from_dispatch(Dispatch::gated_product(Arguments {
        x: x.into_dispatch(),
        norm: norm.into(),
        gate: gate.to_dispatch(),
        up: up.to_dispatch(),
        delta: delta.into(),
        activation,
        product: Product::Matvec,
        variant,
    }))
}

/// `x` is `[tokens, cols]`, `delta` as in [`gated_matvec`]. Returns `[tokens, rows]`.
pub fn gated_matmul(
    x: Tensor<2>,
    gate: &Matrix,
    up: &Matrix,
    delta: Option<Tensor<2>>,
    activation: Activation,
    variant: Variant,
) -> Tensor<2> {
    Tensor::from_dispatch(Dispatch::gated_product(Arguments {
        x: x.into_dispatch(),
        norm: InputNorm::None,
        gate: gate.to_dispatch(),
        up: up.to_dispatch(),
        delta: delta.into(),
        activation,
        product: Product::Matmul,
        variant,
    }))
}

/// The addends of the products with gate and with up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Added {
    /// The products have no addends.
    Nothing,
    /// A row for all tokens: biases.
    ToAll,
    /// A row per token: the adapters' output.
    ToEach,
    /// A row per expert: their biases.
    ToExperts,
    /// A factor of the products with gate, for each token and expert. Nothing is added.
    Factors,
}

impl Added {
    /// The kind of `delta` in a step of `tokens`.
    fn of(delta: &Maybe<Cube>, tokens: usize) -> Added {
        match delta.as_ref().map(|it| it.shape().dims::<2>()[0]) {
            None => Added::Nothing,
            Some(rows) if rows == tokens => Added::ToEach,
            Some(rows) => {
                assert_eq!(rows, 1, "rows that are added to {tokens} tokens");
                Added::ToAll
            }
        }
    }
}

/// The composed kernel for steps of `tokens`, as in `product`. `gate` and `up` have equal sizes; their types may differ.
fn kernel(
    product: Product,
    [gate, up]: [MatrixShape; 2],
    added: Added,
    activation: Activation,
    tokens: usize,
    norm_eps: Option<f32>,
    variant: Variant,
) -> Kernel {
    let arithmetic = product.arithmetic(&[gate.ty, up.ty], variant);
    let modules = |ty| product.weights(ty, arithmetic, variant);
    let name = format!("gated_{}_{}", product.name(), gate.ty.lowercase_name());
    let kernel = Kernel::new(name).binding("x").binding("out");
    match product {
        Product::Matvec => {
            let kernel = matvec::input(kernel, norm_eps);
            let kernel = matrices(kernel, [gate, up], modules);
            let kernel = matvec::lanes(kernel, gate, tokens, arithmetic, variant);
            matvec::main(rows(kernel, added, activation), tokens)
        }
        Product::Matmul => {
            let kernel = matrices(gate.constants(kernel), [gate, up], modules);
            let kernel = rows(kernel, added, activation);
            tile::modules(kernel, tokens, &[gate, up], arithmetic, variant)
        }
    }
}

/// Declares the bindings of both matrices and adds the modules of each one's type.
pub(super) fn matrices(
    mut kernel: Kernel,
    [gate, up]: [MatrixShape; 2],
    modules: impl Fn(TensorType) -> &'static [&'static str],
) -> Kernel {
    for (shape, name) in [(gate, "gate"), (up, "up")] {
        kernel = shape
            .bindings(kernel, name)
            .instance(modules(shape.ty), name);
    }
    kernel
}

/// Adds the modules of rows that join those of gate and up. Declares the binding of what changes them.
pub(super) fn rows(kernel: Kernel, added: Added, activation: Activation) -> Kernel {
    let kernel = match added {
        Added::Nothing => kernel.module(wgsl!("shared/gated/plain")),
        Added::ToAll => kernel.binding("delta").module(wgsl!("shared/gated/biased")),
        Added::ToEach => kernel.binding("delta").module(wgsl!("shared/gated/delta")),
        Added::ToExperts => kernel
            .binding("delta")
            .module(wgsl!("shared/gated/expert_biased")),
        Added::Factors => kernel
            .binding("factors")
            .module(wgsl!("shared/gated/factors")),
    };
    Store::default()
        .modules(kernel)
        .module(activation.wgsl())
        .alias("Sum", "vec2<f32>")
        .module(wgsl!("shared/rows/gated"))
}

fn launch(args: Arguments<Cube>) -> CubeTensor {
    let Arguments { gate, up, .. } = args;
    let [tokens, _] = args.x.shape().dims();
    let rows = gate.shape.rows;
    let out = output(&args.x, [tokens, rows]);
    let mut buffers = vec![&args.x, &out];
    buffers.extend(args.norm.norm());
    buffers.extend(gate.buffers().chain(up.buffers()));
    buffers.extend(args.delta.as_ref());
    let kernel = kernel(
        args.product,
        [gate.shape, up.shape],
        Added::of(&args.delta, tokens),
        args.activation,
        tokens,
        args.norm.eps(),
        args.variant,
    );
    let types = [gate.shape.ty, up.shape.ty];
    let grid = args.product.workgroups(tokens, rows, &types, args.variant);
    kernel.launch(&buffers, grid);
    out
}

/// The twin or, for matrices of panels, the product on the CPU device.
fn twin(args: Arguments<Flex>) -> FlexTensor {
    let Arguments { gate, up, .. } = args;
    let types = [gate.shape.ty, up.shape.ty];
    let arithmetic = args.product.arithmetic(&types, args.variant);
    let x = args.norm.apply(args.x, gate.is_panels());
    let [tokens, _] = x.shape().dims();
    let rows = gate.shape.rows;
    let mut gates = products(x.storage(), &gate, arithmetic);
    let mut ups = products(x.storage(), &up, arithmetic);
    if let Some(delta) = args.delta.as_ref() {
        // A single row repeats; one per token does not come to its end.
        let deltas = delta.storage::<f32>().chunks_exact(2 * rows).cycle();
        let outputs = gates.chunks_exact_mut(rows).zip(ups.chunks_exact_mut(rows));
        for ((gates, ups), delta) in outputs.zip(deltas) {
            add(gates, &delta[..rows]);
            add(ups, &delta[rows..]);
        }
    }
    let out = joined(gates, &ups, args.activation, gate.is_panels());
    twin_output(out, [tokens, rows])
}

/// `act(gates) * ups`, by the twin or by the kernels of the CPU device.
pub(super) fn joined(
    mut gates: Vec<f32>,
    ups: &[f32],
    activation: Activation,
    is_on_cpu: bool,
) -> Vec<f32> {
    if is_on_cpu {
        let mut out = vec![0.0; gates.len()];
        gated(&gates, ups, activation, &mut out);
        return out;
    }
    for (gate, up) in gates.iter_mut().zip(ups) {
        *gate = activation.apply(*gate) * activation.other_half(*up);
    }
    gates
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::validation::assert_valid;
    use crate::ops::test_cases::matrices;

    #[test]
    fn kernels_are_valid_wgsl() {
        use Product::*;
        let cases = [
            (Matvec, 1, Activation::Silu, Some(1e-5)),
            (Matvec, matvec::MAX_TOKENS, Activation::Gelu, None),
            (Matmul, 16, Activation::QuickGelu, None),
            (Matmul, 256, Activation::QuickGelu, None),
        ];
        for (shape, variant) in matrices() {
            for (product, tokens, act, norm_eps) in cases {
                let added = [Added::Nothing, Added::ToAll, Added::ToEach];
                assert_valid(added.map(|added| {
                    let matrices = [shape, shape];
                    kernel(product, matrices, added, act, tokens, norm_eps, variant)
                }));
            }
        }
    }
}
