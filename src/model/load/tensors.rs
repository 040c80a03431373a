//! Compares the names and shapes of a file's tensors with those that its configuration needs, before any
//! of their data is fetched. Longer than other files: the table of all tensors of a model.

use std::collections::HashSet;

use super::layout::DeviceBytes;
use crate::{
    Error, Result,
    model::config::{
        Experts, FeedForwardKind, ModelConfig, Positions, QkNorm, Scaling,
        embedding::{CLASSIFIER, DENSE},
    },
    weights::{Gguf, TensorInfo},
};

/// The table of the tokens' vectors for all layers, which stays on the host.
pub(in crate::model) const LAYER_TOKENS: &str = "per_layer_token_embd.weight";

/// The table of the tokens' vectors, whose rows have no factors.
const TOKENS: &str = "token_embd.weight";

/// Tensors that some converters write and no model needs.
const IGNORED: [&str; 1] = ["attn_rot_embd.weight"];

/// The name of the tensor with the factors of the rows of a matrix: `blk.0.attn_q.scale` for `blk.0.attn_q.weight`.
pub(super) fn scale_name(matrix: &str) -> String {
    format!("{}.scale", matrix.strip_suffix(".weight").unwrap_or(matrix))
}

/// Checks that every tensor that the model needs is present with the right shape, that there are no
/// others, and that none takes more than `max_binding_bytes` on the device.
///
/// # Errors
/// [`Error::InvalidModelFile`] and [`Error::UnsupportedModel`] naming the tensor.
pub(super) fn check_tensors(
    gguf: &Gguf,
    config: &ModelConfig,
    max_binding_bytes: u64,
) -> Result<()> {
    let with_head = config.with_mtp_block();
    let mut check = Check::new(gguf, &with_head);
    check.outer()?;
    if config.has_mtp_head {
        check.mtp_head(config.layers.len())?;
    }
    check.layers_and_rest(max_binding_bytes)
}

/// Whether queries, keys and values, or those of them that a layer projects, can be one matrix: they have one type, are not normalized
/// separately, and take at most `max_binding_bytes` together.
pub(super) fn can_join_qkv(
    tensors: &[&TensorInfo],
    config: &ModelConfig,
    max_binding_bytes: u64,
) -> bool {
    let bytes = tensors
        .iter()
        .map(|tensor| DeviceBytes::of(tensor).largest());
    tensors.iter().all(|tensor| tensor.ty == tensors[0].ty)
        && config.qk_norm != QkNorm::Rows
        && !config.has_output_gate
        && bytes.sum::<u64>() <= max_binding_bytes
}

pub(super) struct Check<'a> {
    pub(super) gguf: &'a Gguf,
    pub(super) config: &'a ModelConfig,
    /// Names of the tensors that the model uses.
    known: HashSet<String>,
}

