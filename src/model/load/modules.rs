//! Streams a file's tensors into the modules of a decoder, a few MiB at a time, laid out for the
//! kernels on the way. Knows the checkpoint's names.

use std::ops::Range;

use burn::tensor::{Device, Int, Tensor, TensorData};

use super::{
    Plan,
    layout::{Layout, matrix_shape},
    tensors::can_join_qkv,
};
use crate::{
    Error, Result,
    model::{
        attention::{self, Attention, Qkv},
        config::{FeedForwardKind, LayerConfig, ModelConfig, NormKind, QkNorm, Rotation, Scaling},
        decoder::{Block, Decoder},
        experts::ExpertFeedForward,
        feed_forward::{FeedForward, GatedFeedForward, PlainFeedForward},
        linear::{Join, Linear, Norm},
    },
    ops::{Finish, Variant, attention::AttentionShape, matrix::Matrix, rope_kv::turns},
    weights::{ByteSource, Gguf, TensorInfo, dequantize},
};

/// Bytes of a tensor read at a time.
const CHUNK_BYTES: usize = 4 << 20;

/// Builds a decoder whose tensors are known to be there.
pub(super) struct Loader<'a, S> {
    gguf: &'a Gguf,
    /// None: the form alone is of interest.
    source: Option<&'a S>,
    device: &'a Device,
    config: &'a ModelConfig,
    /// Longest sequence, in tokens.
    context_tokens: usize,
    max_binding_bytes: u64,
    progress: &'a mut dyn FnMut(u64),
    read_bytes: u64,
}

/// The frequencies of layers that rotate by the model's and of those that rotate by their own.
struct RopeTables {
    global: Tensor<1, Int>,
    local: Tensor<1, Int>,
    magnitude: f32,
}

impl<'a, S: ByteSource> Loader<'a, S> {
    /// Reads from `source`; without one it tells the form alone. `progress` is told the number of
    /// tensor bytes read so far.
    pub(super) fn new(
        gguf: &'a Gguf,
        source: Option<&'a S>,
        device: &'a Device,
        plan: &'a Plan,
        progress: &'a mut dyn FnMut(u64),
    ) -> Self {
        Self {
            gguf,
            source,
            device,
            config: &plan.config,
            context_tokens: plan.reservation.context_tokens,
            max_binding_bytes: plan.max_binding_bytes,
            progress,
            read_bytes: 0,
        }
    }

    pub(super) async fn decoder(&mut self) -> Result<Decoder> {
        let config = self.config;
        let token_embd = self.matrix(&["token_embd.weight"]).await?;
        let mut output = match self.gguf.tensor("output.weight") {
            Some(_) => self.matrix(&["output.weight"]).await?,
            None => token_embd.clone(),
        };
        // Rows that stand for no token get no logits.
        output.shape.rows = config.token_ids;
        let position_embd = match config.rope() {
            Some(_) => None,
            None => Some(self.matrix(&["position_embd.weight"]).await?),
        };
        let tables = self.rope_tables().await?;
        let mut blocks = Vec::with_capacity(config.layers.len());
        for layer in 0..config.layers.len() {
            blocks.push(Block {
                attention: self.attention(layer, &tables).await?,
                feed_forward: self.feed_forward(layer).await?,
            });
        }
        Ok(Decoder {
            token_embd,
            embedding_scale: config.embedding_scale,
            position_embd,
            blocks,
            output_norm: self.norm("output_norm").await?,
            output: self.linear_of(output, None),
            logits: match (config.logit_scale, config.logit_soft_cap) {
                (scale, Some(cap)) => Finish::SoftCap { scale, cap },
                (1.0, None) => Finish::Plain,
                (scale, None) => Finish::Scale(scale),
            },
        })
    }

