//! Builds the modules of a decoder from the tensors of a file, according to the configuration. `tensors`
//! has checked that they are present and have the right shapes.

use std::{f32::consts::FRAC_1_SQRT_2, sync::Arc};

use burn::tensor::{Int, Tensor};

use super::{
    Plan,
    reader::TensorReader,
    tensors::{LAYER_TOKENS, can_join_qkv},
};
use crate::{
    Result,
    device::{ComputeDevice, reserve_words, upload_words},
    model::{
        config::{
            Experts, FeedForwardKind, LayerConfig, LayerRope, ModelConfig, NormKind, QkNorm,
            RopePairs, Scaling, embedding::DENSE,
        },
        layers::{
            attention::{Attention, Qkv},
            decoder::{Block, Decoder},
            experts::ExpertFeedForward,
            feed_forward::{
                FeedForward, GatedFeedForward, MixedFeedForward, PlainFeedForward, SharedExperts,
            },
            layer_input::{LayerInput, LayerInputs, MAX_ROWS},
            linear::{Join, Linear, Norm},
            mixer::Mixer,
        },
    },
    ops::{
        Activation, Finish, InPlace, Variant,
        attention::AttentionShape,
        matrix::Matrix,
        reshape::reshape,
        rope_kv::{RopeShape, turns, turns_by_parts},
    },
    weights::{ByteSource, Gguf},
};

/// Builds a decoder.
pub(super) struct Loader<'a, S> {
    pub(super) tensors: TensorReader<'a, S>,
    pub(super) config: &'a ModelConfig,
    /// Longest sequence, in tokens.
    context_tokens: usize,
    /// Largest buffer that a kernel can bind.
    pub(super) max_binding_bytes: u64,
}

/// Rotary frequencies of the layers with the model's base and of those with a base of their own.
struct RopeTables {
    global: Tensor<1, Int>,
    local: Tensor<1, Int>,
    /// Factor of the elements that global layers rotate.
    magnitude: f32,
}

/// The GGUF name of a part of a layer.
pub(super) fn name(layer: usize, part: &str) -> String {
    format!("blk.{layer}.{part}")
}

impl<'a, S: ByteSource> Loader<'a, S> {
    /// Reads from `source`; without one, the decoder is an outline. `progress` is told the number of
    /// tensor bytes read so far.
    pub(super) fn new(
        gguf: &'a Gguf,
        source: Option<&'a S>,
        device: &'a ComputeDevice,
        plan: &'a Plan,
        progress: &'a mut dyn FnMut(u64),
    ) -> Self {
        Self {
            tensors: TensorReader::new(gguf, source, device, progress),
            config: &plan.config,
            context_tokens: plan.reservation.context_tokens,
            max_binding_bytes: plan.max_binding_bytes,
        }
    }

    /// The whole decoder.
    pub(super) async fn decoder(&mut self) -> Result<Decoder> {
        let config = self.config;
        let token_embd = self.matrix("token_embd").await?;
        let mut output = match self.tensors.find("output.weight") {
            Some(_) => self.matrix("output").await?,
            None => token_embd.clone(),
        };
        // Rows beyond the tokenizer's ids are padding and get no logits.
        output.shape.rows = config.token_ids;
        let position_embd = match config.rope() {
            Some(_) => None,
            None => Some(self.matrix("position_embd").await?),
        };
        let blocks = self.blocks().await?;
        let output_norm = config.has_output_norm.then_some(config.output_norm_name);
        let output_norm = self.norm_named(output_norm).await?;
        let embedding_norm = config.has_embedding_norm.then_some("token_embd_norm");
        let embedding_norm = self.norm_named(embedding_norm).await?;
        let mut dense = Vec::new();
        let sizes = config.embedding.iter().flat_map(|it| &it.dense);
        for (name, _) in DENSE.iter().zip(sizes) {
            dense.push(self.linear(name).await?);
        }
        Ok(Decoder {
            token_embd,
            embedding_scale: config.embedding_scale,
            position_embd,
            layer_inputs: self.layer_inputs().await?,
            token_type: self.token_type().await?,
            embedding_norm,
            blocks,
            output_norm,
            output: linear_of(output, None),
            dense,
            is_whole: !config.is_causal,
            deepstack_layers: config.deepstack_layers,
            logits: match (config.logit_scale, config.logit_soft_cap) {
                (scale, Some(cap)) => Finish::SoftCap { scale, cap },
                (1.0, None) => Finish::Plain,
                (scale, None) => Finish::Scale(scale),
            },
        })
    }