impl<'a> Check<'a> {
    pub(super) fn new(gguf: &'a Gguf, config: &'a ModelConfig) -> Check<'a> {
        Check {
            gguf,
            config,
            known: HashSet::new(),
        }
    }

    /// The layers; then that there are no other tensors, and that none is too large.
    pub(super) fn layers_and_rest(&mut self, max_binding_bytes: u64) -> Result<()> {
        for layer in 0..self.config.passes.layers {
            let mixing = self.config.layers[layer].mixing;
            if mixing.attends() {
                self.attention(layer)?;
            }
            if mixing.recurs() {
                self.recurrent(layer)?;
            }
            self.feed_forward(layer)?;
        }
        // An unknown tensor would be left out of the computation, so it is refused.
        for tensor in &self.gguf.tensors {
            let name = &tensor.name;
            let is_ignored = IGNORED.iter().any(|ignored| name.ends_with(ignored));
            let is_ignored = is_ignored || self.config.ignores(name);
            if !self.known.contains(name) && !is_ignored {
                return Err(Error::UnsupportedModel(format!(
                    "{} with a tensor {name:?}",
                    self.config.architecture
                )));
            }
            let bytes = DeviceBytes::of(tensor).largest();
            if bytes > max_binding_bytes && name != LAYER_TOKENS {
                return Err(Error::UnsupportedModel(format!(
                    "tensor {name} takes {bytes} bytes, and this device's kernels see \
                     {max_binding_bytes} at most"
                )));
            }
        }
        Ok(())
    }

    fn outer(&mut self) -> Result<()> {
        let (dim, vocab) = (self.config.dim, self.config.vocab);
        self.needed(TOKENS, &[dim, vocab])?;
        self.possible("output.weight", &[dim, vocab])?;
        if self.config.has_output_norm {
            self.norm(self.config.output_norm_name, dim)?;
        }
        if self.config.has_embedding_norm {
            self.norm("token_embd_norm", dim)?;
        }
        if !self.config.is_causal
            && let Some(types) = self.gguf.tensor("token_types.weight")
        {
            match types.shape.get(1).copied().unwrap_or(1) {
                // Some converters write a row without its second dimension.
                1 => self.vector("token_types.weight", dim)?,
                rows => self.needed("token_types.weight", &[dim, rows as usize])?,
            }
        }
        let width = self.config.layer_input_dim;
        if width > 0 {
            let all = width * self.config.layers.len();
            self.needed(LAYER_TOKENS, &[all, vocab])?;
            self.linear("per_layer_model_proj", [dim, all])?;
            self.norm("per_layer_proj_norm", width)?;
        }
        self.dense()?;
        match &self.config.positions {
            Positions::Learned => {
                let positions = self.config.context_tokens;
                self.needed("position_embd.weight", &[dim, positions])?;
            }
            Positions::Rotary(rope) => {
                let pairs = rope.dims / 2;
                self.possible("rope_freqs.weight", &[pairs])?;
                for name in ["rope_factors_long.weight", "rope_factors_short.weight"] {
                    match rope.scaling {
                        Scaling::Long { .. } => self.needed(name, &[pairs])?,
                        // Some files hold factors of one.
                        _ => self.possible(name, &[pairs])?,
                    }
                }
            }
        }
        Ok(())
    }

    /// The matrices of the pooled vector: the keys of their sizes and the tensors come together.
    fn dense(&mut self) -> Result<()> {
        let Some(embedding) = &self.config.embedding else {
            return Ok(());
        };
        let mut width = self.config.dim;
        for (name, [cols, rows]) in DENSE.iter().zip(&embedding.dense) {
            if *cols != width {
                return Err(Error::InvalidModelFile(format!(
                    "{name} has {cols} columns for vectors of {width}"
                )));
            }
            self.needed(&format!("{name}.weight"), &[*cols, *rows])?;
            self.possible(&format!("{name}.bias"), &[*rows])?;
            width = *rows;
        }
        match embedding.classes {
            Some(classes) => self.classifier(classes),
            None => Ok(()),
        }
    }

    /// The layers of a reranker's classifier. Files of BERT models lack the hidden one, which their converter leaves out.
    fn classifier(&mut self, classes: usize) -> Result<()> {
        let dim = self.config.dim;
        let [hidden, output] = CLASSIFIER;
        if self.is_there(&format!("{hidden}.weight")) {
            self.linear(hidden, [dim, dim])?;
        }
        let weight = format!("{output}.weight");
        match classes {
            // Some converters write a row without its second dimension.
            1 => self.vector(&weight, dim)?,
            classes => self.needed(&weight, &[dim, classes])?,
        }
        self.possible(&format!("{output}.bias"), &[classes])
    }

    fn attention(&mut self, layer: usize) -> Result<()> {
        let config = self.config;
        let (dim, q, kv) = (config.dim, config.q_dim(layer), config.kv_dim(layer));
        let head_dim = config.sizes(layer).head_dim;
        let name = |part: &str| format!("blk.{layer}.{part}");
        if config.norm_places.before {
            self.norm(&name("attn_norm"), dim)?;
        }
        if let Some(latent) = config.latent {
            self.latent(layer, latent)?;
        } else if self.is_there(&name("attn_qkv.weight")) {
            if config.qk_norm == QkNorm::Rows || config.has_output_gate {
                return Err(Error::UnsupportedModel(format!(
                    "tensor {}, whose queries and keys are normalized separately",
                    name("attn_qkv.weight")
                )));
            }
            self.linear(&name("attn_qkv"), [dim, q + 2 * kv])?;
        } else if config.layers[layer].kv_layer.is_some() {
            self.linear(&name("attn_q"), [dim, q])?;
            // The layer uses the keys and values of another one.
            self.possible(&name("attn_k.weight"), &[dim, kv])?;
            self.possible(&name("attn_v.weight"), &[dim, kv])?;
            self.possible(&name("attn_k_norm.weight"), &[head_dim])?;
        } else {
            // The rows of each query head are followed by those of its gate.
            let gates = if config.has_output_gate { q } else { 0 };
            self.linear(&name("attn_q"), [dim, q + gates])?;
            self.linear(&name("attn_k"), [dim, kv])?;
            // Keys are values in layers without some, of models that normalize values.
            if !config.has_value_norm || self.is_there(&name("attn_v.weight")) {
                self.linear(&name("attn_v"), [dim, kv])?;
            }
        }
        let normed = match config.qk_norm {
            QkNorm::None | QkNorm::Unweighted => None,
            QkNorm::Heads | QkNorm::RotatedHeads => Some([head_dim; 2]),
            QkNorm::Rows => Some([q, kv]),
        };
        if let Some([q, k]) = normed {
            self.needed(&name("attn_q_norm.weight"), &[q])?;
            if config.layers[layer].kv_layer.is_none() {
                self.needed(&name("attn_k_norm.weight"), &[k])?;
            }
        }
        if config.has_sinks {
            self.needed(&name("attn_sinks.weight"), &[config.heads])?;
        }
        if config.has_sub_norms {
            self.norm(&name("attn_sub_norm"), q)?;
        }
        let attended = match config.latent {
            Some(latent) => config.heads * latent.value,
            None => q,
        };
        self.linear(&name("attn_output"), [attended, dim])?;
        if config.norm_places.after {
            self.norm(&name("post_attention_norm"), dim)?;
        }
        if config.norm_places.on_sum {
            self.norm(&name("attn_output_norm"), dim)?;
        }
        Ok(())
    }

    fn feed_forward(&mut self, layer: usize) -> Result<()> {
        let config = self.config;
        let dim = config.dim;
        let (kind, ffn) = config.feed_forward_of(layer);
        let name = |part: &str| format!("blk.{layer}.{part}");
        if config.norm_places.before {
            self.norm(&name(config.ffn_norm), dim)?;
        }
        match kind {
            FeedForwardKind::Mixed(experts, width) => {
                self.needed(&name("ffn_gate.weight"), &[dim, ffn])?;
                self.needed(&name("ffn_up.weight"), &[dim, ffn])?;
                self.linear(&name("ffn_down"), [ffn, dim])?;
                self.mixed_experts(layer, experts.count, width)?;
            }
            FeedForwardKind::Gated(_) if self.is_there(&name("ffn_gate.weight")) => {
                self.needed(&name("ffn_gate.weight"), &[dim, ffn])?;
                self.needed(&name("ffn_up.weight"), &[dim, ffn])?;
                self.linear(&name("ffn_down"), [ffn, dim])?;
                if config.has_sub_norms {
                    self.norm(&name("ffn_sub_norm"), ffn)?;
                }
                if config.has_gate_biases {
                    self.possible(&name("ffn_gate.bias"), &[ffn])?;
                    self.possible(&name("ffn_up.bias"), &[ffn])?;
                }
            }
            FeedForwardKind::Gated(_) => {
                // The rows of the gate, then those of the other half.
                self.needed(&name("ffn_up.weight"), &[dim, 2 * ffn])?;
                self.linear(&name("ffn_down"), [ffn, dim])?;
            }
            FeedForwardKind::Plain(_) => {
                self.linear(&name("ffn_up"), [dim, ffn])?;
                self.linear(&name("ffn_down"), [ffn, dim])?;
            }
            FeedForwardKind::Experts(experts) => self.experts(layer, experts, ffn)?,
        }
        if config.norm_places.after {
            self.norm(&name("post_ffw_norm"), dim)?;
        }
        if config.norm_places.on_sum {
            self.norm(&name("layer_output_norm"), dim)?;
        }
        if config.has_layer_scale {
            self.needed(&name("layer_output_scale.weight"), &[1])?;
        }
        let width = config.layer_input_dim;
        if width > 0 {
            self.linear(&name("inp_gate"), [dim, width])?;
            self.linear(&name("proj"), [width, dim])?;
            self.norm(&name("post_norm"), dim)?;
        }
        Ok(())
    }

    /// The experts of `width` beside a feed-forward network that every token passes.
    fn mixed_experts(&mut self, layer: usize, count: usize, width: usize) -> Result<()> {
        let dim = self.config.dim;
        let name = |part: &str| format!("blk.{layer}.{part}");
        self.needed(&name("ffn_gate_inp.weight"), &[dim, count])?;
        self.needed(&name("ffn_gate_inp.scale"), &[dim])?;
        self.needed(&name("ffn_gate_up_exps.weight"), &[dim, 2 * width, count])?;
        self.needed(&name("ffn_down_exps.weight"), &[width, dim, count])?;
        self.needed(&name("ffn_down_exps.scale"), &[count])?;
        for norm in ["post_ffw_norm_1", "pre_ffw_norm_2", "post_ffw_norm_2"] {
            self.norm(&name(norm), dim)?;
        }
        Ok(())
    }

    /// The router, the experts of width `ffn`, and the expert that every token passes, if there is one.
    fn experts(&mut self, layer: usize, experts: Experts, ffn: usize) -> Result<()> {
        let (dim, count) = (self.config.dim, experts.count);
        let name = |part: &str| format!("blk.{layer}.{part}");
        self.needed(&name("ffn_gate_inp.weight"), &[dim, count])?;
        self.needed(&name("ffn_gate_exps.weight"), &[dim, ffn, count])?;
        self.needed(&name("ffn_up_exps.weight"), &[dim, ffn, count])?;
        self.needed(&name("ffn_down_exps.weight"), &[ffn, dim, count])?;
        if self.config.has_gate_biases {
            self.possible(&name("ffn_gate_inp.bias"), &[count])?;
            self.possible(&name("ffn_gate_exps.bias"), &[ffn, count])?;
            self.possible(&name("ffn_up_exps.bias"), &[ffn, count])?;
            self.possible(&name("ffn_down_exps.bias"), &[dim, count])?;
        }
        if experts.is_sigmoid {
            self.possible(&name("exp_probs_b.bias"), &[count])?;
        }
        if let Some(shared) = experts.shared {
            let ffn = shared.ffn_dim;
            self.needed(&name("ffn_gate_shexp.weight"), &[dim, ffn])?;
            self.needed(&name("ffn_up_shexp.weight"), &[dim, ffn])?;
            self.needed(&name("ffn_down_shexp.weight"), &[ffn, dim])?;
            if shared.is_gated {
                self.vector(&name("ffn_gate_inp_shexp.weight"), dim)?;
            }
        }
        Ok(())
    }

    /// Checks the tensors that a head for drafts has in addition to those of a layer.
    fn mtp_head(&mut self, block: usize) -> Result<()> {
        let (dim, vocab) = (self.config.dim, self.config.vocab);
        let name = |part: &str| format!("blk.{block}.nextn.{part}.weight");
        self.needed(&name("eh_proj"), &[2 * dim, dim])?;
        self.needed(&name("enorm"), &[dim])?;
        self.needed(&name("hnorm"), &[dim])?;
        self.possible(&name("shared_head_norm"), &[dim])?;
        self.possible(&name("shared_head_head"), &[dim, vocab])?;
        self.possible(&name("embed_tokens"), &[dim, vocab])
    }

    pub(super) fn norm(&mut self, name: &str, len: usize) -> Result<()> {
        self.needed(&format!("{name}.weight"), &[len])?;
        match self.config.norm.has_bias() {
            true => self.needed(&format!("{name}.bias"), &[len]),
            false => Ok(()),
        }
    }

    /// A matrix and an optional bias.
    pub(super) fn linear(&mut self, name: &str, shape: [usize; 2]) -> Result<()> {
        self.needed(&format!("{name}.weight"), &shape)?;
        self.possible(&format!("{name}.bias"), &shape[1..])
    }

    /// A vector, however many dimensions its shape has.
    pub(super) fn vector(&mut self, name: &str, len: usize) -> Result<()> {
        match self.gguf.tensor(name) {
            Some(tensor) if tensor.element_count() == len as u64 => {
                self.known.insert(name.to_string());
                Ok(())
            }
            _ => self.needed(name, &[len]),
        }
    }

    pub(super) fn is_there(&self, name: &str) -> bool {
        self.gguf.tensor(name).is_some()
    }

    pub(super) fn possible(&mut self, name: &str, shape: &[usize]) -> Result<()> {
        match self.is_there(name) {
            true => self.needed(name, shape),
            false => Ok(()),
        }
    }

    pub(super) fn needed(&mut self, name: &str, shape: &[usize]) -> Result<()> {
        let tensor = self
            .gguf
            .tensor(name)
            .ok_or_else(|| Error::InvalidModelFile(format!("tensor {name} is missing")))?;
        let shape: Vec<u64> = shape.iter().map(|&n| n as u64).collect();
        if tensor.shape != shape {
            return Err(Error::InvalidModelFile(format!(
                "tensor {name} has shape {:?}, not {shape:?}",
                tensor.shape
            )));
        }
        if tensor.ty.has_row_factors() && name != TOKENS {
            self.factors(tensor)?;
        }
        self.known.insert(name.to_string());
        Ok(())
    }

    /// The factors of the rows of a matrix: one, or one for each expert. Those of its input are for devices that multiply floats
    /// of four bits, and change nothing else.
    fn factors(&mut self, tensor: &TensorInfo) -> Result<()> {
        let of_experts = tensor.shape.get(2).map_or(1, |experts| *experts as usize);
        let scale = scale_name(&tensor.name);
        self.known.insert(scale.replace(".scale", ".input_scale"));
        match self.gguf.tensor(&scale).map(TensorInfo::element_count) {
            Some(1) => self.vector(&scale, 1),
            Some(_) => self.vector(&scale, of_experts),
            None => Ok(()),
        }
    }
}
