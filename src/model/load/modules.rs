//! Builds a decoder from the tensors of a file, according to the configuration. `attention`, `feed_forward`, `recurrent`,
//! `layer_input` and `mtp_head` build its parts; `tensors` has checked that all tensors are present and have the right
//! shapes.

use burn::tensor::{Int, Tensor};

use super::{Plan, reader::TensorReader};
use crate::{
    Error, Result,
    device::{ComputeDevice, upload, upload_words},
    model::{
        config::{
            Mixing, ModelConfig, NormKind, Scaling,
            embedding::{CLASSIFIER, DENSE},
        },
        layers::{
            decoder::{Block, Decoder, Dense},
            linear::{Join, Limits, Linear, Norm},
            mixer::{AttentionAndRecurrence, Mixer},
            token_types::TokenTypes,
        },
    },
    ops::{
        Finish, Variant,
        matrix::Matrix,
        rope_kv::{turns, turns_by_parts},
    },
    weights::{ByteSource, Gguf},
};

/// Builds a decoder.
pub(super) struct Loader<'a, S> {
    pub(super) tensors: TensorReader<'a, S>,
    pub(super) config: &'a ModelConfig,
    /// The configuration with the block of the head as a layer.
    pub(super) with_mtp_block: &'a ModelConfig,
    /// Longest sequence, in tokens.
    pub(super) context_tokens: usize,
    /// Largest buffer that a kernel can bind.
    pub(super) max_binding_bytes: u64,
}

/// Rotary frequencies of the layers with the model's base and of those with a base of their own.
pub(super) struct RopeTables {
    pub(super) global: Tensor<1, Int>,
    pub(super) local: Tensor<1, Int>,
    /// Factor of the elements that global layers rotate.
    pub(super) magnitude: f32,
}

/// These suffixes follow the name of a matrix: the lower and the upper limit of its input, and those of its products.
pub(super) const LIMITS: [&str; 4] = ["input_min", "input_max", "output_min", "output_max"];

/// The GGUF name of a part of a layer.
pub(super) fn name(layer: usize, part: &str) -> String {
    format!("blk.{layer}.{part}")
}

