//! The other half of a mixture of experts for a few tokens: the products of each token's experts,
//! summed by their shares, in one pass: `out = residual + sum(share * (weights * x))`.

use burn::backend::flex::FlexTensor;
use burn::{
    backend::{Cube, Dispatch, Flex, TensorMetadata},
    tensor::Tensor,
};
use burn_wgpu::CubeTensor;

use super::{
    Arithmetic, Variant,
    backend::{MatrixTensors, Ops, output, twin_output},
    expert_matmul,
    kernel::Kernel,
    matrix::{Matrix, MatrixShape},
    matvec,
    route_experts::Routes,
    shader,
    store::Store,
    sum_experts,
};

/// `x` is `[tokens * used, cols]` with at most [`matvec::MAX_TOKENS`], `residual` `[tokens, rows]`;
/// `weights` has `rows` for each expert. Gives `[tokens, rows]`.
pub fn expert_matvec(
    x: Tensor<2>,
    weights: &Matrix,
    routes: Routes,
    residual: Tensor<2>,
    variant: Variant,
) -> Tensor<2> {
    assert!(
        residual.dims()[0] <= matvec::MAX_TOKENS,
        "a matvec of too many tokens"
    );
    Tensor::from_dispatch(Dispatch::expert_matvec(
        x.into_dispatch(),
        weights.to_dispatch(),
        routes.experts.into_dispatch(),
        routes.shares.into_dispatch(),
        residual.into_dispatch(),
        variant,
    ))
}

/// The composed kernel, one for all numbers of tokens; `weights` are an expert's.
pub fn kernel(weights: MatrixShape, used: usize, variant: Variant) -> Kernel {
    let mut kernel = Kernel::new(format!("expert_matvec_{}", weights.ty.lowercase_name()))
        .variant(variant)
        .binding("x")
        .binding("experts")
        .binding("shares")
        .binding("out")
        .binding("weights_quants")
        .constant("USED", used);
    if weights.ty.has_scales() {
        kernel = kernel.binding("weights_scales");
    }
    let kernel = matvec::lanes(kernel, weights, 1, Arithmetic::F32, variant, 1)
        .module(weights.ty.wgsl())
        .module(shader::matvec_input::PLAIN);
    let store = Store {
        residual: true,
        ..Store::default()
    };
    store.modules(kernel).module(shader::kernel::EXPERT_MATVEC)
}

/// Workgroups of a matvec over `rows` rows of an expert, for each of `count` pairs or tokens.
pub(super) fn workgroups(rows: usize, count: usize, variant: Variant) -> [u32; 3] {
    let [x, y, _] = matvec::workgroups(rows, variant);
    assert_eq!(y, 1, "an expert of too many rows");
    [x, count as u32, 1]
}

pub(super) fn launch(
    x: CubeTensor,
    weights: MatrixTensors<Cube>,
    experts: CubeTensor,
    shares: CubeTensor,
    residual: CubeTensor,
    variant: Variant,
) -> CubeTensor {
    let [tokens, rows] = residual.shape().dims();
    let [_, used] = experts.shape().dims();
    let shape = MatrixShape {
        rows,
        ..weights.shape
    };
    let out = output(&x, [tokens, rows]);
    let mut buffers = vec![&x, &experts, &shares, &out, &weights.quants];
    if shape.ty.has_scales() {
        buffers.push(&weights.scales);
    }
    buffers.push(&residual);
    kernel(shape, used, variant).launch(&buffers, workgroups(rows, tokens, variant));
    out
}

pub(super) fn twin(
    x: FlexTensor,
    weights: MatrixTensors<Flex>,
    experts: FlexTensor,
    shares: FlexTensor,
    residual: FlexTensor,
    _variant: Variant,
) -> FlexTensor {
    let [_, rows] = residual.shape().dims();
    let [pairs, _] = x.shape().dims();
    let tiles = parse(experts.storage());
    let products = expert_matmul::products(x.storage(), 1, &weights, rows, &tiles);
    sum_experts::twin(twin_output(products, [pairs, rows]), shares, residual)
}

/// Each pair as a tile of its own, for the twins that tiles have.
pub(super) fn parse(experts: &[u32]) -> Vec<(usize, Vec<usize>)> {
    let pairs = experts.iter().enumerate();
    pairs
        .map(|(pair, &expert)| (expert as usize, vec![pair]))
        .collect()
}
