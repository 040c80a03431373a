//! Builds the feed-forward of a layer, which may be a mixture of experts, from its tensors.

use burn::tensor::Tensor;

use super::{
    modules::{Loader, name},
    tensors::scale_name,
};
use crate::{
    Result,
    device::upload_words,
    model::{
        config::{Experts, FeedForwardKind},
        layers::{
            experts::ExpertFeedForward,
            feed_forward::{
                FeedForward, GateLimits, GatedFeedForward, MixedFeedForward, PlainFeedForward,
                SharedExperts,
            },
            linear::Join,
        },
    },
    ops::{Activation, Variant, reshape::reshape},
    weights::ByteSource,
};

impl<S: ByteSource> Loader<'_, S> {
    pub(super) async fn feed_forward(&mut self, layer: usize) -> Result<FeedForward> {
        Ok(match self.config.feed_forward_of(layer).0 {
            FeedForwardKind::Gated(activation) => {
                FeedForward::Gated(Box::new(Box::pin(self.gated(layer, activation)).await?))
            }
            FeedForwardKind::Plain(activation) => FeedForward::Plain(Box::new(PlainFeedForward {
                ffn_norm: self.norm_before(&name(layer, self.config.ffn_norm)).await?,
                ffn_up: self.linear(&name(layer, "ffn_up")).await?,
                ffn_down: self.linear(&name(layer, "ffn_down")).await?,
                join: self
                    .join(layer, "post_ffw_norm", "layer_output_norm")
                    .await?,
                activation,
            })),
            FeedForwardKind::Experts(experts) => {
                let routed = Box::pin(self.experts(layer, experts)).await?;
                match experts.shared {
                    None => FeedForward::Experts(Box::new(routed)),
                    Some(_) => {
                        let shared = Box::pin(self.shared(layer, experts, routed));
                        FeedForward::Shared(Box::new(shared.await?))
                    }
                }
            }
            FeedForwardKind::Mixed(experts, width) => {
                FeedForward::Mixed(Box::new(MixedFeedForward {
                    dense: self.gated(layer, experts.activation).await?,
                    dense_norm: self.norm(&name(layer, "post_ffw_norm_1")).await?,
                    experts: Box::pin(self.experts_beside(layer, experts, width)).await?,
                    experts_norm: self.norm(&name(layer, "post_ffw_norm_2")).await?,
                }))
            }
        })
    }

    pub(super) async fn gated(
        &mut self,
        layer: usize,
        activation: Activation,
    ) -> Result<GatedFeedForward> {
        let ffn_norm = self.norm_before(&name(layer, self.config.ffn_norm)).await?;
        let [gate, up] = ["ffn_gate", "ffn_up"].map(|part| name(layer, part));
        let ffn = self.config.sizes(layer).ffn_dim;
        let biases = match self.config.has_gate_biases {
            true => self.biases(&[&gate, &up], &[ffn; 2]).await?,
            false => None,
        };
        let (ffn_gate, ffn_up) = if self.tensors.find(&format!("{gate}.weight")).is_some() {
            (self.matrix(&gate).await?, self.matrix(&up).await?)
        } else {
            // One tensor holds the rows of the gate, then those of the other half.
            let both = self.tensors.tensor(&format!("{up}.weight"))?;
            let gate = self.tensors.rows(&[(both, 0..ffn)]).await?;
            (gate, self.tensors.rows(&[(both, ffn..2 * ffn)]).await?)
        };
        Ok(GatedFeedForward {
            ffn_norm,
            ffn_gate,
            ffn_up,
            biases: biases.map(|it| reshape(it, [1, 2 * ffn])),
            low_rank: None,
            limits: match (self.limits(&gate).await?, self.limits(&up).await?) {
                (Some(gate), Some(up)) => Some(Box::new(GateLimits {
                    gate,
                    up,
                    first_column: upload_words(vec![0], [1], self.tensors.device()),
                })),
                _ => None,
            },
            sub_norm: self.sub_norm(&name(layer, "ffn_sub_norm")).await?,
            ffn_down: self.linear(&name(layer, "ffn_down")).await?,
            join: Join {
                out_scale: match self.config.layer_input_dim {
                    0 => self.layer_scale(layer).await?,
                    // The layer's input is added after it.
                    _ => None,
                },
                ..self
                    .join(layer, "post_ffw_norm", "layer_output_norm")
                    .await?
            },
            activation,
            variant: Variant::PORTABLE,
        })
    }

    pub(super) async fn experts(
        &mut self,
        layer: usize,
        experts: Experts,
    ) -> Result<ExpertFeedForward> {
        let count = experts.count;
        let router = name(layer, "ffn_gate_inp");
        let router_bias = self.biases(&[&router], &[count]).await?;
        let [gate, up, down] = ["ffn_gate_exps", "ffn_up_exps", "ffn_down_exps"];
        let gate_biases = self.expert_biases(layer, &[gate, up], count).await?;
        let down_biases = self.expert_biases(layer, &[down], count).await?;
        Ok(ExpertFeedForward {
            ffn_norm: self.norm(&name(layer, self.config.ffn_norm)).await?,
            ffn_gate_inp: self.matrix(&router).await?,
            router_norm: None,
            shares_scale: None,
            ffn_gate_inp_bias: router_bias,
            gate_biases,
            down_biases,
            bias: match self.bias(&name(layer, "exp_probs_b")).await? {
                Some(bias) if experts.is_sigmoid => Some(self.tensors.vector(bias)),
                _ => None,
            },
            is_sigmoid: experts.is_sigmoid,
            scales_inputs: experts.scales_inputs,
            scale: self.config.residual_scale * self.config.experts_scale,
            groups: experts.groups,
            ffn_gate_exps: self.matrix(&name(layer, "ffn_gate_exps")).await?,
            ffn_up_exps: self.matrix(&name(layer, "ffn_up_exps")).await?,
            ffn_down_exps: self.matrix(&name(layer, "ffn_down_exps")).await?,
            used: experts.used,
            activation: experts.activation,
            renormalize: experts.normalized,
            variant: Variant::PORTABLE,
        })
    }

    /// Experts beside a dense feed-forward: the rows of an expert's gate are followed by the others, its router has a norm of
    /// its own, and its shares have factors.
    pub(super) async fn experts_beside(
        &mut self,
        layer: usize,
        experts: Experts,
        width: usize,
    ) -> Result<ExpertFeedForward> {
        let both = self
            .tensors
            .tensor(&name(layer, "ffn_gate_up_exps.weight"))?;
        let halves = |half: usize| {
            let firsts = (0..experts.count).map(move |expert| (2 * expert + half) * width);
            firsts
                .map(|first| (both, first..first + width))
                .collect::<Vec<_>>()
        };
        let (gate, up) = (halves(0), halves(1));
        let mut router_norm = self.norm(&name(layer, "pre_ffw_norm_2")).await?;
        let scale = self.floats(&name(layer, "ffn_gate_inp.scale")).await?;
        let by_width = (self.config.dim as f32).sqrt().recip();
        let scale = scale.iter().map(|scale| scale * by_width);
        router_norm.weight = self.tensors.vector(scale.collect());
        let down = name(layer, "ffn_down_exps");
        // A matrix with factors has them in its rows already.
        let has_factors = self
            .tensors
            .tensor(&format!("{down}.weight"))?
            .ty
            .has_row_factors();
        let shares_scale = match has_factors {
            true => None,
            false => Some(self.floats(&scale_name(&down)).await?),
        };
        Ok(ExpertFeedForward {
            ffn_norm: self.norm(&name(layer, "pre_ffw_norm_2")).await?,
            router_norm: Some(router_norm),
            ffn_gate_inp: self.matrix(&name(layer, "ffn_gate_inp")).await?,
            ffn_gate_inp_bias: None,
            ffn_gate_exps: self.tensors.rows(&gate).await?,
            ffn_up_exps: self.tensors.rows(&up).await?,
            ffn_down_exps: self.matrix(&down).await?,
            gate_biases: None,
            down_biases: None,
            bias: None,
            is_sigmoid: false,
            scales_inputs: false,
            scale: 1.0,
            groups: None,
            shares_scale: shares_scale.map(|it| self.tensors.vector(it)),
            used: experts.used,
            activation: experts.activation,
            renormalize: experts.normalized,
            variant: Variant::PORTABLE,
        })
    }

    /// The biases of the experts' matrices, `[experts, rows of the parts]`; `None` if none has one.
    pub(super) async fn expert_biases(
        &mut self,
        layer: usize,
        parts: &[&str],
        count: usize,
    ) -> Result<Option<Tensor<2>>> {
        let mut of_parts = Vec::new();
        for part in parts {
            of_parts.extend(self.bias(&name(layer, part)).await?);
        }
        if of_parts.len() < parts.len() {
            return Ok(None);
        }
        let rows: usize = of_parts.iter().map(|part| part.len() / count).sum();
        let of_expert = |expert: usize| {
            let parts = of_parts.iter();
            parts.flat_map(move |part| {
                let rows = part.len() / count;
                part[expert * rows..][..rows].iter().copied()
            })
        };
        let biases: Vec<f32> = (0..count).flat_map(of_expert).collect();
        Ok(Some(reshape(self.tensors.vector(biases), [count, rows])))
    }

    /// Experts with the feed-forward beside them.
    pub(super) async fn shared(
        &mut self,
        layer: usize,
        experts: Experts,
        routed: ExpertFeedForward,
    ) -> Result<SharedExperts> {
        let is_gated = experts.shared.is_some_and(|shared| shared.is_gated);
        let gate = match is_gated {
            true => Some(self.linear(&name(layer, "ffn_gate_inp_shexp")).await?),
            false => None,
        };
        Ok(SharedExperts {
            shared: GatedFeedForward {
                ffn_norm: Some(routed.ffn_norm.clone()),
                ffn_gate: self.matrix(&name(layer, "ffn_gate_shexp")).await?,
                ffn_up: self.matrix(&name(layer, "ffn_up_shexp")).await?,
                biases: None,
                low_rank: None,
                limits: None,
                sub_norm: None,
                ffn_down: self.linear(&name(layer, "ffn_down_shexp")).await?,
                join: Join {
                    norm: None,
                    sum_norm: None,
                    scale: self.config.residual_scale,
                    out_scale: None,
                },
                activation: experts.activation,
                variant: Variant::PORTABLE,
            },
            routed,
            gate,
        })
    }
}
