//! The weighted sum of the outputs of each token's experts, for many tokens:
//! `out = residual + sum(share * (products + bias))`.

use super::{op::*, route_experts::Routes, store::Store};
use crate::kernel::{Kernel, wgsl};

/// The arguments of the op.
#[derive(ExtensionType)]
pub(super) struct Arguments<B: Backend> {
    pub(super) products: FloatTensor<B>,
    pub(super) experts: IntTensor<B>,
    pub(super) shares: FloatTensor<B>,
    #[extension_type]
    pub(super) biases: Maybe<B>,
    #[extension_type]
    pub(super) residual: Maybe<B>,
}

op! {
    fn sum_experts(Arguments) -> FloatTensor<Self>
}

const WORKGROUP: usize = 64;

/// `products` is `[tokens * used, rows]`, `biases` `[experts, rows]`, `residual` `[tokens, rows]`. Returns
/// `[tokens, rows]`.
pub fn sum_experts(
    products: Tensor<2>,
    routes: Routes,
    biases: Option<Tensor<2>>,
    residual: Option<Tensor<2>>,
) -> Tensor<2> {
    Tensor::from_dispatch(Dispatch::sum_experts(Arguments {
        products: products.into_dispatch(),
        experts: routes.experts.into_dispatch(),
        shares: routes.shares.into_dispatch(),
        biases: biases.into(),
        residual: residual.into(),
    }))
}

/// The composed kernel.
pub fn kernel(rows: usize, used: usize, has_biases: bool, residual: bool) -> Kernel {
    let kernel = Kernel::new("sum_experts")
        .binding("products")
        .binding("shares")
        .binding("out")
        .constant("ROWS", rows)
        .constant("USED", used)
        .constant("WORKGROUP", WORKGROUP);
    let store = Store {
        residual,
        ..Store::default()
    };
    let kernel = store.modules(kernel);
    // A binding that no code reads would not be in the layout.
    let kernel = match has_biases {
        true => kernel
            .binding("experts")
            .module(wgsl!("shared/expert_bias/chosen")),
        false => kernel,
    };
    biases(kernel, has_biases).module(wgsl!("sum_experts"))
}

/// Adds the module of the experts' biases, and their binding if there are some.
pub(super) fn biases(kernel: Kernel, has_biases: bool) -> Kernel {
    match has_biases {
        true => kernel
            .binding("biases")
            .module(wgsl!("shared/expert_bias/biases")),
        false => kernel.module(wgsl!("shared/expert_bias/none")),
    }
}

pub(super) fn launch(args: Arguments<Cube>) -> CubeTensor {
    let [_, rows] = args.products.shape().dims();
    let [tokens, used] = args.shares.shape().dims();
    let out = output(&args.products, [tokens, rows]);
    let (biases, residual) = (args.biases.as_ref(), args.residual.as_ref());
    let mut buffers = vec![&args.products, &args.shares, &out];
    buffers.extend(residual);
    if let Some(biases) = biases {
        buffers.extend([&args.experts, biases]);
    }
    let grid = [rows.div_ceil(WORKGROUP) as u32, tokens as u32, 1];
    kernel(rows, used, biases.is_some(), residual.is_some()).launch(&buffers, grid);
    out
}

pub(super) fn twin(args: Arguments<Flex>) -> FlexTensor {
    let Arguments {
        products,
        shares,
        residual,
        ..
    } = args;
    let [_, rows] = products.shape().dims();
    let [tokens, used] = shares.shape().dims();
    let mut out = vec![0.0; tokens * rows];
    let of_tokens = products.storage::<f32>().chunks_exact(used * rows);
    let of_shares = shares.storage::<f32>().chunks_exact(used);
    for (out, (products, shares)) in out.chunks_exact_mut(rows).zip(of_tokens.zip(of_shares)) {
        for (product, share) in products.chunks_exact(rows).zip(shares) {
            out.iter_mut()
                .zip(product)
                .for_each(|(o, p)| *o += share * p);
        }
    }
    if let Some(residual) = residual.as_ref() {
        let residual = residual.storage::<f32>();
        out.iter_mut().zip(residual).for_each(|(o, r)| *o += r);
    }
    if let Some(biases) = args.biases.as_ref() {
        let biases = biases.storage::<f32>();
        let pairs = args
            .experts
            .storage::<u32>()
            .iter()
            .zip(shares.storage::<f32>());
        for (pair, (expert, share)) in pairs.enumerate() {
            let out = &mut out[pair / used * rows..][..rows];
            let bias = &biases[*expert as usize * rows..];
            out.iter_mut().zip(bias).for_each(|(o, b)| *o += share * b);
        }
    }
    twin_output(out, [tokens, rows])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::validation::assert_valid;

    #[test]
    fn kernels_are_valid_wgsl() {
        assert_valid([false, true].map(|has_biases| kernel(172, 8, has_biases, !has_biases)));
    }
}