    async fn rope_tables(&mut self) -> Result<RopeTables> {
        let Some(rope) = self.config.rope() else {
            let none = turns(&[0.0], self.device);
            return Ok(RopeTables {
                global: none.clone(),
                local: none,
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
        let factors = match self.gguf.tensor(factors).cloned() {
            Some(tensor) => Some(self.floats(&tensor).await?),
            None => None,
        };
        let global = rope.frequencies(factors.as_deref());
        let local = rope.local_base.map(|base| rope.local_frequencies(base));
        let local = local.unwrap_or_else(|| global.clone());
        Ok(RopeTables {
            global: turns(&global.radians, self.device),
            local: turns(&local.radians, self.device),
            magnitude: global.magnitude,
        })
    }

    async fn attention(&mut self, layer: usize, tables: &RopeTables) -> Result<Attention> {
        let (config, name) = (self.config, |part: &str| format!("blk.{layer}.{part}"));
        let LayerConfig { window, rotation } = config.layers[layer];
        let (head_norm, row_norms) = self.qk_norms(layer).await?;
        let scale = (config.head_dim as f32).sqrt().recip();
        let (rope_turns, magnitude) = match rotation {
            Rotation::Local => (tables.local.clone(), 1.0),
            Rotation::Global | Rotation::None => (tables.global.clone(), tables.magnitude),
        };
        let rope = config.rope().filter(|_| rotation != Rotation::None);
        Ok(Attention {
            attn_norm: self.norm_before(&name("attn_norm")).await?,
            attn_qkv: self.qkv(layer).await?,
            attn_output: self.linear(&name("attn_output")).await?,
            join: self.join(&name("post_attention_norm")).await?,
            head_norm,
            row_norms,
            rope_turns,
            shape: AttentionShape {
                heads: config.heads,
                kv_heads: config.kv_heads,
                head_dim: config.head_dim,
                // What no sequence reaches needs no kernel of its own.
                window: window.filter(|tokens| *tokens < self.context_tokens),
                soft_cap: config.attention_soft_cap,
            },
            rotation: attention::Rotation {
                neox: rope.is_some_and(|rope| rope.neox),
                rope_dims: rope.map_or(0, |rope| rope.dims),
                magnitude,
                q_scale: config.attention_scale.unwrap_or(scale),
            },
        })
    }

    /// Norms of each head and of all heads at once.
    async fn qk_norms(&mut self, layer: usize) -> Result<(Option<Norm>, Option<[Norm; 2]>)> {
        if self.config.qk_norm == QkNorm::None {
            return Ok((None, None));
        }
        let names = ["attn_q_norm", "attn_k_norm"];
        let names = names.map(|part| format!("blk.{layer}.{part}.weight"));
        let q = self.floats(&self.tensor(&names[0])?).await?;
        let k = self.floats(&self.tensor(&names[1])?).await?;
        let norm = |weight| Norm {
            weight,
            bias: None,
            eps: self.config.norm_eps,
        };
        Ok(match self.config.qk_norm {
            QkNorm::Heads => (Some(norm(self.vector([q, k].concat()))), None),
            _ => (None, Some([q, k].map(|weight| norm(self.vector(weight))))),
        })
    }

    async fn qkv(&mut self, layer: usize) -> Result<Qkv> {
        let fused = format!("blk.{layer}.attn_qkv");
        let (q, kv) = (self.config.q_dim(), self.config.kv_dim());
        if self.gguf.tensor(&format!("{fused}.weight")).is_some() {
            return Ok(Qkv::Fused(self.linear(&fused).await?));
        }
        let names = ["attn_q", "attn_k", "attn_v"].map(|part| format!("blk.{layer}.{part}"));
        let weights = names.each_ref().map(|name| format!("{name}.weight"));
        let [q_tensor, k_tensor, v_tensor] = weights.each_ref().map(|name| self.tensor(name));
        let tensors = [&q_tensor?, &k_tensor?, &v_tensor?];
        let mut biases = Vec::new();
        for name in &names {
            biases.push(self.bias(name).await?);
        }
        if can_join_qkv(tensors, self.config, self.max_binding_bytes) {
            let weight = self.matrix(&weights.each_ref().map(String::as_str)).await?;
            // Where only some have a bias, the others' are zeros.
            let bias = biases.iter().any(Option::is_some).then(|| {
                let parts = biases.into_iter().zip([q, kv, kv]);
                let parts = parts.map(|(bias, len)| bias.unwrap_or_else(|| vec![0.0; len]));
                self.vector(parts.collect::<Vec<_>>().concat())
            });
            return Ok(Qkv::Fused(self.linear_of(weight, bias)));
        }
        let mut linears = Vec::new();
        for (weight, bias) in weights.iter().zip(biases) {
            let weight = self.matrix(&[weight]).await?;
            let bias = bias.map(|bias| self.vector(bias));
            linears.push(self.linear_of(weight, bias));
        }
        let linears = linears
            .try_into()
            .unwrap_or_else(|_| unreachable!("three names"));
        Ok(Qkv::Split(linears))
    }

    async fn feed_forward(&mut self, layer: usize) -> Result<FeedForward> {
        let name = |part: &str| format!("blk.{layer}.{part}");
        let ffn_norm = self.norm_before(&name("ffn_norm")).await?;
        match self.config.feed_forward {
            FeedForwardKind::Gated(activation) => {
                let (ffn_gate, ffn_up) = self.gate_and_up(layer).await?;
                Ok(FeedForward::Gated(GatedFeedForward {
                    ffn_norm,
                    ffn_gate,
                    ffn_up,
                    low_rank: None,
                    ffn_down: self.linear(&name("ffn_down")).await?,
                    join: self.join(&name("post_ffw_norm")).await?,
                    activation,
                    variant: Variant::PORTABLE,
                }))
            }
            FeedForwardKind::Plain(activation) => Ok(FeedForward::Plain(PlainFeedForward {
                ffn_norm,
                ffn_up: self.linear(&name("ffn_up")).await?,
                ffn_down: self.linear(&name("ffn_down")).await?,
                join: self.join(&name("post_ffw_norm")).await?,
                activation,
            })),
            FeedForwardKind::Experts(experts) => {
                let ffn_norm = ffn_norm.ok_or_else(|| Error::Internal("checked before".into()))?;
                Ok(FeedForward::Experts(ExpertFeedForward {
                    ffn_norm,
                    ffn_gate_inp: self.matrix(&[&name("ffn_gate_inp.weight")]).await?,
                    ffn_gate_exps: self.matrix(&[&name("ffn_gate_exps.weight")]).await?,
                    ffn_up_exps: self.matrix(&[&name("ffn_up_exps.weight")]).await?,
                    ffn_down_exps: self.matrix(&[&name("ffn_down_exps.weight")]).await?,
                    used: experts.used,
                    renormalize: experts.normalized,
                    variant: Variant::PORTABLE,
                }))
            }
        }
    }

    /// Two matrices, of two tensors or of the halves of one.
    async fn gate_and_up(&mut self, layer: usize) -> Result<(Matrix, Matrix)> {
        let [gate, up] = ["ffn_gate", "ffn_up"].map(|part| format!("blk.{layer}.{part}.weight"));
        if self.gguf.tensor(&gate).is_some() {
            return Ok((self.matrix(&[&gate]).await?, self.matrix(&[&up]).await?));
        }
        let (tensor, ffn) = (self.tensor(&up)?, self.config.ffn_dim);
        let gate = self.rows(&[(tensor.clone(), 0..ffn)]).await?;
        Ok((gate, self.rows(&[(tensor, ffn..2 * ffn)]).await?))
    }

    async fn linear(&mut self, name: &str) -> Result<Linear> {
        let weight = self.matrix(&[&format!("{name}.weight")]).await?;
        let bias = self.bias(name).await?.map(|bias| self.vector(bias));
        Ok(self.linear_of(weight, bias))
    }

    fn linear_of(&self, weight: Matrix, bias: Option<Tensor<1>>) -> Linear {
        Linear {
            weight,
            bias,
            low_rank: None,
            variant: Variant::PORTABLE,
        }
    }

    async fn norm(&mut self, name: &str) -> Result<Norm> {
        let tensor = self.tensor(&format!("{name}.weight"))?;
        let weight = self.floats(&tensor).await?;
        let bias = match self.config.norm {
            NormKind::Rms => None,
            NormKind::Layer => self.bias(name).await?,
        };
        Ok(Norm {
            weight: self.vector(weight),
            bias: bias.map(|bias| self.vector(bias)),
            eps: self.config.norm_eps,
        })
    }

    async fn norm_before(&mut self, name: &str) -> Result<Option<Norm>> {
        match self.config.norm_places.before {
            true => Ok(Some(self.norm(name).await?)),
            false => Ok(None),
        }
    }

    async fn join(&mut self, norm: &str) -> Result<Join> {
        Ok(Join {
            norm: match self.config.norm_places.after {
                true => Some(self.norm(norm).await?),
                false => None,
            },
            scale: self.config.residual_scale,
        })
    }

    async fn bias(&mut self, name: &str) -> Result<Option<Vec<f32>>> {
        match self.gguf.tensor(&format!("{name}.bias")) {
            Some(tensor) => Ok(Some(self.floats(&tensor.clone()).await?)),
            None => Ok(None),
        }
    }

    fn vector(&self, values: Vec<f32>) -> Tensor<1> {
        let len = values.len();
        Tensor::from_data(TensorData::new(values, [len]), self.device)
    }

    fn tensor(&self, name: &str) -> Result<TensorInfo> {
        let tensor = self.gguf.tensor(name).cloned();
        tensor.ok_or_else(|| Error::InvalidModelFile(format!("tensor {name} is missing")))
    }

    /// All elements of a small tensor as f32.
    async fn floats(&mut self, tensor: &TensorInfo) -> Result<Vec<f32>> {
        let mut bytes = vec![0; tensor.size_bytes as usize];
        self.read(tensor.offset_bytes, &mut bytes).await?;
        let mut values = vec![0.0; tensor.element_count() as usize];
        dequantize(tensor.ty, &bytes, &mut values);
        Ok(values)
    }

    /// The rows of one or more tensors of one type and row length, one below the other.
    async fn matrix(&mut self, names: &[&str]) -> Result<Matrix> {
        let mut parts = Vec::new();
        for name in names {
            let tensor = self.tensor(name)?;
            let rows = tensor.row_count() as usize;
            parts.push((tensor, 0..rows));
        }
        self.rows(&parts).await
    }

    /// Some rows of one or more tensors of one type and row length, one below the other.
    async fn rows(&mut self, parts: &[(TensorInfo, Range<usize>)]) -> Result<Matrix> {
        let mut shape = matrix_shape(&parts[0].0);
        shape.rows = parts.iter().map(|(_, rows)| rows.len()).sum();
        if self.source.is_none() {
            return Ok(Matrix::outline(shape, self.device));
        }
        let mut matrix = Matrix::reserve(shape, self.device);
        let mut layout = Layout::new(shape);
        for (tensor, rows) in parts {
            let row_bytes = tensor.row_bytes() as usize;
            let chunk_rows = (CHUNK_BYTES / row_bytes).max(1);
            let mut row = rows.start;
            let mut bytes = Vec::new();
            while row < rows.end {
                let count = chunk_rows.min(rows.end - row);
                bytes.resize(count * row_bytes, 0);
                let offset = tensor.offset_bytes + (row * row_bytes) as u64;
                self.read(offset, &mut bytes).await?;
                row += count;
                matrix = layout.add(tensor.ty, &bytes).write(matrix);
            }
        }
        Ok(layout.rest().write(matrix))
    }

    async fn read(&mut self, offset_bytes: u64, buf: &mut [u8]) -> Result<()> {
        let Some(source) = self.source else {
            return Ok(());
        };
        source.read_at(offset_bytes, buf).await?;
        self.read_bytes += buf.len() as u64;
        (self.progress)(self.read_bytes);
        Ok(())
    }
}
