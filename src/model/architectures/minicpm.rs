//! MiniCPM (Hu et al. 2024, <https://arxiv.org/abs/2404.06395>): a Llama with factors of embeddings, residuals and logits that
//! follow from its depth and width.

use super::{
    architecture::{AddKey, Architecture},
    llama,
};
use crate::{
    Result,
    model::config::{ConfigJson, Keys, ModelConfig, RopePairs},
};

pub const ARCHITECTURE: Architecture = Architecture {
    name: "minicpm",
    model_types: &["minicpm"],
    configure,
    gguf_pairs: RopePairs::Adjacent,
    read_json,
    add_keys,
    json_numbers: &[("scale_emb", "embedding_scale")],
    ..Architecture::LLAMA_LIKE
};

/// The factor of embeddings of files that do not state it.
const EMBEDDING_SCALE: f32 = 12.0;
/// Their factor of residuals, times the root of the number of layers.
const DEPTH_SCALE: f32 = 1.4;
/// Their width for which logits are not divided.
const BASE_WIDTH: f32 = 256.0;

fn configure(keys: &Keys, config: &mut ModelConfig) -> Result<()> {
    llama::configure(keys, config)?;
    let by_depth = DEPTH_SCALE / (config.layers.len() as f32).sqrt();
    let by_width = config.dim as f32 / BASE_WIDTH;
    config.embedding_scale = keys.positive_or("embedding_scale", EMBEDDING_SCALE)?;
    config.residual_scale = keys.positive_or("residual_scale", by_depth)?;
    // Files hold the divisor of logits.
    config.logit_scale = keys.positive_or("logit_scale", by_width)?.recip();
    Ok(())
}

fn read_json(json: &mut ConfigJson) -> Result<()> {
    let experts = json.size("num_experts")?.unwrap_or(0);
    json.require("num_experts", experts == 0)
}

fn add_keys(json: &ConfigJson, add: AddKey) -> Result<()> {
    let layers = f64::from(json.needed("num_hidden_layers")?);
    if let Some(depth) = json.number("scale_depth")? {
        add("residual_scale", ((depth / layers.sqrt()) as f32).into());
    }
    if let Some(base) = json.number("dim_model_base")? {
        let width = f64::from(json.needed("hidden_size")?);
        add("logit_scale", ((width / base) as f32).into());
    }
    Ok(())
}
