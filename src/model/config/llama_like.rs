//! The configuration that every architecture starts from: a Llama without rope scaling. Reads the metadata
//! keys that architectures share, and rejects configurations that no kernel computes.

use super::{
    embedding::EmbeddingConfig,
    keys::{Keys, missing},
    model_config::{
        FeedForwardKind, LayerConfig, LayerRope, ModelConfig, NormPlaces, Positions, QkNorm,
    },
    rope::Rope,
};
use crate::{
    Error, Result,
    ops::{Activation, NormKind},
};

/// Metadata key of the tokenizer's number of tokens, for files whose metadata do not list them.
pub const TOKEN_COUNT: &str = "tokenizer.token_count";

/// More than real models have. A hostile header must not make the loader reserve memory.
const MAX_LAYERS: usize = 1024;
const MAX_HEADS: usize = 4096;

/// The hyperparameters of a Llama without rope scaling, whose embedding table has `vocab` rows.
///
/// # Errors
/// [`Error::InvalidModelFile`] for keys that are missing, mistyped or out of range,
/// [`Error::UnsupportedModel`] for values that no kernel computes. Both name the key.
pub fn read(keys: &Keys, vocab: usize) -> Result<ModelConfig> {
    let dim = keys.size("embedding_length")?;
    let heads = keys.size("attention.head_count")?;
    let kv_heads = keys.largest_or("attention.head_count_kv", heads)?;
    let head_dim = keys.size_or("attention.key_length", dim / heads)?;
    let value_dim = keys.size_or("attention.value_length", head_dim)?;
    if value_dim != head_dim {
        return Err(keys.unsupported("heads of different key and value lengths"));
    }
    let token_ids = match keys.metadata().strings("tokenizer.ggml.tokens")? {
        Some(tokens) => Some(tokens.len()),
        None => keys.metadata().usize(TOKEN_COUNT)?,
    };
    let layers = keys.size("block_count")?;
    if layers > MAX_LAYERS {
        return Err(keys.unsupported(&format!("{layers} layers")));
    }
    let layer = LayerConfig {
        window: None,
        rope: LayerRope::Global,
        is_recurrent: false,
    };
    Ok(ModelConfig {
        architecture: keys.architecture().to_owned(),
        dim,
        ffn_dim: match keys.size_if("expert_feed_forward_length")? {
            Some(width) => keys.size_or("feed_forward_length", width)?,
            None => keys.size("feed_forward_length")?,
        },
        heads,
        kv_heads,
        head_dim,
        vocab,
        token_ids: token_ids.unwrap_or(vocab),
        context_tokens: keys.size("context_length")?,
        layers: vec![layer; layers],
        recurrence: None,
        ignored_blocks: 0,
        norm: NormKind::Rms,
        norm_eps: match keys.positive("attention.layer_norm_rms_epsilon")? {
            Some(eps) => eps,
            None => keys
                .positive("attention.layer_norm_epsilon")?
                .ok_or_else(|| missing(&keys.name("attention.layer_norm_rms_epsilon")))?,
        },
        norm_places: NormPlaces::BEFORE,
        ffn_norm: "ffn_norm",
        output_norm_name: "output_norm",
        has_output_gate: false,
        qk_norm: QkNorm::None,
        positions: Positions::Rotary(Rope::read(keys, head_dim)?),
        attention_scale: keys.positive("attention.scale")?,
        attention_soft_cap: None,
        feed_forward: FeedForwardKind::Gated(Activation::Silu),
        leading_dense: None,
        has_gate_biases: false,
        embedding_scale: 1.0,
        residual_scale: 1.0,
        logit_scale: 1.0,
        is_causal: true,
        has_embedding_norm: false,
        has_output_norm: true,
        logit_soft_cap: None,
        deepstack_layers: 0,
        embedding: EmbeddingConfig::read(keys)?,
    })
}

/// Rejects configurations that no kernel computes, for every architecture.
///
/// # Errors
/// [`Error::InvalidModelFile`] and [`Error::UnsupportedModel`] naming the reason.
pub fn check(config: &ModelConfig) -> Result<()> {
    if config.token_ids > config.vocab {
        return Err(Error::InvalidModelFile(format!(
            "the tokenizer has {} tokens, the embedding table only {}",
            config.token_ids, config.vocab
        )));
    }
    let rope_dims = match &config.positions {
        Positions::Rotary(rope) => rope.dims,
        Positions::Learned => config.head_dim,
    };
    let has_experts = matches!(config.feed_forward, FeedForwardKind::Experts(_));
    let unsupported = [
        (
            has_experts && config.norm_places != NormPlaces::BEFORE,
            "experts whose outputs are normalized",
        ),
        (
            config.norm_places.after && !config.norm.adds_residual(),
            "norms of this kind on outputs",
        ),
        (
            config.heads > MAX_HEADS,
            "more attention heads than supported",
        ),
        (
            !config.heads.is_multiple_of(config.kv_heads),
            "a number of heads that is no multiple of the KV heads",
        ),
        (
            !config.head_dim.is_multiple_of(8) || config.head_dim > 256,
            "a head length that is no multiple of 8 up to 256",
        ),
        (
            !rope_dims.is_multiple_of(8) || rope_dims > config.head_dim,
            "a number of rotated elements per head that is no multiple of 8 up to the head length",
        ),
        (
            !config.dim.is_multiple_of(4),
            "an embedding length that is no multiple of 4",
        ),
        (
            config.recurrence.is_some() && config.norm_places != NormPlaces::BEFORE,
            "norms of the outputs of recurrent layers",
        ),
        (
            config.recurrence.is_some() && !config.is_causal,
            "recurrent layers that are not causal",
        ),
        (
            !config.is_causal && config.embedding.is_none(),
            "no pooling of token vectors: pooling_type, or modules.json beside a folder's config.json",
        ),
    ];
    match unsupported.iter().find(|(is_found, _)| *is_found) {
        Some((_, what)) => Err(Error::UnsupportedModel(format!(
            "{} with {what}",
            config.architecture
        ))),
        None => Ok(()),
    }
}
