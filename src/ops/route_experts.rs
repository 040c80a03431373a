//! Selects the experts of each token in a mixture (Shazeer et al. 2017,
//! <https://arxiv.org/abs/1701.06538>) and their shares. A token and one of its experts are a pair, with the
//! number `token * used + slot`.

use super::op::*;
use crate::kernel::{Kernel, wgsl};

/// The arguments of the op.
#[derive(ExtensionType)]
pub(super) struct Arguments<B: Backend> {
    pub(super) logits: FloatTensor<B>,
    #[extension_type]
    pub(super) bias: Maybe<B>,
    #[extension_type]
    pub(super) scales: Maybe<B>,
    pub(super) shape: RouteShape,
}

op! {
    fn route_experts(Arguments) -> (IntTensor<Self>, FloatTensor<Self>)
}

/// Maximum number of experts of a layer. A workgroup holds two words of each.
pub const MAX_EXPERTS: usize = 1024;
/// Maximum number of experts of a token.
pub const MAX_USED: usize = 16;

const WORKGROUP: usize = 64;

/// The selected experts of tokens.
#[derive(Debug, Clone)]
pub struct Routes {
    /// `[tokens, used]`, the largest logit first.
    pub experts: Tensor<2, Int>,
    /// The factor of each expert's output, `[tokens, used]`.
    pub shares: Tensor<2>,
}

/// Sizes and kind of a routing.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RouteShape {
    /// Experts to choose from, at most [`MAX_EXPERTS`].
    pub experts: usize,
    /// Experts of a token, at most [`MAX_USED`].
    pub used: usize,
    /// Whether the softmax is over the selected experts, so that shares sum to 1, instead of over all experts. Sigmoids are divided
    /// by their sum.
    pub renormalize: bool,
    /// Whether shares are sigmoids of logits instead of a softmax.
    pub is_sigmoid: bool,
    /// Factor of shares.
    pub scale: f32,
    /// Groups of experts, if experts are chosen from some of them.
    pub groups: Option<ExpertGroups>,
}

/// Groups of experts whose numbers follow each other, of which a token chooses some, and then its experts in these. A group
/// is as good as its best expert, or, where shares are sigmoids, as the sum of its two best
/// (DeepSeek-AI 2024, <https://arxiv.org/abs/2412.19437>).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExpertGroups {
    /// The number of groups, a divisor of the number of experts.
    pub count: usize,
    /// The number of groups that a token chooses. Together they have at least as many experts as a token uses.
    pub used: usize,
}

/// The number that is added to a sum of sigmoids, as in LFM2.
const SIGMOID_EPS: f32 = 1e-6;

/// Selects the experts with the largest of `logits` `[tokens, experts]`: the lower number on ties, NaN last.
/// NaN gives NaN shares, but always a valid expert. A `bias` `[experts]` is added to sigmoids, for the selection only.
/// `scales` `[experts]` are factors of the experts' shares.
pub fn route_experts(
    logits: Tensor<2>,
    bias: Option<Tensor<1>>,
    scales: Option<Tensor<1>>,
    shape: RouteShape,
) -> Routes {
    assert!(shape.experts <= MAX_EXPERTS, "too many experts");
    assert!(
        (1..=shape.experts.min(MAX_USED)).contains(&shape.used),
        "a wrong number of experts per token"
    );
    assert_eq!(logits.dims()[1], shape.experts, "logits of other experts");
    assert!(bias.is_none() || shape.is_sigmoid, "a bias of a softmax");
    let (experts, shares) = Dispatch::route_experts(Arguments {
        logits: logits.into_dispatch(),
        bias: bias.into(),
        scales: scales.into(),
        shape,
    });
    Routes {
        experts: Tensor::from_dispatch(experts),
        shares: Tensor::from_dispatch(shares),
    }
}

/// The composed kernel.
pub fn kernel(shape: RouteShape, has_bias: bool, has_scales: bool) -> Kernel {
    let kernel = Kernel::new("route_experts")
        .binding("logits")
        .binding("experts")
        .binding("shares");
    let kernel = match (shape.is_sigmoid, has_bias) {
        (false, _) => kernel.module(wgsl!("shared/routing/softmax")),
        (true, false) => kernel.module(wgsl!("shared/routing/sigmoid")),
        (true, true) => kernel
            .binding("bias")
            .module(wgsl!("shared/routing/biased_sigmoid")),
    };
    let kernel = match has_scales {
        true => kernel
            .binding("scales")
            .module(wgsl!("shared/expert_scale/scales")),
        false => kernel.module(wgsl!("shared/expert_scale/none")),
    };
    let kernel = match shape.groups {
        Some(groups) => kernel
            .constant("GROUPS", groups.count)
            .constant("GROUPS_USED", groups.used)
            .module(wgsl!("shared/expert_groups/best")),
        None => kernel.module(wgsl!("shared/expert_groups/none")),
    };
    kernel
        .constant("EXPERTS", shape.experts)
        .constant("USED", shape.used)
        .constant_bool("RENORMALIZE", shape.renormalize)
        .constant_f32("EPS", if shape.is_sigmoid { SIGMOID_EPS } else { 0.0 })
        .constant_bool("SIGMOID", shape.is_sigmoid)
        .constant_f32("SCALE", shape.scale)
        .constant("WORKGROUP", WORKGROUP)
        .module(wgsl!("route_experts"))
}

