//! Matrix times the vectors of tokens: `out = finish(weights * norm(x) + bias + delta) + residual` in one dispatch. The norm
//! and the addends are optional. `matvec` is for the few tokens of decode, `matmul` for the many of prefill.

use super::{
    host_products::products,
    matrix::{Matrix, MatrixShape, MatrixTensors},
    matvec::{self, Product},
    norm::InputNorm,
    op::*,
    store::{AddendTensors, Addends, Finish, Store},
    tile,
    variant::Variant,
};
use crate::kernel::Kernel;

/// The arguments of the op.
#[derive(ExtensionType)]
pub(super) struct Arguments<B: Backend> {
    x: FloatTensor<B>,
    #[extension_type]
    norm: InputNorm<B>,
    #[extension_type]
    weights: MatrixTensors<B>,
    #[extension_type]
    addends: AddendTensors<B>,
    finish: Finish,
    product: Product,
    variant: Variant,
}

op! {
    fn product(Arguments) -> FloatTensor<Self>
}

/// `x` is `[tokens, cols]` with at most [`matvec::MAX_TOKENS`], `norm` `[cols]`. Returns `[tokens, rows]`.
pub fn matvec(
    x: Tensor<2>,
    norm: Option<(Tensor<1>, f32)>,
    weights: &Matrix,
    addends: Addends,
    finish: Finish,
    variant: Variant,
) -> Tensor<2> {
    matvec::assert_few(x.dims()[0]);
    Tensor::from_dispatch(Dispatch::product(Arguments {
        x: x.into_dispatch(),
        norm: norm.into(),
        weights: weights.to_dispatch(),
        addends: addends.into(),
        finish,
        product: Product::Matvec,
        variant,
    }))
}

/// `x` is `[tokens, cols]`. Returns `[tokens, rows]`.
pub fn matmul(
    x: Tensor<2>,
    weights: &Matrix,
    addends: Addends,
    finish: Finish,
    variant: Variant,
) -> Tensor<2> {
    Tensor::from_dispatch(Dispatch::product(Arguments {
        x: x.into_dispatch(),
        norm: InputNorm::None,
        weights: weights.to_dispatch(),
        addends: addends.into(),
        finish,
        product: Product::Matmul,
        variant,
    }))
}

/// The composed kernel for steps of `tokens`. Of matvecs, there is one for a single token and one for other numbers.
fn kernel(
    product: Product,
    weights: MatrixShape,
    tokens: usize,
    norm_eps: Option<f32>,
    store: Store,
    variant: Variant,
) -> Kernel {
    let arithmetic = product.arithmetic(&[weights.ty], variant);
    let modules = product.weights(weights.ty, arithmetic, variant);
    let kernel = Kernel::new(format!(
        "{}_{}",
        product.name(),
        weights.ty.lowercase_name()
    ));
    let kernel = kernel.binding("x").binding("out");
    let kernel = weights.bindings(kernel, "weights");
    match product {
        Product::Matvec => {
            let kernel = store.rows(matvec::input(kernel, norm_eps));
            let kernel = matvec::lanes(kernel, weights, tokens, arithmetic, variant);
            matvec::main(kernel.modules(modules), tokens)
        }
        Product::Matmul => {
            let kernel = weights.constants(store.rows(kernel)).modules(modules);
            tile::modules(kernel, tokens, &[weights], arithmetic, variant)
        }
    }
}

fn launch(args: Arguments<Cube>) -> CubeTensor {
    let [tokens, _] = args.x.shape().dims();
    let shape = args.weights.shape;
    let out = output(&args.x, [tokens, shape.rows]);
    let mut buffers = vec![&args.x, &out];
    buffers.extend(args.weights.buffers());
    buffers.extend(args.norm.norm());
    buffers.extend(args.addends.buffers());
    let kernel = kernel(
        args.product,
        shape,
        tokens,
        args.norm.eps(),
        args.addends.store(args.finish),
        args.variant,
    );
    let grid = args
        .product
        .workgroups(tokens, shape.rows, &[shape.ty], args.variant);
    kernel.launch(&buffers, grid);
    out
}

/// The twin or, for a matrix of panels, the product on the CPU device.
fn twin(args: Arguments<Flex>) -> FlexTensor {
    let Arguments {
        weights, addends, ..
    } = args;
    let arithmetic = args.product.arithmetic(&[weights.shape.ty], args.variant);
    let x = args.norm.apply(args.x, weights.is_panels());
    let [tokens, _] = x.shape().dims();
    let rows = weights.shape.rows;
    let mut out = products(x.storage(), &weights, arithmetic);
    if let Some(bias) = addends.bias.as_ref() {
        out.chunks_exact_mut(rows)
            .for_each(|row| add(row, bias.storage()));
    }
    let add_each = |out: &mut [f32], addend: &Maybe<Flex>| {
        if let Some(addend) = addend.as_ref() {
            add(out, addend.storage());
        }
    };
    add_each(&mut out, &addends.delta);
    match weights.is_panels() {
        true => args.finish.apply_on_cpu(&mut out),
        false => out.iter_mut().for_each(|o| *o = args.finish.apply(*o)),
    }
    add_each(&mut out, &addends.residual);
    twin_output(out, [tokens, rows])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::validation::assert_valid;
    use crate::ops::test_cases::{matrices, stores};

    #[test]
    fn kernels_of_few_tokens_are_valid_wgsl() {
        for (shape, variant) in matrices() {
            for store in stores(shape.ty) {
                let tokens = match store.bias == store.residual {
                    true => 1,
                    false => matvec::MAX_TOKENS,
                };
                let kernel =
                    |norm_eps| kernel(Product::Matvec, shape, tokens, norm_eps, store, variant);
                assert_valid([None, Some(1e-5)].map(kernel));
            }
        }
    }

    #[test]
    fn kernels_of_many_tokens_are_valid_wgsl() {
        for (shape, variant) in matrices() {
            for store in stores(shape.ty) {
                let kernel = |tokens| kernel(Product::Matmul, shape, tokens, None, store, variant);
                assert_valid([16, 256].map(kernel));
            }
        }
    }
}
