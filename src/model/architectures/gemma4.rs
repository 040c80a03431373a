//! Gemma 4 (Gemma Team 2026): layers with a sliding window and global ones have heads of different lengths, and global
//! ones rotate a quarter of the pairs. Values are normalized, too, and may be the keys. The last layers may use the keys
//! and values of earlier ones; each layer may have a vector per token.

use super::{architecture::Architecture, gemma, gemma4_folder as folder, shared::set_experts};
use crate::{
    Error, Result,
    model::config::{
        FeedForwardKind, Keys, LayerRope, LayerSizes, ModelConfig, NormPlaces, QkNorm,
    },
};

pub const ARCHITECTURE: Architecture = Architecture {
    name: "gemma4",
    model_types: &["gemma4_text"],
    configure,
    read_json: folder::read_json,
    add_keys: folder::add_keys,
    json_sizes: folder::SIZES,
    json_numbers: folder::NUMBERS,
    tensors: &[folder::TENSORS],
    parameters: |_| folder::PARAMETERS,
    other_parts: folder::OTHER_PARTS,
    ..Architecture::LLAMA_LIKE
};

fn configure(keys: &Keys, config: &mut ModelConfig) -> Result<()> {
    gemma::configure(keys, config)?;
    config.norm_places = NormPlaces::BOTH;
    config.qk_norm = QkNorm::Heads;
    config.has_value_norm = true;
    config.has_layer_scale = true;
    config.attention_scale = Some(1.0);
    config.logit_soft_cap = keys.positive("final_logit_softcapping")?;
    let inputs = keys.size_or_zero("embedding_length_per_layer_input")?;
    config.layer_input_dim = inputs.unwrap_or(0);
    if keys.size_or_zero("expert_count")?.is_some() {
        set_experts(keys, config, true)?;
        if let FeedForwardKind::Experts(experts) = config.feed_forward {
            let width = keys.size("expert_feed_forward_length")?;
            config.feed_forward = FeedForwardKind::Mixed(experts, width);
        }
    }
    set_layers(keys, config)?;
    share_keys(keys, config)
}

/// Windows, rotary embedding and head lengths.
fn set_layers(keys: &Keys, config: &mut ModelConfig) -> Result<()> {
    let layers = config.layers.len();
    let key = "attention.sliding_window_pattern";
    let is_local = keys.layer_flags(key, layers)?;
    let is_local = is_local
        .ok_or_else(|| Error::InvalidModelFile(format!("{} is missing", keys.name(key))))?;
    let local_dim = keys.size_or("attention.key_length_swa", config.head_dim)?;
    if keys.size_or("attention.value_length_swa", local_dim)? != local_dim {
        return Err(keys.unsupported("heads of different key and value lengths"));
    }
    config.set_windows(Some(keys.size("attention.sliding_window")?), |i| {
        is_local[i]
    });
    let local_base = keys.positive_or("rope.freq_base_swa", 10_000.0)?;
    if let Some(rope) = config.rope_mut() {
        rope.local_base = Some(local_base);
        rope.local_dims = keys.size_or("rope.dimension_count_swa", local_dim)?;
    }
    for i in (0..layers).filter(|i| is_local[*i]) {
        let sizes = config.sizes(i);
        config.layers[i].rope = LayerRope::Local;
        config.layers[i].sizes = Some(LayerSizes {
            head_dim: local_dim,
            ..sizes
        });
    }
    Ok(())
}

/// The last layers use the keys and values of the last earlier layer of their kind that has its own.
fn share_keys(keys: &Keys, config: &mut ModelConfig) -> Result<()> {
    let shared = keys
        .size_or_zero("attention.shared_kv_layers")?
        .unwrap_or(0);
    let layers = config.layers.len();
    let own = layers.saturating_sub(shared);
    for layer in own..layers {
        let kind = config.layers[layer].rope;
        let earlier = (0..own).rev().find(|it| config.layers[*it].rope == kind);
        let earlier = earlier.ok_or_else(|| {
            Error::InvalidModelFile(format!("layer {layer} shares the keys of no layer"))
        })?;
        config.layers[layer].kv_layer = Some(earlier);
    }
    Ok(())
}
