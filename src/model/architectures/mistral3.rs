//! Ministral 3 (Mistral AI 2025): a Llama with YaRN. Queries beyond the original context have a factor that grows with their
//! position.

use super::{architecture::Architecture, llama};
use crate::{
    Result,
    model::config::{ConfigJson, Keys, ModelConfig, Scaling, Temperature},
};

pub const ARCHITECTURE: Architecture = Architecture {
    name: "mistral3",
    model_types: &["ministral3"],
    configure,
    read_json,
    json_numbers: &[(TEMPERATURE, "attention.temperature_scale")],
    other_parts: &[
        "vision_tower.",
        "multi_modal_projector.",
        "model.vision_tower.",
        "model.multi_modal_projector.",
    ],
    ..llama::ARCHITECTURE
};

const TEMPERATURE: &str = "llama_4_scaling_beta";

fn configure(keys: &Keys, config: &mut ModelConfig) -> Result<()> {
    llama::configure(keys, config)?;
    let Some(growth) = keys.positive("attention.temperature_scale")? else {
        return Ok(());
    };
    let Some(Scaling::Yarn {
        original_tokens, ..
    }) = config.rope().map(|rope| rope.scaling)
    else {
        return Err(keys.unsupported("attention.temperature_scale without YaRN"));
    };
    for layer in &mut config.layers {
        layer.temperature = Some(Temperature {
            tokens: original_tokens,
            offset: 0,
            growth,
        });
    }
    Ok(())
}

fn read_json(json: &mut ConfigJson) -> Result<()> {
    let rope = json.object("rope_parameters")?;
    if let Some(beta) = rope
        .map(|rope| rope.number(TEMPERATURE))
        .transpose()?
        .flatten()
        && beta > 0.0
    {
        json.set(TEMPERATURE, beta);
    }
    Ok(())
}
