//! Nanbeige (Yang et al. 2026): a Llama whose layers are passed several times. Each pass has keys and values of its own, and
//! the last norm is applied between passes, too.

use super::{
    architecture::{AddKey, Architecture},
    llama,
};
use crate::{
    Result,
    model::config::{ConfigJson, Keys, ModelConfig, Passes, llama_like::MAX_LAYERS},
};

pub const ARCHITECTURE: Architecture = Architecture {
    name: "nanbeige",
    model_types: &["nanbeige"],
    configure,
    add_keys,
    json_sizes: &[("num_loops", PASSES)],
    ..llama::ARCHITECTURE
};

const PASSES: &str = "num_loops";
const WITHOUT_NORM: &str = "skip_loop_final_norm";

fn add_keys(json: &ConfigJson, add: AddKey) -> Result<()> {
    let without_norm = json.bool(WITHOUT_NORM)?.unwrap_or(false);
    add(WITHOUT_NORM, without_norm.into());
    Ok(())
}

fn configure(keys: &Keys, config: &mut ModelConfig) -> Result<()> {
    llama::configure(keys, config)?;
    let layers = config.layers.len();
    let passes = keys.size_or(PASSES, 1)?;
    if layers * passes > MAX_LAYERS {
        return Err(keys.unsupported(&format!("{passes} passes of {layers} layers")));
    }
    config.passes = Passes {
        layers,
        has_norm: keys.bool(WITHOUT_NORM)? != Some(true),
    };
    config.layers = config.layers.repeat(passes);
    Ok(())
}
