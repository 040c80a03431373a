//! A small mixture of experts for the validation: every op of its layer, by the kernels for a number
//! of tokens.

use burn::tensor::{Device, Tensor};

use super::inputs::{matrix, rows, wave};
use crate::{
    device::upload,
    ops::{
        Activation, Variant,
        expert_gated_product::{expert_gated_matmul, expert_gated_matvec},
        expert_matmul::expert_matmul,
        expert_matvec::expert_matvec,
        group_experts::group_experts,
        matvec::MAX_TOKENS,
        route_experts::{RouteShape, route_experts},
        sum_experts::sum_experts,
    },
    tensor_types::TensorType,
};

const SHAPE: RouteShape = RouteShape {
    experts: 4,
    used: 2,
    renormalize: true,
    is_sigmoid: false,
    scale: 1.0,
    groups: None,
};

const ACTIVATION: Activation = Activation::Silu;

/// `[tokens, dim]` after the layer.
pub(super) fn mixture(
    device: &Device,
    ty: TensorType,
    tokens: usize,
    variant: Variant,
) -> Tensor<2> {
    let dim = 160usize.next_multiple_of(ty.row_multiple());
    let ffn_dim = dim;
    let experts = |rows, cols| matrix(device, ty, SHAPE.experts * rows, cols);
    let (gate, up, down) = (
        experts(ffn_dim, dim),
        experts(ffn_dim, dim),
        experts(dim, ffn_dim),
    );
    // Small, because the output of the gates is multiplied twice more.
    let small = |n: usize, step| wave(n, step).into_iter().map(|v| 0.05 * v).collect();
    let x = upload(small(tokens * dim, 0.3), [tokens, dim], device);
    // No two scores are equal, because rounding would decide between them.
    let routes = route_experts(rows(tokens, SHAPE.experts, 0.9, device), None, None, SHAPE);
    if tokens <= MAX_TOKENS {
        let norm = Some((upload(small(dim, 0.7), [dim], device), 1e-5));
        let (chosen, few) = (routes.experts.clone(), x.clone());
        let hidden = expert_gated_matvec(
            few, norm, &gate, &up, ffn_dim, chosen, None, None, ACTIVATION, variant,
        );
        return expert_matvec(hidden, &down, None, routes, Some(x), dim, variant);
    }
    let groups = group_experts(routes.experts.clone(), SHAPE.experts);
    let (used, many) = (SHAPE.used, x.clone());
    let hidden = expert_gated_matmul(
        many,
        &gate,
        &up,
        ffn_dim,
        used,
        groups.clone(),
        None,
        None,
        ACTIVATION,
        variant,
    );
    let products = expert_matmul(hidden, &down, dim, groups, variant);
    sum_experts(products, routes, None, Some(x))
}