impl<'a, S: ByteSource> Loader<'a, S> {
    /// Reads from `source`; without one, the decoder is an outline. `progress` is called with the number of
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
            with_mtp_block: &plan.with_mtp_block,
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
        let dense = Box::pin(self.dense()).await?;
        let mtp_head = match config.has_mtp_head {
            true => Some(Box::new(Box::pin(self.mtp_head()).await?)),
            false => None,
        };
        Ok(Decoder {
            token_embd,
            mtp_head,
            embedding_scale: config.embedding_scale,
            position_embd,
            layer_inputs: self.layer_inputs().await?,
            token_types: self.token_types().await?,
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
        let passes = self.config.passes;
        for layer in 0..self.config.layers.len() {
            let memory_index = match self.config.layers[layer].kv_layer {
                Some(earlier) => memory_indices[earlier],
                None => {
                    let memories = self.config.memories();
                    memories.take_while(|(of, _)| *of < layer).count()
                }
            };
            memory_indices.push(memory_index);
            let block = match layer < passes.layers {
                true => Box::pin(self.block(layer, &tables)).await?,
                // A clone shares the weights.
                false => Block::clone(&blocks[layer - passes.layers]),
            };
            let ends_pass = (layer + 1).is_multiple_of(passes.layers);
            let has_next = layer + 1 < self.config.layers.len();
            blocks.push(Block {
                memory_index,
                is_normed: passes.has_norm && ends_pass && has_next,
                ..block
            });
        }
        Ok(blocks)
    }

    /// All elements of a tensor, on the host.
    pub(super) async fn floats(&mut self, name: &str) -> Result<Vec<f32>> {
        let tensor = self.tensors.tensor(name)?;
        self.tensors.floats(tensor).await
    }

    /// All elements of a matrix, on the host.
    pub(super) async fn elements(&mut self, name: &str) -> Result<Vec<f32>> {
        let tensor = self.tensors.tensor(name)?;
        self.tensors.elements(tensor).await
    }

    async fn block(&mut self, layer: usize, tables: &RopeTables) -> Result<Block> {
        Ok(Block {
            // Boxed, so that the future of a load stays small: it is polled on the stack.
            mixer: match self.config.layers[layer].mixing {
                Mixing::Recurrence => {
                    Mixer::Recurrent(Box::new(Box::pin(self.recurrent(layer)).await?))
                }
                Mixing::Attention => {
                    Mixer::Attention(Box::new(Box::pin(self.attention(layer, tables)).await?))
                }
                Mixing::Both => Mixer::Both(Box::new(AttentionAndRecurrence {
                    attention: Box::pin(self.attention(layer, tables)).await?,
                    recurrent: Box::pin(self.recurrent(layer)).await?,
                })),
            },
            feed_forward: Box::pin(self.feed_forward(layer)).await?,
            input: Box::pin(self.layer_input(layer)).await?,
            file_layer: layer,
            memory_index: layer,
            is_normed: false,
        })
    }

    /// The products with pooled vectors.
    async fn dense(&mut self) -> Result<Vec<Dense>> {
        let mut dense = Vec::new();
        let Some(embedding) = &self.config.embedding else {
            return Ok(dense);
        };
        for (name, _) in DENSE.iter().zip(&embedding.dense) {
            dense.push(Dense {
                linear: self.linear(name).await?,
                finish: Finish::Plain,
            });
        }
        if embedding.classes.is_some() {
            let [hidden, output] = CLASSIFIER;
            let layers = [(hidden, Dense::TANH), (output, Finish::Plain)];
            for (name, finish) in layers {
                if self.tensors.find(&format!("{name}.weight")).is_some() {
                    let linear = self.linear(name).await?;
                    dense.push(Dense { linear, finish });
                }
            }
        }
        Ok(dense)
    }

    /// The types of tokens, if they have some.
    async fn token_types(&mut self) -> Result<Option<TokenTypes>> {
        match self.tensors.find("token_types.weight") {
            Some(types) if !self.config.is_causal => {
                let values = self.tensors.floats(types).await?;
                let shape = [values.len() / self.config.dim, self.config.dim];
                let device = self.tensors.device();
                Ok(Some(TokenTypes {
                    table: upload(values, shape, device),
                    of_tokens: upload_words(vec![0], [1], device),
                }))
            }
            _ => Ok(None),
        }
    }

    pub(super) async fn norm_named(&mut self, name: Option<&str>) -> Result<Option<Norm>> {
        match name {
            Some(name) => Ok(Some(self.norm(name).await?)),
            None => Ok(None),
        }
    }

    pub(super) async fn rope_tables(&mut self) -> Result<RopeTables> {
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

    pub(super) async fn matrix(&mut self, name: &str) -> Result<Matrix> {
        self.tensors.matrix(&[&format!("{name}.weight")]).await
    }

    pub(super) async fn linear(&mut self, name: &str) -> Result<Linear> {
        let weight = self.matrix(name).await?;
        let bias = self.bias(name).await?;
        Ok(Linear {
            limits: self.limits(name).await?.map(Box::new),
            ..linear_of(weight, bias.map(|bias| self.tensors.vector(bias)))
        })
    }

    /// The limits of the values around a matrix, if the file has any.
    pub(super) async fn limits(&mut self, name: &str) -> Result<Option<Limits>> {
        let mut bounds = [f32::MIN, f32::MAX, f32::MIN, f32::MAX];
        let mut has_any = false;
        for (bound, suffix) in bounds.iter_mut().zip(LIMITS) {
            let name = format!("{name}.{suffix}");
            let Some(tensor) = self.tensors.find(&name) else {
                continue;
            };
            has_any = true;
            // In an outline a tensor has no values.
            if let Some(value) = self.tensors.floats(tensor).await?.first() {
                *bound = value.clamp(f32::MIN, f32::MAX);
            }
        }
        let [input, output] = [[bounds[0], bounds[1]], [bounds[2], bounds[3]]];
        // False for what is no number, too.
        if !(input[0] <= input[1] && output[0] <= output[1]) {
            return Err(Error::InvalidModelFile(format!(
                "the limits of {name} are {bounds:?}"
            )));
        }
        Ok(has_any.then(|| Limits {
            input: self.tensors.vector(input.to_vec()),
            output: self.tensors.vector(output.to_vec()),
        }))
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

    pub(super) async fn norm_before(&mut self, name: &str) -> Result<Option<Norm>> {
        match self.config.norm_places.before {
            true => Ok(Some(self.norm(name).await?)),
            false => Ok(None),
        }
    }

    pub(super) async fn sub_norm(&mut self, name: &str) -> Result<Option<Norm>> {
        self.norm_named(self.config.has_sub_norms.then_some(name))
            .await
    }

    pub(super) async fn join(&mut self, layer: usize, after: &str, on_sum: &str) -> Result<Join> {
        let places = self.config.norm_places;
        let (after, on_sum) = (name(layer, after), name(layer, on_sum));
        Ok(Join {
            norm: self.norm_named(places.after.then_some(&*after)).await?,
            sum_norm: self.norm_named(places.on_sum.then_some(&*on_sum)).await?,
            scale: self.config.residual_scale,
            out_scale: None,
        })
    }

    /// The biases of matrices with these numbers of rows, one after another; `None` if none of them has one.
    pub(super) async fn biases(
        &mut self,
        names: &[&str],
        rows: &[usize],
    ) -> Result<Option<Tensor<1>>> {
        let (mut biases, mut has_bias) = (Vec::new(), false);
        for (name, len) in names.iter().zip(rows) {
            let part = self.bias(name).await?;
            has_bias |= part.is_some();
            // Zeros, if only the others have a bias.
            biases.extend(part.unwrap_or_else(|| vec![0.0; *len]));
        }
        Ok(has_bias.then(|| self.tensors.vector(biases)))
    }

    pub(super) async fn bias(&mut self, name: &str) -> Result<Option<Vec<f32>>> {
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
        limits: None,
        variant: Variant::PORTABLE,
    }
}