pub(super) fn launch(args: Arguments<Cube>) -> (CubeTensor, CubeTensor) {
    let [tokens, _] = args.logits.shape().dims();
    let experts = output_words(&args.logits, [tokens, args.shape.used]);
    let shares = output(&args.logits, [tokens, args.shape.used]);
    let (bias, scales) = (args.bias.as_ref(), args.scales.as_ref());
    let mut buffers = vec![&args.logits, &experts, &shares];
    buffers.extend(bias.into_iter().chain(scales));
    let kernel = kernel(args.shape, bias.is_some(), scales.is_some());
    kernel.launch(&buffers, [tokens as u32, 1, 1]);
    (experts, shares)
}

pub(super) fn twin(args: Arguments<Flex>) -> (FlexTensor, FlexTensor) {
    let Arguments { shape, bias, .. } = args;
    let [tokens, _] = args.logits.shape().dims();
    let (mut experts, mut shares) = (Vec::new(), Vec::new());
    let bias = bias.as_ref().map(|bias| bias.storage::<f32>());
    let scales = args.scales.as_ref().map(|scales| scales.storage::<f32>());
    let scale = |expert: usize| scales.map_or(1.0, |scales| scales[expert]);
    for row in args.logits.storage::<f32>().chunks_exact(shape.experts) {
        let sigmoid = |expert: usize| 1.0 / (1.0 + (-row[expert]).exp());
        let score = |expert: usize| match bias {
            Some(bias) => sigmoid(expert) + bias[expert],
            None => row[expert],
        };
        let scores: Vec<f32> = (0..row.len()).map(score).collect();
        let best = best_first(&scores);
        let largest = row[best[0]];
        let weight = |expert: usize| match shape.is_sigmoid {
            true => sigmoid(expert),
            false => (row[expert] - largest).exp(),
        };
        let order = match shape.groups {
            Some(groups) => {
                let as_sums = |expert: usize| match bias {
                    Some(_) => scores[expert],
                    None => sigmoid(expert),
                };
                best_first(&without_groups(&scores, groups, shape.is_sigmoid, as_sums))
            }
            None => best,
        };
        let chosen = &order[..shape.used];
        let sum: f32 = match (shape.renormalize, shape.is_sigmoid) {
            (true, true) => chosen.iter().map(|it| weight(*it)).sum::<f32>() + SIGMOID_EPS,
            (true, false) => chosen.iter().map(|it| weight(*it)).sum(),
            (false, true) => 1.0,
            (false, false) => (0..shape.experts).map(weight).sum(),
        };
        experts.extend(chosen.iter().map(|&expert| expert as u32));
        let share = |it: &usize| weight(*it) / sum * shape.scale * scale(*it);
        shares.extend(chosen.iter().map(share));
    }
    (
        twin_output_words(experts, [tokens, args.shape.used]),
        twin_output(shares, [tokens, args.shape.used]),
    )
}

/// The numbers of `scores`, the largest one first: the lower number on ties, NaN last.
fn best_first(scores: &[f32]) -> Vec<usize> {
    let place = |i: usize| (!scores[i].is_nan(), scores[i]);
    let mut order: Vec<usize> = (0..scores.len()).collect();
    order.sort_by(|&a, &b| {
        let by_score = place(b).partial_cmp(&place(a));
        by_score.unwrap_or(std::cmp::Ordering::Equal)
    });
    order
}

/// The scores of experts in the best groups; those of all others are NaN. `as_sums` are the scores that are added up.
fn without_groups(
    scores: &[f32],
    groups: ExpertGroups,
    are_sums: bool,
    as_sums: impl Fn(usize) -> f32,
) -> Vec<f32> {
    let len = scores.len() / groups.count;
    let of_groups = scores.chunks_exact(len).enumerate().map(|(group, scores)| {
        let best = best_first(scores);
        match are_sums {
            true => best[..2].iter().map(|it| as_sums(group * len + it)).sum(),
            false => scores[best[0]],
        }
    });
    let chosen = best_first(&of_groups.collect::<Vec<f32>>());
    let chosen = &chosen[..groups.used];
    let experts = scores.iter().enumerate();
    let kept = experts.map(|(expert, score)| match chosen.contains(&(expert / len)) {
        true => *score,
        false => f32::NAN,
    });
    kept.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::validation::assert_valid;

    #[test]
    fn kernels_are_valid_wgsl() {
        for (is_sigmoid, has_bias) in [(false, false), (true, false), (true, true)] {
            assert_valid([false, true].map(|renormalize| {
                let shape = RouteShape {
                    experts: MAX_EXPERTS,
                    used: MAX_USED,
                    renormalize,
                    is_sigmoid,
                    scale: 1.0,
                    groups: renormalize.then_some(ExpertGroups { count: 8, used: 4 }),
                };
                kernel(shape, has_bias, renormalize)
            }));
        }
    }
}
