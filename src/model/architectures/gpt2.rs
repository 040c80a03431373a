//! GPT-2 (Radford et al. 2019): learned positions, layer norms, a feed-forward layer without a gate.

use super::architecture::{Architecture, Names};
use crate::{
    Result,
    model::config::{
        Activation, ConfigJson, FeedForwardKind, Keys, ModelConfig, NormKind, Positions,
    },
};

pub const ARCHITECTURE: Architecture = Architecture {
    name: "gpt2",
    model_types: &["gpt2"],
    configure,
    read_json,
    json_numbers: &[("layer_norm_epsilon", "attention.layer_norm_epsilon")],
    tensors: &[TENSORS],
    // Checkpoints hold the body alone or the whole model.
    optional_prefix: "transformer.",
    transposes_layers: true,
    ..Architecture::LLAMA_LIKE
};

const TENSORS: Names = &[
    ("wte", "token_embd"),
    ("wpe", "position_embd"),
    ("ln_f", "output_norm"),
    ("h.*.ln_1", "blk.*.attn_norm"),
    ("h.*.attn.c_attn", "blk.*.attn_qkv"),
    ("h.*.attn.c_proj", "blk.*.attn_output"),
    ("h.*.ln_2", "blk.*.ffn_norm"),
    ("h.*.mlp.c_fc", "blk.*.ffn_up"),
    ("h.*.mlp.c_proj", "blk.*.ffn_down"),
];

fn configure(_keys: &Keys, config: &mut ModelConfig) -> Result<()> {
    config.norm = NormKind::Layer;
    config.positions = Positions::Learned;
    config.feed_forward = FeedForwardKind::Plain(Activation::Gelu);
    Ok(())
}

fn read_json(json: &mut ConfigJson) -> Result<()> {
    for (own, llama) in [
        ("n_layer", "num_hidden_layers"),
        ("n_positions", "max_position_embeddings"),
        ("n_embd", "hidden_size"),
        ("n_inner", "intermediate_size"),
        ("n_head", "num_attention_heads"),
        ("activation_function", "hidden_act"),
    ] {
        json.rename(own, llama);
    }
    let width = u64::from(json.needed("hidden_size")?);
    json.add("intermediate_size", 4 * width);
    for (key, supported) in [
        ("scale_attn_weights", true),
        ("scale_attn_by_inverse_layer_idx", false),
    ] {
        json.require(key, json.bool(key)?.is_none_or(|it| it == supported))?;
    }
    Ok(())
}
