//! Nomic Embed (Nussbaum et al. 2024, <https://arxiv.org/abs/2402.01613>): a BERT with rotary positions and gated
//! feed-forward layers, without biases of matrices. Its `config.json` has the member names of GPT-2.

use super::{
    architecture::{Architecture, Names},
    bert,
};
use crate::{
    Result,
    model::config::{Activation, ConfigJson, FeedForwardKind, Keys, ModelConfig},
};

pub const ARCHITECTURE: Architecture = Architecture {
    name: "nomic-bert",
    model_types: &["nomic_bert"],
    configure,
    read_json,
    json_numbers: &[("layer_norm_epsilon", "attention.layer_norm_epsilon")],
    tensors: &[TENSORS],
    optional_prefix: bert::ARCHITECTURE.optional_prefix,
    ..Architecture::LLAMA_LIKE
};

const TENSORS: Names = &[
    ("embeddings.word_embeddings", "token_embd"),
    ("embeddings.token_type_embeddings", "token_types"),
    ("emb_ln", "token_embd_norm"),
    ("encoder.layers.*.attn.Wqkv", "blk.*.attn_qkv"),
    ("encoder.layers.*.attn.out_proj", "blk.*.attn_output"),
    ("encoder.layers.*.norm1", "blk.*.attn_output_norm"),
    // The model multiplies the first one with the activation of the second one.
    ("encoder.layers.*.mlp.fc11", "blk.*.ffn_up"),
    ("encoder.layers.*.mlp.fc12", "blk.*.ffn_gate"),
    ("encoder.layers.*.mlp.fc2", "blk.*.ffn_down"),
    ("encoder.layers.*.norm2", "blk.*.layer_output_norm"),
];

/// `max_trained_positions` of a `config.json` that does not state it.
const DEFAULT_CONTEXT_TOKENS: u32 = 2048;

fn configure(keys: &Keys, config: &mut ModelConfig) -> Result<()> {
    bert::configure_encoder(keys, config)?;
    config.feed_forward = FeedForwardKind::Gated(Activation::Silu);
    Ok(())
}

fn read_json(json: &mut ConfigJson) -> Result<()> {
    // Members whose absence means another value.
    for key in ["qkv_proj_bias", "mlp_fc1_bias", "mlp_fc2_bias"] {
        json.require(key, json.bool(key)? == Some(false))?;
    }
    let key = "rotary_emb_fraction";
    json.require(key, json.number(key)? == Some(1.0))?;
    let key = "activation_function";
    json.require(key, json.str(key)? == Some("swiglu"))?;
    for key in [
        "causal",
        "parallel_block",
        "prenorm",
        "rotary_emb_interleaved",
        "scale_attn_by_inverse_layer_idx",
        "use_rms_norm",
    ] {
        json.require(key, json.bool(key)? != Some(true))?;
    }
    let key = "scale_attn_weights";
    json.require(key, json.bool(key)? != Some(false))?;
    let key = "rotary_emb_scale_base";
    json.require(key, json.get(key).is_none())?;
    // Nomic Embed 2 has experts.
    let key = "moe_every_n_layers";
    json.require(key, json.number(key)?.is_none_or(|it| it <= 0.0))?;
    for (own, llama) in [
        ("n_layer", "num_hidden_layers"),
        ("n_embd", "hidden_size"),
        ("n_inner", "intermediate_size"),
        ("n_head", "num_attention_heads"),
        ("rotary_emb_base", "rope_theta"),
    ] {
        json.rename(own, llama);
    }
    json.set("hidden_act", "silu");
    // `n_positions` is longer, and `rotary_scaling_factor` changes the frequencies of inputs that are longer than
    // those of the training. They are refused.
    let trained = json.size("max_trained_positions")?;
    json.set(
        "max_position_embeddings",
        trained.unwrap_or(DEFAULT_CONTEXT_TOKENS),
    );
    Ok(())
}
