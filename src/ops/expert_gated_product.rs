//! The gated half of a mixture of experts: `act(gate * norm(x)) * (up * norm(x))` with the matrices of each token's experts,
//! which are stored one below the other. For few tokens, and for many, whose pairs are sorted into tiles of one expert each.

use inpage_cpu::lanes::activation::Activation;

use super::{
    arithmetic::Arithmetic,
    gated_product::{Added, joined, matrices, rows},
    group_experts,
    host_products::expert_products,
    matrix::{Matrix, MatrixShape, MatrixTensors},
    matvec::{self, Product},
    norm::InputNorm,
    op::*,
    variant::Variant,
};
use crate::kernel::{Kernel, wgsl};

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
    rows: usize,
    used: usize,
    /// The experts of the tokens for few tokens, tiles for many.
    pairs: IntTensor<B>,
    #[extension_type]
    biases: Maybe<B>,
    #[extension_type]
    factors: Maybe<B>,
    activation: Activation,
    product: Product,
    variant: Variant,
}

op! {
    fn expert_gated_product(Arguments) -> FloatTensor<Self>
}

/// `x` is `[tokens, cols]` with at most [`matvec::MAX_TOKENS`], `norm` `[cols]`, `experts`
/// `[tokens, used]`. `gate` and `up` have `rows` rows per expert, `biases` `[experts, 2 * rows]` those of gate, then those
/// of up. `factors` `[tokens, used]` are factors of the products with gate. There is only one of `norm`, `biases` and
/// `factors`, because more would be too many buffers. Returns `[tokens * used, rows]`.
#[expect(
    clippy::too_many_arguments,
    reason = "two matrices and how tokens choose experts"
)]
pub fn expert_gated_matvec(
    x: Tensor<2>,
    norm: Option<(Tensor<1>, f32)>,
    gate: &Matrix,
    up: &Matrix,
    rows: usize,
    experts: Tensor<2, Int>,
    biases: Option<Tensor<2>>,
    factors: Option<Tensor<2>>,
    activation: Activation,
    variant: Variant,
) -> Tensor<2> {
    let given = [norm.is_some(), biases.is_some(), factors.is_some()];
    let given = given.iter().filter(|is_given| **is_given).count();
    assert!(given <= 1, "several of norm, biases and factors of experts");
    matvec::assert_few(x.dims()[0]);
    Tensor::from_dispatch(Dispatch::expert_gated_product(Arguments {
        x: x.into_dispatch(),
        norm: norm.into(),
        gate: gate.to_dispatch(),
        up: up.to_dispatch(),
        rows,
        used: experts.dims()[1],
        pairs: experts.into_dispatch(),
        biases: biases.into(),
        factors: factors.into(),
        activation,
        product: Product::Matvec,
        variant,
    }))
}

/// `x` is `[tokens, cols]`, `groups` the result of [`group_experts::group_experts`] with `used` experts per
/// token. `gate` and `up` have `rows` rows per expert, `biases` and `factors` are as in [`expert_gated_matvec`]. Returns
/// `[tokens * used, rows]`.
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
    factors: Option<Tensor<2>>,
    activation: Activation,
    variant: Variant,
) -> Tensor<2> {
    Tensor::from_dispatch(Dispatch::expert_gated_product(Arguments {
        x: x.into_dispatch(),
        norm: InputNorm::None,
        gate: gate.to_dispatch(),
        up: up.to_dispatch(),
        rows,
        used,
        pairs: groups.into_dispatch(),
        biases: biases.into(),
        factors: factors.into(),
        activation,
        product: Product::Matmul,
        variant,
    }))
}

/// The composed kernel for any number of tokens. `gate` and `up` have the size of one expert's matrices; their types may
/// differ.
fn kernel(
    product: Product,
    [gate, up]: [MatrixShape; 2],
    used: usize,
    norm_eps: Option<f32>,
    added: Added,
    activation: Activation,
    variant: Variant,
) -> Kernel {
    let name = format!(
        "expert_gated_{}_{}",
        product.name(),
        gate.ty.lowercase_name()
    );
    let modules = |ty| product.weights(ty, Arithmetic::F32, variant);
    let kernel = Kernel::new(name);
    match product {
        Product::Matvec => {
            let kernel = kernel
                .binding("x")
                .binding("experts")
                .binding("out")
                .constant("USED", used);
            let kernel = matrices(kernel, [gate, up], modules);
            let kernel = matvec::lanes(kernel, gate, 1, Arithmetic::F32, variant);
            let kernel = matvec::input(kernel, norm_eps);
            rows(kernel, added, activation).module(wgsl!("expert_gated_matvec"))
        }
        Product::Matmul => {
            let kernel = gate.constants(kernel);
            let kernel = group_experts::tile_modules(kernel, 2, used, variant).binding("out");
            rows(matrices(kernel, [gate, up], modules), added, activation)
        }
    }
}

