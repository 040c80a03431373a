//! The weighted sum of the outputs of each token's experts, for many tokens:
//! `out = residual + sum(share * products)`.

use burn::backend::flex::FlexTensor;
use burn::{
    backend::{Dispatch, TensorMetadata, tensor::FloatTensor},
    tensor::Tensor,
};
use burn_wgpu::CubeTensor;

use super::{
    op::{op, output, twin_output},
    store::Store,
};
use crate::kernel::{Kernel, wgsl};

op! {
    fn sum_experts(
        products: FloatTensor<Self>,
        shares: FloatTensor<Self>,
        residual: FloatTensor<Self>,
    ) -> FloatTensor<Self>
}

const WORKGROUP: usize = 64;

/// `products` is `[tokens * used, rows]`, `shares` `[tokens, used]`, `residual` `[tokens, rows]`. Returns
/// `[tokens, rows]`.
pub fn sum_experts(products: Tensor<2>, shares: Tensor<2>, residual: Tensor<2>) -> Tensor<2> {
    Tensor::from_dispatch(Dispatch::sum_experts(
        products.into_dispatch(),
        shares.into_dispatch(),
        residual.into_dispatch(),
    ))
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

pub(super) fn launch(products: CubeTensor, shares: CubeTensor, residual: CubeTensor) -> CubeTensor {
    let [tokens, rows] = residual.shape().dims();
    let [_, used] = shares.shape().dims();
    let out = output(&products, [tokens, rows]);
    kernel(rows, used).launch(
        &[&products, &shares, &out, &residual],
        [rows.div_ceil(WORKGROUP) as u32, tokens as u32, 1],
    );
    out
}

pub(super) fn twin(products: FlexTensor, shares: FlexTensor, residual: FlexTensor) -> FlexTensor {
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
