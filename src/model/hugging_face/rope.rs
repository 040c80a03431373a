//! Rotary embeddings of `config.json`: base and scaling as metadata, Llama 3's and LongRoPE's scaling as
//! factors of each pair. The formulas of the factors are those of transformers'
//! `modeling_rope_utils.py`.

use std::f64::consts::TAU;

use super::config::{Config, missing};
use crate::{
    Result,
    weights::{Metadata, MetadataValue},
};

/// What `config.json` says of rotations, in its older or its newer form.
struct Rope {
    base: Option<f64>,
    /// Of layers with a window.
    local_base: Option<f64>,
    /// `default` without scaling.
    kind: String,
    /// Of each head.
    rotated_part: f64,
    scaling: Option<Config>,
}

impl Rope {
    fn of(config: &Config) -> Result<Rope> {
        let newer = config.object("rope_parameters")?;
        let nested = |key: &str| match &newer {
            Some(newer) => newer.object(key),
            None => Ok(None),
        };
        let (full, local) = (nested("full_attention")?, nested("sliding_attention")?);
        let scaling = match full.or(newer) {
            Some(scaling) => Some(scaling),
            None => config.object("rope_scaling")?,
        };
        let within = |object: &Option<Config>, key: &str| match object {
            Some(object) => object.number(key),
            None => Ok(None),
        };
        let kind = match &scaling {
            None => None,
            Some(scaling) => scaling.str("rope_type")?.or(scaling.str("type")?),
        };
        Ok(Rope {
            base: config
                .number("rope_theta")?
                .or(within(&scaling, "rope_theta")?),
            local_base: config
                .number("rope_local_base_freq")?
                .or(within(&local, "rope_theta")?),
            rotated_part: config
                .number("partial_rotary_factor")?
                .or(within(&scaling, "partial_rotary_factor")?)
                .unwrap_or(1.0),
            kind: kind.unwrap_or("default").to_owned(),
            scaling,
        })
    }
}

/// Tokens of the training's context.
fn original_tokens(config: &Config, scaling: &Config) -> Result<u32> {
    let key = "original_max_position_embeddings";
    match scaling.size(key)?.or(config.size(key)?) {
        Some(tokens) => Ok(tokens),
        None => config.needed("max_position_embeddings"),
    }
}

fn needed(scaling: &Config, key: &str) -> Result<f64> {
    scaling.number(key)?.ok_or_else(|| missing(key))
}

/// Adds the keys of the rotation.
pub fn add(metadata: &mut Metadata, architecture: &str, config: &Config) -> Result<()> {
    let rope = Rope::of(config)?;
    let mut add = |key: &str, value: MetadataValue| {
        metadata.insert(format!("{architecture}.rope.{key}"), value);
    };
    let number = |value: f64| MetadataValue::F32(value as f32);
    add("neox", true.into());
    add("freq_base", number(rope.base.unwrap_or(10_000.0)));
    if let Some(base) = rope.local_base {
        add("freq_base_swa", number(base));
    }
    let part = rope.rotated_part;
    let dims = f64::from(config.head_dim()?) * part;
    add("dimension_count", (dims as u32).into());
    let Some(scaling) = &rope.scaling else {
        return Ok(());
    };
    match &*rope.kind {
        "default" | "llama3" => {}
        "longrope" | "su" => {
            let original = original_tokens(config, scaling)?;
            let tokens = f64::from(config.needed("max_position_embeddings")?);
            let grown = tokens / f64::from(original);
            let magnitude = if grown > 1.0 {
                (1.0 + grown.ln() / f64::from(original).ln()).sqrt()
            } else {
                1.0
            };
            let magnitude = scaling.number("attention_factor")?.unwrap_or(magnitude);
            add("scaling.type", "longrope".into());
            add("scaling.original_context_length", original.into());
            add("scaling.attn_factor", number(magnitude));
        }
        "yarn" => {
            let factor = needed(scaling, "factor")?;
            add("scaling.type", "yarn".into());
            add("scaling.factor", number(factor));
            let original = original_tokens(config, scaling)?;
            add("scaling.original_context_length", original.into());
            for (key, ours) in [
                ("beta_fast", "scaling.yarn_beta_fast"),
                ("beta_slow", "scaling.yarn_beta_slow"),
            ] {
                if let Some(turns) = scaling.number(key)? {
                    add(ours, number(turns));
                }
            }
            if let Some(magnitude) = scaling.number("attention_factor")? {
                // The key multiplies what the factor alone gives.
                add(
                    "scaling.attn_factor",
                    number(magnitude / (0.1 * factor.ln() + 1.0)),
                );
            }
        }
        // Of another kind the configuration says that it cannot be run.
        kind => {
            add("scaling.type", kind.into());
            add(
                "scaling.factor",
                number(needed(scaling, "factor").unwrap_or(1.0)),
            );
        }
    }
    Ok(())
}

/// Divisors of the frequencies of each pair, by the tensor that GGUF files have them in.
pub fn factors(config: &Config) -> Result<Vec<(&'static str, Vec<f32>)>> {
    let rope = Rope::of(config)?;
    let Some(scaling) = &rope.scaling else {
        return Ok(Vec::new());
    };
    match &*rope.kind {
        "longrope" | "su" => {
            let factors = |key: &str| scaling.numbers(key)?.ok_or_else(|| missing(key));
            Ok(vec![
                ("rope_factors_long.weight", factors("long_factor")?),
                ("rope_factors_short.weight", factors("short_factor")?),
            ])
        }
        "llama3" => {
            let (dims, base) = (config.head_dim()?, rope.base.unwrap_or(10_000.0));
            let original = f64::from(original_tokens(config, scaling)?);
            let factor = needed(scaling, "factor")?;
            let low = needed(scaling, "low_freq_factor")?;
            let high = needed(scaling, "high_freq_factor")?;
            let pairs = (0..dims).step_by(2);
            let factors = pairs.map(|i| {
                let wave_tokens = TAU * base.powf(f64::from(i) / f64::from(dims));
                let kept = (original / wave_tokens - low) / (high - low);
                let kept = kept.clamp(0.0, 1.0);
                ((1.0 - kept) / factor + kept).recip() as f32
            });
            Ok(vec![("rope_freqs.weight", factors.collect())])
        }
        _ => Ok(Vec::new()),
    }
}