fn launch(args: Arguments<Cube>) -> CubeTensor {
    let Arguments { gate, up, .. } = args;
    let [tokens, _] = args.x.shape().dims();
    let pairs = tokens * args.used;
    let out = output(&args.x, [pairs, args.rows]);
    let (mut buffers, grid) = match args.product {
        Product::Matvec => (
            vec![&args.x, &args.pairs, &out],
            matvec::expert_workgroups(args.rows, pairs, args.variant),
        ),
        Product::Matmul => (
            vec![&args.pairs, &args.x, &out],
            group_experts::workgroups(&args.pairs, 2 * args.rows, args.variant),
        ),
    };
    buffers.extend(gate.buffers().chain(up.buffers()));
    buffers.extend(args.norm.norm());
    let (biases, factors) = (args.biases.as_ref(), args.factors.as_ref());
    buffers.extend(biases.into_iter().chain(factors));
    let added = match (biases, factors) {
        (Some(_), _) => Added::ToExperts,
        (None, Some(_)) => Added::Factors,
        (None, None) => Added::Nothing,
    };
    let kernel = kernel(
        args.product,
        [&gate, &up].map(|matrix| matrix.shape.of_expert(args.rows)),
        args.used,
        args.norm.eps(),
        added,
        args.activation,
        args.variant,
    );
    kernel.launch(&buffers, grid);
    out
}

/// The twin or, for matrices of panels, the product on the CPU device.
fn twin(args: Arguments<Flex>) -> FlexTensor {
    let Arguments {
        gate,
        up,
        rows,
        used,
        ..
    } = args;
    let tiles = match args.product {
        Product::Matvec => group_experts::single_pairs(args.pairs.storage()),
        Product::Matmul => group_experts::parse(args.pairs.storage()),
    };
    let x = args.norm.apply(args.x, gate.is_panels());
    let [tokens, _] = x.shape().dims();
    let mut gates = expert_products(x.storage(), used, &gate, rows, &tiles);
    let mut ups = expert_products(x.storage(), used, &up, rows, &tiles);
    if let Some(biases) = args.biases.as_ref() {
        let biases = biases.storage::<f32>();
        for (expert, pairs) in &tiles {
            let (gate, up) = biases[expert * 2 * rows..][..2 * rows].split_at(rows);
            for pair in pairs {
                add(&mut gates[pair * rows..][..rows], gate);
                add(&mut ups[pair * rows..][..rows], up);
            }
        }
    }
    if let Some(factors) = args.factors.as_ref() {
        let pairs = gates.chunks_exact_mut(rows);
        for (gates, factor) in pairs.zip(factors.storage::<f32>()) {
            gates.iter_mut().for_each(|gate| *gate *= factor);
        }
    }
    let out = joined(gates, &ups, args.activation, gate.is_panels());
    twin_output(out, [tokens * used, rows])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::validation::assert_valid;
    use crate::ops::test_cases::matrices;

    #[test]
    fn kernels_are_valid_wgsl() {
        use {Activation::*, Added::*, Product::*};
        let cases = [
            (Matvec, Some(1e-5), Nothing, Silu),
            (Matvec, None, ToExperts, ClampedSilu),
            (Matmul, None, Nothing, ClampedSilu),
            (Matmul, None, ToExperts, ClampedSilu),
            (Matvec, None, Factors, Silu),
            (Matmul, None, Factors, Silu),
        ];
        for (shape, variant) in matrices() {
            assert_valid(cases.map(|(product, norm_eps, added, activation)| {
                let matrices = [shape, shape];
                kernel(product, matrices, 8, norm_eps, added, activation, variant)
            }));
        }
    }
}
