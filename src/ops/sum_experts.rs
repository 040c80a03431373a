//! The weighted sum of the outputs of each token's experts, for many tokens:
//! `out = residual + sum(share * products)`.

use burn::backend::flex::FlexTensor;
use burn::{
    backend::{Backend, Cube, Dispatch, ExtensionType, Flex, TensorMetadata, tensor::FloatTensor},
    tensor::Tensor,
};
use burn_wgpu::CubeTensor;

use super::{
    op::{op, output, twin_output},
    store::Store,
};
use crate::kernel::{Kernel, wgsl};

/// The arguments of the op.
#[derive(ExtensionType)]
pub(super) struct Arguments<B: Backend> {
    pub(super) products: FloatTensor<B>,
    pub(super) shares: FloatTensor<B>,
    pub(super) residual: FloatTensor<B>,
}

op! {
    fn sum_experts(Arguments) -> FloatTensor<Self>
}

const WORKGROUP: usize = 64;

/// `products` is `[tokens * used, rows]`, `shares` `[tokens, used]`, `residual` `[tokens, rows]`. Returns
/// `[tokens, rows]`.
pub fn sum_experts(products: Tensor<2>, shares: Tensor<2>, residual: Tensor<2>) -> Tensor<2> {
    Tensor::from_dispatch(Dispatch::sum_experts(Arguments {
        products: products.into_dispatch(),
        shares: shares.into_dispatch(),
        residual: residual.into_dispatch(),
    }))
}

/// The composed kernel.
pub fn kernel(rows: usize, used: usize) -> Kernel {
    let kernel = Kernel::new("sum_experts")
        .binding("products")
        .binding("shares")
        .binding("out")
        .constant("ROWS", rows)
        .constant("USED", used)
        .constant("WORKGROUP", WORKGROUP);
    let store = Store {
        residual: true,
        ..Store::default()
    };
    store.modules(kernel).module(wgsl!("sum_experts"))
}

pub(super) fn launch(args: Arguments<Cube>) -> CubeTensor {
    let [tokens, rows] = args.residual.shape().dims();
    let [_, used] = args.shares.shape().dims();
    let out = output(&args.products, [tokens, rows]);
    kernel(rows, used).launch(
        &[&args.products, &args.shares, &out, &args.residual],
        [rows.div_ceil(WORKGROUP) as u32, tokens as u32, 1],
    );
    out
}

pub(super) fn twin(args: Arguments<Flex>) -> FlexTensor {
    let Arguments {
        products,
        shares,
        residual,
    } = args;
    let [tokens, rows] = residual.shape().dims();
    let [_, used] = shares.shape().dims();
    let mut out = vec![0.0; tokens * rows];
    let of_tokens = products.storage::<f32>().chunks_exact(used * rows);
    let shares = shares.storage::<f32>().chunks_exact(used);
    let residuals = residual.storage::<f32>().chunks_exact(rows);
    let inputs = of_tokens.zip(shares).zip(residuals);
    for (out, ((products, shares), residual)) in out.chunks_exact_mut(rows).zip(inputs) {
        for (product, share) in products.chunks_exact(rows).zip(shares) {
            out.iter_mut()
                .zip(product)
                .for_each(|(o, p)| *o += share * p);
        }
        out.iter_mut().zip(residual).for_each(|(o, r)| *o += r);
    }
    twin_output(out, [tokens, rows])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::validation::assert_valid;

    #[test]
    fn kernels_are_valid_wgsl() {
        assert_valid([kernel(172, 8)]);
    }
}
