//! The configuration that every architecture starts from: a Llama without rope scaling. Reads the metadata
//! keys that architectures share, and rejects configurations that no kernel computes.

use super::{
    embedding::EmbeddingConfig,
    keys::{Keys, missing},
    model_config::{
        FeedForwardKind, LayerConfig, LayerRope, LayerSizes, ModelConfig, NormPlaces, Positions,
    },
    plain::PlainModel,
    rope::Rope,
};
use crate::{
    Error, Result,
    ops::{
        Activation, NormKind,
        route_experts::{MAX_EXPERTS, MAX_USED},
    },
};

/// Metadata key of the tokenizer's number of tokens, for files whose metadata do not list them.
pub const TOKEN_COUNT: &str = "tokenizer.token_count";

/// More than real models have. A hostile header must not make the loader reserve memory.
pub const MAX_LAYERS: usize = 1024;
const MAX_HEADS: usize = 4096;
/// Latents have 576 in real models.
const MAX_HEAD_DIM: usize = 640;

/// The hyperparameters of a Llama without rope scaling, whose embedding table has `vocab` rows.
///
/// # Errors
/// [`Error::InvalidModelFile`] for keys that are missing, mistyped or out of range,
/// [`Error::UnsupportedModel`] for values that no kernel computes. Both name the key.
pub fn read(keys: &Keys, vocab: usize) -> Result<ModelConfig> {
    let dim = keys.size("embedding_length")?;
    let heads = keys.size("attention.head_count")?;
    let layers = keys.size("block_count")?;
    if layers > MAX_LAYERS {
        return Err(keys.unsupported(&format!("{layers} layers")));
    }
    let kv_heads = kv_heads(keys, heads, layers)?;
    let most = |sizes: &[usize]| sizes.iter().copied().max().unwrap_or(1);
    let head_dim = keys.size_or("attention.key_length", dim / heads)?;
    let value_dim = keys.size_or("attention.value_length", head_dim)?;
    // Heads of latents may have values of another length.
    if value_dim != head_dim && keys.size_or_zero("attention.kv_lora_rank")?.is_none() {
        return Err(keys.unsupported("heads of different key and value lengths"));
    }
    let token_ids = match keys.metadata().strings("tokenizer.ggml.tokens")? {
        Some(tokens) => Some(tokens.len()),
        None => keys.metadata().usize(TOKEN_COUNT)?,
    };
    let ffn_dims = ffn_dims(keys, layers)?;
    let plain = PlainModel {
        architecture: keys.architecture().to_owned(),
        dim,
        ffn_dim: most(&ffn_dims),
        heads,
        kv_heads: most(&kv_heads),
        head_dim,
        vocab,
        token_ids: token_ids.unwrap_or(vocab),
        context_tokens: keys.size("context_length")?,
        layers: layer_configs(head_dim, &kv_heads, &ffn_dims),
        norm: NormKind::Rms,
        norm_eps: norm_eps(keys)?,
        positions: Positions::Rotary(Rope::read(keys, head_dim)?),
        feed_forward: FeedForwardKind::Gated(Activation::Silu),
        is_causal: true,
    };
    Ok(ModelConfig {
        attention_scale: keys.positive("attention.scale")?,
        embedding: EmbeddingConfig::read(keys)?,
        ..plain.config()
    })
}

/// The KV heads of each layer.
fn kv_heads(keys: &Keys, heads: usize, layers: usize) -> Result<Vec<usize>> {
    let most = keys.largest_or("attention.head_count_kv", heads)?;
    Ok(match keys.layer_sizes("attention.head_count_kv", layers)? {
        // A layer without KV heads has no attention.
        Some(sizes) => sizes
            .into_iter()
            .map(|it| if it == 0 { most } else { it })
            .collect(),
        None => vec![most; layers],
    })
}

/// The width of each layer's feed-forward network, or of one expert.
fn ffn_dims(keys: &Keys, layers: usize) -> Result<Vec<usize>> {
    let ffn_dims = keys.layer_sizes("feed_forward_length", layers)?;
    match (ffn_dims, keys.size_if("expert_feed_forward_length")?) {
        (Some(ffn_dims), _) if !ffn_dims.contains(&0) => Ok(ffn_dims),
        (None, Some(width)) => Ok(vec![width; layers]),
        _ => Err(missing(&keys.name("feed_forward_length"))),
    }
}

fn norm_eps(keys: &Keys) -> Result<f32> {
    match keys.positive("attention.layer_norm_rms_epsilon")? {
        Some(eps) => Ok(eps),
        None => keys
            .positive("attention.layer_norm_epsilon")?
            .ok_or_else(|| missing(&keys.name("attention.layer_norm_rms_epsilon"))),
    }
}

/// The layers. They have sizes of their own only if the sizes differ between layers.
fn layer_configs(head_dim: usize, kv_heads: &[usize], ffn_dims: &[usize]) -> Vec<LayerConfig> {
    let is_even = |sizes: &[usize]| sizes.iter().all(|size| *size == sizes[0]);
    let is_even = is_even(kv_heads) && is_even(ffn_dims);
    let sizes = kv_heads.iter().zip(ffn_dims);
    let layers = sizes.map(|(kv_heads, ffn_dim)| LayerConfig {
        sizes: (!is_even).then_some(LayerSizes {
            kv_heads: *kv_heads,
            head_dim,
            ffn_dim: *ffn_dim,
        }),
        ..LayerConfig::PLAIN
    });
    layers.collect()
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
    match uncomputed_part(config) {
        Some(part) => Err(Error::UnsupportedModel(format!(
            "{} with {part}",
            config.architecture
        ))),
        None => Ok(()),
    }
}

/// A part of the configuration that no kernel computes.
fn uncomputed_part(config: &ModelConfig) -> Option<&'static str> {
    let rope_dims = |layer: usize| match (config.rope(), config.layers[layer].rope) {
        (None, _) | (_, LayerRope::None) => 0,
        (Some(rope), LayerRope::Global) => rope.dims,
        (Some(rope), LayerRope::Local) => rope.local_dims,
    };
    let has_experts = matches!(config.feed_forward, FeedForwardKind::Experts(_));
    let experts = config.feed_forward.experts();
    let sizes = || (0..config.layers.len()).map(|layer| config.sizes(layer));
    let parts = [
        (
            has_experts && config.norm_places != NormPlaces::BEFORE,
            "experts whose outputs are normalized",
        ),
        (
            experts.is_some_and(|it| it.count > MAX_EXPERTS || it.used > MAX_USED),
            "more than 1,024 experts, or more than 16 of a token",
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
            sizes().any(|it| !config.heads.is_multiple_of(it.kv_heads)),
            "a number of heads that is no multiple of the KV heads",
        ),
        (
            sizes().any(|it| !it.head_dim.is_multiple_of(8) || it.head_dim > MAX_HEAD_DIM),
            "a head length that is no multiple of 8 up to 640",
        ),
        (
            (0..config.layers.len()).any(|layer| {
                let dims = rope_dims(layer);
                !dims.is_multiple_of(8) || dims > config.sizes(layer).head_dim
            }),
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
    let mut found = parts.iter().filter(|(is_found, _)| *is_found);
    found.next().map(|(_, part)| *part)
}