    /// The layers.
    pub(super) async fn blocks(&mut self) -> Result<Vec<Block>> {
        let tables = self.rope_tables().await?;
        let mut memory_indices = Vec::new();
        let mut blocks = Vec::with_capacity(self.config.layers.len());
        for layer in 0..self.config.layers.len() {
            let memory_index = match self.config.layers[layer].kv_layer {
                Some(earlier) => memory_indices[earlier],
                None => self.config.kv_layers().take_while(|it| *it < layer).count(),
            };
            memory_indices.push(memory_index);
            blocks.push(Block {
                memory_index,
                ..self.block(layer, &tables).await?
            });
        }
        Ok(blocks)
    }

    /// All elements of a tensor, on the host.
    pub(super) async fn floats(&mut self, name: &str) -> Result<Vec<f32>> {
        let tensor = self.tensors.tensor(name)?;
        self.tensors.floats(tensor).await
    }

    async fn block(&mut self, layer: usize, tables: &RopeTables) -> Result<Block> {
        Ok(Block {
            mixer: match self.config.layers[layer].is_recurrent {
                // Boxed, so that the future of all other layers stays small.
                true => Mixer::Recurrent(Box::pin(self.recurrent(layer)).await?),
                false => Mixer::Attention(self.attention(layer, tables).await?),
            },
            feed_forward: self.feed_forward(layer).await?,
            input: self.layer_input(layer).await?,
            memory_index: layer,
        })
    }

    /// The embedding of the first token type, if tokens have types.
    async fn token_type(&mut self) -> Result<Option<Tensor<1>>> {
        match self.tensors.find("token_types.weight") {
            Some(types) if !self.config.is_causal => {
                let mut values = self.tensors.floats(types).await?;
                values.truncate(self.config.dim);
                Ok(Some(self.tensors.vector(values)))
            }
            _ => Ok(None),
        }
    }

    async fn norm_named(&mut self, name: Option<&str>) -> Result<Option<Norm>> {
        match name {
            Some(name) => Ok(Some(self.norm(name).await?)),
            None => Ok(None),
        }
    }

    async fn rope_tables(&mut self) -> Result<RopeTables> {
        let device = self.tensors.device();
        let Some(rope) = self.config.rope() else {
            let unused = turns(&[0.0], device);
            return Ok(RopeTables {
                global: unused.clone(),
                local: unused,
                magnitude: 1.0,
            });
        };
        let factors = match rope.scaling {
            Scaling::Long {
                original_tokens, ..
            } if self.context_tokens > original_tokens => "rope_factors_long.weight",
            Scaling::Long { .. } => "rope_factors_short.weight",
            _ => "rope_freqs.weight",
        };
        let factors = match self.tensors.find(factors) {
            Some(tensor) => Some(self.tensors.floats(tensor).await?),
            None => None,
        };
        let global = rope.frequencies(factors.as_deref());
        let local = rope.local_base.map(|base| rope.local_frequencies(base));
        let local = local.unwrap_or_else(|| global.clone());
        let in_turns = |radians: &[f64]| match rope.parts {
            Some(parts) => turns_by_parts(radians, &parts.of_pairs(radians.len()), device),
            None => turns(radians, device),
        };
        Ok(RopeTables {
            global: in_turns(&global.radians),
            local: in_turns(&local.radians),
            magnitude: global.magnitude,
        })
    }

