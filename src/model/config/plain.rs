//! The configuration of a plain model, whose layers are attention and a feed-forward with norms before them. The readers of text models
//! and of vision towers begin with it, and change the fields in which a model differs.

use super::model_config::{
    FeedForwardKind, LayerConfig, ModelConfig, NormPlaces, Passes, Positions, QkNorm,
};
use crate::ops::NormKind;

/// The facts that every model states. The fields are those of [`ModelConfig`].
pub(in crate::model) struct PlainModel {
    pub architecture: String,
    pub dim: usize,
    pub ffn_dim: usize,
    pub heads: usize,
    pub kv_heads: usize,
    pub head_dim: usize,
    pub vocab: usize,
    pub token_ids: usize,
    pub context_tokens: usize,
    pub layers: Vec<LayerConfig>,
    pub norm: NormKind,
    pub norm_eps: f32,
    pub positions: Positions,
    pub feed_forward: FeedForwardKind,
    pub is_causal: bool,
}

impl PlainModel {
    /// The configuration with these facts and nothing else.
    pub fn config(self) -> ModelConfig {
        ModelConfig {
            architecture: self.architecture,
            dim: self.dim,
            ffn_dim: self.ffn_dim,
            heads: self.heads,
            kv_heads: self.kv_heads,
            head_dim: self.head_dim,
            vocab: self.vocab,
            token_ids: self.token_ids,
            context_tokens: self.context_tokens,
            passes: Passes {
                layers: self.layers.len(),
                has_norm: false,
            },
            layers: self.layers,
            recurrence: None,
            has_mtp_head: false,
            ignored_blocks: 0,
            norm: self.norm,
            norm_eps: self.norm_eps,
            norm_places: NormPlaces::BEFORE,
            has_sub_norms: false,
            ffn_norm: "ffn_norm",
            output_norm_name: "output_norm",
            has_output_gate: false,
            latent: None,
            qk_norm: QkNorm::None,
            positions: self.positions,
            attention_scale: None,
            has_value_norm: false,
            has_layer_scale: false,
            layer_input_dim: 0,
            has_sinks: false,
            attention_soft_cap: None,
            feed_forward: self.feed_forward,
            dense_layers: None,
            has_gate_biases: false,
            experts_scale: 1.0,
            embedding_scale: 1.0,
            residual_scale: 1.0,
            logit_scale: 1.0,
            is_causal: self.is_causal,
            has_embedding_norm: false,
            has_output_norm: true,
            logit_soft_cap: None,
            deepstack_layers: 0,
            embedding: None,
        }
    }
}
