//! BERT (Devlin et al. 2018, <https://arxiv.org/abs/1810.04805>), the encoder of MiniLM, BGE, GTE and E5: learned
//! positions, norms of the residual stream itself, attention without a mask.

use super::architecture::{Architecture, Names};
use crate::{
    Result,
    model::config::{
        Activation, ConfigJson, FeedForwardKind, Keys, ModelConfig, NormKind, NormPlaces, Positions,
    },
};

pub const ARCHITECTURE: Architecture = Architecture {
    name: "bert",
    model_types: &["bert"],
    configure,
    read_json,
    json_numbers: &[("layer_norm_eps", "attention.layer_norm_epsilon")],
    tensors: &[TENSORS],
    // Checkpoints hold the body alone or as part of a larger model.
    optional_prefix: "bert.",
    ..Architecture::LLAMA_LIKE
};

const TENSORS: Names = &[
    ("embeddings.word_embeddings", "token_embd"),
    ("embeddings.position_embeddings", "position_embd"),
    ("embeddings.token_type_embeddings", "token_types"),
    ("embeddings.LayerNorm", "token_embd_norm"),
    ("encoder.layer.*.attention.self.query", "blk.*.attn_q"),
    ("encoder.layer.*.attention.self.key", "blk.*.attn_k"),
    ("encoder.layer.*.attention.self.value", "blk.*.attn_v"),
    (
        "encoder.layer.*.attention.output.dense",
        "blk.*.attn_output",
    ),
    (
        "encoder.layer.*.attention.output.LayerNorm",
        "blk.*.attn_output_norm",
    ),
    ("encoder.layer.*.intermediate.dense", "blk.*.ffn_up"),
    ("encoder.layer.*.output.dense", "blk.*.ffn_down"),
    (
        "encoder.layer.*.output.LayerNorm",
        "blk.*.layer_output_norm",
    ),
    // The head of a classifier; in that of RoBERTa both layers are named after it.
    ("pooler.dense", "cls"),
    ("classifier", "cls.output"),
    ("classifier.dense", "cls"),
    ("classifier.out_proj", "cls.output"),
];

fn configure(keys: &Keys, config: &mut ModelConfig) -> Result<()> {
    configure_encoder(keys, config)?;
    config.positions = Positions::Learned;
    config.feed_forward = FeedForwardKind::Plain(Activation::Gelu);
    Ok(())
}

/// The configuration that the encoders after BERT have in common.
pub fn configure_encoder(keys: &Keys, config: &mut ModelConfig) -> Result<()> {
    if keys.bool("attention.causal")? == Some(true) {
        return Err(keys.unsupported("a causal mask"));
    }
    config.is_causal = false;
    config.norm = NormKind::Layer;
    config.norm_places = NormPlaces::ON_SUM;
    config.has_embedding_norm = true;
    config.has_output_norm = false;
    Ok(())
}

pub fn read_json(json: &mut ConfigJson) -> Result<()> {
    let key = "position_embedding_type";
    json.require(key, json.str(key)?.is_none_or(|it| it == "absolute"))?;
    // Decoders and models with cross-attention.
    json.require("is_decoder", json.bool("is_decoder")? != Some(true))
}