    async fn attention(&mut self, layer: usize, tables: &RopeTables) -> Result<Attention> {
        let config = self.config;
        let LayerConfig { window, rope, .. } = config.layers[layer];
        let sizes = config.sizes(layer);
        let shares_kv = config.layers[layer].kv_layer.is_some();
        let (head_norm, row_norms) = self.qk_norms(layer).await?;
        let (rope_turns, magnitude) = match rope {
            LayerRope::Local => (tables.local.clone(), 1.0),
            LayerRope::Global | LayerRope::None => (tables.global.clone(), tables.magnitude),
        };
        let is_local = rope == LayerRope::Local;
        let rope = config.rope().filter(|_| rope != LayerRope::None);
        let attn_qkv = self.qkv(layer).await?;
        let gate = match config.has_output_gate {
            true => Some(self.query_rows(layer, true).await?),
            false => None,
        };
        let (at, stride) = attn_qkv.columns(config.q_dim(layer), config.kv_dim(layer));
        let usual_scale = (sizes.head_dim as f32).sqrt().recip();
        Ok(Attention {
            attn_norm: self.norm_before(&name(layer, "attn_norm")).await?,
            attn_qkv,
            gate,
            attn_output: self.linear(&name(layer, "attn_output")).await?,
            join: self
                .join(layer, "post_attention_norm", "attn_output_norm")
                .await?,
            is_whole: !config.is_causal,
            head_norm,
            row_norms,
            sinks: match config.has_sinks {
                true => {
                    let sinks = self.floats(&name(layer, "attn_sinks.weight")).await?;
                    Some(self.tensors.vector(sinks))
                }
                false => None,
            },
            rope_turns,
            shape: AttentionShape {
                heads: config.heads,
                kv_heads: sizes.kv_heads,
                head_dim: sizes.head_dim,
                // A window that no sequence exceeds needs no kernel of its own.
                window: window.filter(|tokens| *tokens < self.context_tokens),
                soft_cap: config.attention_soft_cap,
            },
            rope: RopeShape {
                heads: config.heads,
                kv_heads: sizes.kv_heads,
                head_dim: sizes.head_dim,
                neox: rope.is_some_and(|rope| rope.pairs == RopePairs::Halves),
                by_parts: rope.is_some_and(|rope| rope.parts.is_some()),
                rope_dims: rope
                    .map_or(0, |rope| if is_local { rope.local_dims } else { rope.dims }),
                norms_values: config.has_value_norm,
                only_queries: shares_kv,
                norm_last: config.qk_norm == QkNorm::RotatedHeads,
                magnitude,
                q_scale: config.attention_scale.unwrap_or(usual_scale),
                at,
                stride,
            },
        })
    }

    /// The norm of each head, and the norms over all heads.
    async fn qk_norms(&mut self, layer: usize) -> Result<(Option<Norm>, Option<[Norm; 2]>)> {
        if self.config.qk_norm == QkNorm::None {
            return Ok((None, None));
        }
        let weight = |part: &str| name(layer, &format!("{part}.weight"));
        let q = self.tensors.tensor(&weight("attn_q_norm"))?;
        let q = self.tensors.floats(q).await?;
        let k = match self.config.layers[layer].kv_layer {
            // There are no keys to normalize.
            Some(_) => vec![0.0; q.len()],
            None => {
                let k = self.tensors.tensor(&weight("attn_k_norm"))?;
                self.tensors.floats(k).await?
            }
        };
        let norm = |weight| Norm {
            weight: self.tensors.vector(weight),
            bias: None,
            kind: NormKind::Rms,
            eps: self.config.norm_eps,
            variant: Variant::PORTABLE,
        };
        Ok(match self.config.qk_norm {
            QkNorm::Heads | QkNorm::RotatedHeads => (Some(norm([q, k].concat())), None),
            _ => (None, Some([q, k].map(norm))),
        })
    }

    async fn qkv(&mut self, layer: usize) -> Result<Qkv> {
        let fused = name(layer, "attn_qkv");
        if self.tensors.find(&format!("{fused}.weight")).is_some() {
            return Ok(Qkv::Fused(self.linear(&fused).await?));
        }
        let parts = ["attn_q", "attn_k", "attn_v"];
        let has_values = self.tensors.find(&name(layer, "attn_v.weight")).is_some();
        let count = match self.config.layers[layer].kv_layer {
            Some(_) => 1,
            None => 2 + usize::from(has_values),
        };
        let names: Vec<String> = parts[..count].iter().map(|it| name(layer, it)).collect();
        let weights: Vec<String> = names.iter().map(|name| format!("{name}.weight")).collect();
        let tensors: Result<Vec<_>> = weights.iter().map(|it| self.tensors.tensor(it)).collect();
        if !can_join_qkv(&tensors?, self.config, self.max_binding_bytes) {
            let mut linears = Vec::new();
            for (i, name) in names.iter().enumerate() {
                linears.push(match i == 0 && self.config.has_output_gate {
                    true => self.query_rows(layer, false).await?,
                    false => self.linear(name).await?,
                });
            }
            return Ok(Qkv::Split(linears));
        }
        let weights: Vec<&str> = weights.iter().map(String::as_str).collect();
        let weight = self.tensors.matrix(&weights).await?;
        let (q, kv) = (self.config.q_dim(layer), self.config.kv_dim(layer));
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let bias = self.biases(&names, &[q, kv, kv]).await?;
        Ok(Qkv::Fused(linear_of(weight, bias)))
    }

