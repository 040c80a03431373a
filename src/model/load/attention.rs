//! Builds the attention of a layer from its tensors.

use std::ops::Range;

use burn::tensor::Tensor;

use super::{
    modules::{Loader, RopeTables, linear_of, name},
    tensors::can_join_qkv,
};
use crate::{
    Result,
    model::{
        config::{LayerConfig, LayerRope, NormKind, QkNorm, RopePairs},
        layers::{
            attention::{Attention, Qkv},
            linear::{Linear, Norm},
        },
    },
    ops::{Variant, attention::AttentionShape, rope_kv::RopeShape},
    weights::ByteSource,
};

impl<S: ByteSource> Loader<'_, S> {
    pub(super) async fn attention(
        &mut self,
        layer: usize,
        tables: &RopeTables,
    ) -> Result<Attention> {
        let config = self.config;
        let LayerConfig { window, rope, .. } = config.layers[layer];
        let sizes = config.sizes(layer);
        let (head_norm, row_norms) = self.qk_norms(layer).await?;
        let (rope_turns, magnitude) = match rope {
            LayerRope::Local => (tables.local.clone(), 1.0),
            LayerRope::Global | LayerRope::None => (tables.global.clone(), tables.magnitude),
        };
        let (attn_qkv, values) = match config.latent {
            Some(latent) => {
                let (projections, values) = Box::pin(self.latent(layer, latent)).await?;
                (Qkv::Latent(Box::new(projections)), Some(values))
            }
            None => (self.qkv(layer).await?, None),
        };
        let gate = match config.has_output_gate {
            true => Some(self.query_rows(layer, true).await?),
            false => None,
        };
        let columns = attn_qkv.columns(config.q_dim(layer), config.kv_dim(layer));
        Ok(Attention {
            attn_norm: self.norm_before(&name(layer, "attn_norm")).await?,
            attn_qkv,
            gate,
            values,
            sub_norm: self.sub_norm(&name(layer, "attn_sub_norm")).await?,
            attn_output: self.linear(&name(layer, "attn_output")).await?,
            join: self
                .join(layer, "post_attention_norm", "attn_output_norm")
                .await?,
            is_whole: !config.is_causal,
            head_norm,
            row_norms,
            sinks: self.sinks(layer).await?,
            rope_turns,
            shape: AttentionShape {
                heads: config.heads,
                kv_heads: sizes.kv_heads,
                head_dim: sizes.head_dim,
                // A window that no sequence exceeds needs no kernel of its own.
                window: window.filter(|window| window.tokens() < self.context_tokens),
                soft_cap: config.attention_soft_cap,
            },
            rope: self.rope_shape(layer, magnitude, columns),
        })
    }

    /// The rotation of a layer's queries and keys. `columns` are the places of queries, keys and values, and the row lengths there.
    fn rope_shape(
        &self,
        layer: usize,
        magnitude: f32,
        (at, stride): ([usize; 3], [usize; 3]),
    ) -> RopeShape {
        let config = self.config;
        let LayerConfig {
            rope: kind,
            temperature,
            ..
        } = config.layers[layer];
        let sizes = config.sizes(layer);
        let rope = config.rope().filter(|_| kind != LayerRope::None);
        let dims = rope.map_or(0, |rope| match kind {
            LayerRope::Local => rope.local_dims,
            LayerRope::Global | LayerRope::None => rope.dims,
        });
        let usual_scale = (sizes.head_dim as f32).sqrt().recip();
        RopeShape {
            heads: config.heads,
            kv_heads: sizes.kv_heads,
            head_dim: sizes.head_dim,
            neox: rope.is_some_and(|rope| rope.pairs != RopePairs::Adjacent),
            by_parts: rope.is_some_and(|rope| rope.parts.is_some()),
            rope_dims: dims,
            norms_values: config.has_value_norm,
            only_queries: config.layers[layer].kv_layer.is_some(),
            norm_last: matches!(config.qk_norm, QkNorm::RotatedHeads | QkNorm::Unweighted),
            magnitude,
            q_scale: config.attention_scale.unwrap_or(usual_scale),
            temperature,
            at,
            stride,
        }
    }

    /// The sink of each head, for models that have them.
    async fn sinks(&mut self, layer: usize) -> Result<Option<Tensor<1>>> {
        if !self.config.has_sinks {
            return Ok(None);
        }
        let sinks = self.floats(&name(layer, "attn_sinks.weight")).await?;
        Ok(Some(self.tensors.vector(sinks)))
    }

    /// The norm of each head, and the norms over all heads.
    pub(super) async fn qk_norms(
        &mut self,
        layer: usize,
    ) -> Result<(Option<Norm>, Option<[Norm; 2]>)> {
        match self.config.qk_norm {
            QkNorm::None => return Ok((None, None)),
            QkNorm::Unweighted => {
                let is_rotated = self.config.layers[layer].rope != LayerRope::None;
                let ones = vec![1.0; 2 * self.config.sizes(layer).head_dim];
                return Ok((is_rotated.then(|| self.head_norm(ones)), None));
            }
            QkNorm::Heads | QkNorm::RotatedHeads | QkNorm::Rows => {}
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
        let in_quarters = self
            .config
            .rope()
            .is_some_and(|it| it.pairs == RopePairs::Quarters);
        let ordered = |weight: Vec<f32>| match in_quarters && !weight.is_empty() {
            true => quarters(weight.len())
                .into_iter()
                .flat_map(|it| weight[it].to_vec())
                .collect(),
            false => weight,
        };
        let (q, k) = (ordered(q), ordered(k));
        Ok(match self.config.qk_norm {
            QkNorm::Heads | QkNorm::RotatedHeads => (Some(self.head_norm([q, k].concat())), None),
            _ => (None, Some([q, k].map(|weight| self.head_norm(weight)))),
        })
    }

    fn head_norm(&self, weight: Vec<f32>) -> Norm {
        Norm {
            weight: self.tensors.vector(weight),
            bias: None,
            kind: NormKind::Rms,
            eps: self.config.norm_eps,
            variant: Variant::PORTABLE,
        }
    }

    pub(super) async fn qkv(&mut self, layer: usize) -> Result<Qkv> {
        let fused = name(layer, "attn_qkv");
        if self.tensors.find(&format!("{fused}.weight")).is_some() {
            return Ok(Qkv::Fused(Box::new(self.linear(&fused).await?)));
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
        let in_quarters = self
            .config
            .rope()
            .is_some_and(|it| it.pairs == RopePairs::Quarters);
        if in_quarters || !can_join_qkv(&tensors?, self.config, self.max_binding_bytes) {
            let mut linears = Vec::new();
            for (i, name) in names.iter().enumerate() {
                linears.push(match i {
                    0 if self.config.has_output_gate => self.query_rows(layer, false).await?,
                    0 | 1 if in_quarters => self.halved_rows(name).await?,
                    _ => self.linear(name).await?,
                });
            }
            return Ok(Qkv::Split(linears));
        }
        let weights: Vec<&str> = weights.iter().map(String::as_str).collect();
        let weight = self.tensors.matrix(&weights).await?;
        let (q, kv) = (self.config.q_dim(layer), self.config.kv_dim(layer));
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let bias = self.biases(&names, &[q, kv, kv]).await?;
        Ok(Qkv::Fused(Box::new(linear_of(weight, bias))))
    }

    /// The rows of heads in [`RopePairs::Quarters`] as those of heads in [`RopePairs::Halves`].
    async fn halved_rows(&mut self, name: &str) -> Result<Linear> {
        let tensor = self.tensors.tensor(&format!("{name}.weight"))?;
        let len = self.config.head_dim;
        let heads = (0..tensor.row_count() as usize / len).map(|head| head * len);
        let rows =
            heads.flat_map(|at| quarters(len).map(|it| (tensor, at + it.start..at + it.end)));
        let rows: Vec<_> = rows.collect();
        Ok(Linear {
            limits: self.limits(name).await?.map(Box::new),
            ..linear_of(self.tensors.rows(&rows).await?, None)
        })
    }

    /// The rows of the query heads, or those of the gates that follow each of them.
    pub(super) async fn query_rows(&mut self, layer: usize, gates: bool) -> Result<Linear> {
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
}

/// The quarters of a head in [`RopePairs::Quarters`] in the order that makes it one in [`RopePairs::Halves`] whose first pairs
/// turn by row.
fn quarters(len: usize) -> [Range<usize>; 4] {
    [2, 0, 3, 1].map(|quarter| quarter * len / 4..(quarter + 1) * len / 4)
}