    /// The rows of the query heads, or those of the gates that follow each of them.
    async fn query_rows(&mut self, layer: usize, gates: bool) -> Result<Linear> {
        let tensor = self.tensors.tensor(&name(layer, "attn_q.weight"))?;
        let len = self.config.head_dim;
        let first = if gates { len } else { 0 };
        let heads = (0..self.config.heads).map(|head| {
            let at = 2 * head * len + first;
            (tensor, at..at + len)
        });
        let heads: Vec<_> = heads.collect();
        let weight = self.tensors.rows(&heads).await?;
        let bias = self.bias(&name(layer, "attn_q")).await?.map(|bias| {
            let rows = heads.iter().flat_map(|(_, rows)| &bias[rows.clone()]);
            self.tensors.vector(rows.copied().collect())
        });
        Ok(linear_of(weight, bias))
    }

    async fn feed_forward(&mut self, layer: usize) -> Result<FeedForward> {
        Ok(match self.config.feed_forward_of(layer).0 {
            FeedForwardKind::Gated(activation) => {
                FeedForward::Gated(self.gated(layer, activation).await?)
            }
            FeedForwardKind::Plain(activation) => FeedForward::Plain(PlainFeedForward {
                ffn_norm: self.norm_before(&name(layer, self.config.ffn_norm)).await?,
                ffn_up: self.linear(&name(layer, "ffn_up")).await?,
                ffn_down: self.linear(&name(layer, "ffn_down")).await?,
                join: self
                    .join(layer, "post_ffw_norm", "layer_output_norm")
                    .await?,
                activation,
            }),
            FeedForwardKind::Experts(experts) => {
                let routed = self.experts(layer, experts).await?;
                match experts.shared {
                    None => FeedForward::Experts(routed),
                    Some(_) => {
                        let shared = Box::pin(self.shared(layer, experts, routed));
                        FeedForward::Shared(shared.await?)
                    }
                }
            }
            FeedForwardKind::Mixed(experts, width) => FeedForward::Mixed(MixedFeedForward {
                dense: self.gated(layer, experts.activation).await?,
                dense_norm: self.norm(&name(layer, "post_ffw_norm_1")).await?,
                experts: self.experts_beside(layer, experts, width).await?,
                experts_norm: self.norm(&name(layer, "post_ffw_norm_2")).await?,
            }),
        })
    }

    async fn gated(&mut self, layer: usize, activation: Activation) -> Result<GatedFeedForward> {
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

    async fn experts(&mut self, layer: usize, experts: Experts) -> Result<ExpertFeedForward> {
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
            scale: self.config.residual_scale,
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
    async fn experts_beside(
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
        let shares_scale = self.floats(&name(layer, "ffn_down_exps.scale")).await?;
        Ok(ExpertFeedForward {
            ffn_norm: self.norm(&name(layer, "pre_ffw_norm_2")).await?,
            router_norm: Some(router_norm),
            ffn_gate_inp: self.matrix(&name(layer, "ffn_gate_inp")).await?,
            ffn_gate_inp_bias: None,
            ffn_gate_exps: self.tensors.rows(&gate).await?,
            ffn_up_exps: self.tensors.rows(&up).await?,
            ffn_down_exps: self.matrix(&name(layer, "ffn_down_exps")).await?,
            gate_biases: None,
            down_biases: None,
            bias: None,
            is_sigmoid: false,
            scale: 1.0,
            shares_scale: Some(self.tensors.vector(shares_scale)),
            used: experts.used,
            activation: experts.activation,
            renormalize: experts.normalized,
            variant: Variant::PORTABLE,
        })
    }

    /// `layer_output_scale`
    async fn layer_scale(&mut self, layer: usize) -> Result<Option<Tensor<1>>> {
        if !self.config.has_layer_scale {
            return Ok(None);
        }
        let scale = self
            .floats(&name(layer, "layer_output_scale.weight"))
            .await?;
        Ok(Some(self.tensors.vector(scale)))
    }

    async fn layer_input(&mut self, layer: usize) -> Result<Option<LayerInput>> {
        let width = self.config.layer_input_dim;
        if width == 0 {
            return Ok(None);
        }
        let norm = self.norm(&name(layer, "post_norm")).await?;
        Ok(Some(LayerInput {
            inp_gate: self.linear(&name(layer, "inp_gate")).await?,
            proj: self.linear(&name(layer, "proj")).await?,
            join: Join {
                norm: Some(norm),
                sum_norm: None,
                scale: 1.0,
                out_scale: self.layer_scale(layer).await?,
            },
            first_column: upload_words(vec![(layer * width) as u32], [1], self.tensors.device()),
            activation: self.config.feed_forward.activation(),
        }))
    }

    async fn layer_inputs(&mut self) -> Result<Option<LayerInputs>> {
        let (width, dim) = (self.config.layer_input_dim as f32, self.config.dim as f32);
        if width == 0.0 {
            return Ok(None);
        }
        let table = self.tensors.token_table(LAYER_TOKENS).await?;
        let mut norm = self.norm("per_layer_proj_norm").await?;
        let weights = self.floats("per_layer_proj_norm.weight").await?;
        let weights = weights.iter().map(|weight| weight * FRAC_1_SQRT_2);
        norm.weight = self.tensors.vector(weights.collect());
        Ok(Some(LayerInputs {
            token_rows: InPlace::new(reserve_words(MAX_ROWS * table.cols, self.tensors.device())),
            token_embd: Arc::new(table),
            token_scale: width.sqrt() * FRAC_1_SQRT_2,
            model_proj: self.linear("per_layer_model_proj").await?,
            model_scale: dim.sqrt().recip(),
            norm,
        }))
    }

    /// The biases of the experts' matrices, `[experts, rows of the parts]`; `None` if none has one.
    async fn expert_biases(
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
    async fn shared(
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

    async fn matrix(&mut self, name: &str) -> Result<Matrix> {
        self.tensors.matrix(&[&format!("{name}.weight")]).await
    }

    pub(super) async fn linear(&mut self, name: &str) -> Result<Linear> {
        let weight = self.matrix(name).await?;
        let bias = self.bias(name).await?;
        Ok(linear_of(
            weight,
            bias.map(|bias| self.tensors.vector(bias)),
        ))
    }

    pub(super) async fn norm(&mut self, name: &str) -> Result<Norm> {
        self.norm_of(self.config.norm, name).await
    }

    /// A matrix that is stored as the one that rows are multiplied by from the right.
    pub(super) async fn transposed(&mut self, name: &str) -> Result<Linear> {
        let weight = self.tensors.transposed(&format!("{name}.weight")).await?;
        Ok(linear_of(weight, None))
    }

    pub(super) async fn norm_of(&mut self, kind: NormKind, name: &str) -> Result<Norm> {
        let bias = match kind.has_bias() {
            true => self.bias(name).await?,
            false => None,
        };
        let weight = self.tensors.tensor(&format!("{name}.weight"))?;
        let weight = self.tensors.floats(weight).await?;
        Ok(Norm {
            weight: self.tensors.vector(weight),
            bias: bias.map(|bias| self.tensors.vector(bias)),
            kind,
            eps: self.config.norm_eps,
            variant: Variant::PORTABLE,
        })
    }

    async fn norm_before(&mut self, name: &str) -> Result<Option<Norm>> {
        match self.config.norm_places.before {
            true => Ok(Some(self.norm(name).await?)),
            false => Ok(None),
        }
    }

    async fn join(&mut self, layer: usize, after: &str, on_sum: &str) -> Result<Join> {
        let places = self.config.norm_places;
        let (after, on_sum) = (name(layer, after), name(layer, on_sum));
        Ok(Join {
            norm: self.norm_named(places.after.then_some(&*after)).await?,
            sum_norm: self.norm_named(places.on_sum.then_some(&*on_sum)).await?,
            scale: self.config.residual_scale,
            out_scale: None,
        })
    }

    /// The biases of matrices with so many rows, one after another; `None` if none of them has one.
    async fn biases(&mut self, names: &[&str], rows: &[usize]) -> Result<Option<Tensor<1>>> {
        let (mut biases, mut has_bias) = (Vec::new(), false);
        for (name, len) in names.iter().zip(rows) {
            let part = self.bias(name).await?;
            has_bias |= part.is_some();
            // Zeros, if only the others have a bias.
            biases.extend(part.unwrap_or_else(|| vec![0.0; *len]));
        }
        Ok(has_bias.then(|| self.tensors.vector(biases)))
    }

    async fn bias(&mut self, name: &str) -> Result<Option<Vec<f32>>> {
        match self.tensors.find(&format!("{name}.bias")) {
            Some(tensor) => Ok(Some(self.tensors.floats(tensor).await?)),
            None => Ok(None),
        }
    }
}

/// A linear layer without adapters, for the portable kernels.
pub(super) fn linear_of(weight: Matrix, bias: Option<Tensor<1>>) -> Linear {
    Linear {
        weight,
        bias,
        low_rank: None,
        variant: Variant::PORTABLE,
    }
}
