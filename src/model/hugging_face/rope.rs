//! Rotary embedding in `config.json`: base and scaling as metadata, the scalings of Llama 3 and LongRoPE
//! as tensors of factors. The formulas of the factors are those of transformers'
//! `modeling_rope_utils.py`.

use std::f64::consts::TAU;

use crate::{
    Result,
    model::{
        architectures::Architecture,
        config::{
            ConfigJson, RopePairs,
            json::missing,
            rope::{DEFAULT_BASE, ROPE_HALVES, YARN_ROUNDS},
        },
    },
    weights::{Metadata, MetadataValue},
};

/// The members of `config.json` about rotary embedding, in their older or their newer form.
struct RopeJson {
    base: Option<f64>,
    /// Base of layers with a sliding window.
    local_base: Option<f64>,
    /// `default` without scaling.
    kind: String,
    /// Fraction of each head that is rotated.
    rotated_fraction: f64,
    scaling: Option<ConfigJson>,
}

impl RopeJson {
    fn read(config: &ConfigJson) -> Result<RopeJson> {
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
        let within = |object: &Option<ConfigJson>, key: &str| match object {
            Some(object) => object.number(key),
            None => Ok(None),
        };
        let kind = match &scaling {
            None => None,
            Some(scaling) => scaling.str("rope_type")?.or(scaling.str("type")?),
        };
        Ok(RopeJson {
            base: config
                .number("rope_theta")?
                .or(within(&scaling, "rope_theta")?),
            local_base: config
                .number("rope_local_base_freq")?
                .or(within(&local, "rope_theta")?),
            rotated_fraction: config
                .number("partial_rotary_factor")?
                .or(within(&scaling, "partial_rotary_factor")?)
                .unwrap_or(1.0),
            kind: kind.unwrap_or("default").to_owned(),
            scaling,
        })
    }
}

/// Context of the training, in tokens.
fn original_tokens(config: &ConfigJson, scaling: &ConfigJson) -> Result<u32> {
    let key = "original_max_position_embeddings";
    match scaling.size(key)?.or(config.size(key)?) {
        Some(tokens) => Ok(tokens),
        None => config.needed("max_position_embeddings"),
    }
}

fn needed(scaling: &ConfigJson, key: &str) -> Result<f64> {
    scaling.number(key)?.ok_or_else(|| missing(key))
}

/// Adds the metadata keys of rotary embedding.
pub fn add(
    metadata: &mut Metadata,
    architecture: &Architecture,
    config: &ConfigJson,
) -> Result<()> {
    let rope = RopeJson::read(config)?;
    let mut add = |key: &str, value: MetadataValue| {
        metadata.insert(format!("{}.{key}", architecture.name), value);
    };
    let in_halves = architecture.checkpoint_pairs == RopePairs::Halves;
    add(ROPE_HALVES, in_halves.into());
    add(
        "rope.freq_base",
        number(rope.base.unwrap_or(DEFAULT_BASE.into())),
    );
    if let Some(base) = rope.local_base {
        add("rope.freq_base_swa", number(base));
    }
    // Here the fraction is that of pairs which turn at all.
    let fraction = if rope.kind == "proportional" {
        1.0
    } else {
        rope.rotated_fraction
    };
    let dims = f64::from(config.head_dim()?) * fraction;
    add("rope.dimension_count", (dims as u32).into());
    let Some(scaling) = &rope.scaling else {
        return Ok(());
    };
    if let Some(sections) = scaling.numbers("mrope_section")? {
        let sections: Vec<u32> = sections.into_iter().map(|it| it as u32).collect();
        add("rope.dimension_sections", sections.into());
    }
    add_scaling(&rope.kind, scaling, config, add)
}

fn number(value: f64) -> MetadataValue {
    MetadataValue::F32(value as f32)
}

/// Adds the keys of a scaling of this kind. `add` takes keys without the architecture.
fn add_scaling(
    kind: &str,
    scaling: &ConfigJson,
    config: &ConfigJson,
    mut add: impl FnMut(&str, MetadataValue),
) -> Result<()> {
    match kind {
        "default" | "llama3" | "mrope" | "proportional" => {}
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
            add("rope.scaling.type", "longrope".into());
            add("rope.scaling.original_context_length", original.into());
            add("rope.scaling.attn_factor", number(magnitude));
        }
        "yarn" => {
            let factor = needed(scaling, "factor")?;
            add("rope.scaling.type", "yarn".into());
            add("rope.scaling.factor", number(factor));
            let original = original_tokens(config, scaling)?;
            add("rope.scaling.original_context_length", original.into());
            for (member, key) in [
                ("beta_fast", "rope.scaling.yarn_beta_fast"),
                ("beta_slow", "rope.scaling.yarn_beta_slow"),
            ] {
                if let Some(turns) = scaling.number(member)? {
                    add(key, number(turns));
                }
            }
            if scaling.bool("truncate")? == Some(false) {
                add(YARN_ROUNDS, false.into());
            }
            let grown = |multiplier: f64| 0.1 * multiplier * factor.max(1.0).ln() + 1.0;
            let of_scales = match (scaling.number("mscale")?, scaling.number("mscale_all_dim")?) {
                (Some(one), Some(all)) if one != 0.0 && all != 0.0 => Some(grown(one) / grown(all)),
                _ => None,
            };
            if let Some(magnitude) = scaling.number("attention_factor")?.or(of_scales) {
                // The key is a factor of the magnitude that follows from `factor`.
                add(
                    "rope.scaling.attn_factor",
                    number(magnitude / (0.1 * factor.ln() + 1.0)),
                );
            }
        }
        // `Scaling::read` refuses other kinds by name.
        kind => {
            add("rope.scaling.type", kind.into());
            add(
                "rope.scaling.factor",
                number(needed(scaling, "factor").unwrap_or(1.0)),
            );
        }
    }
    Ok(())
}

/// Divisors of the frequencies of each pair, by the name of the tensor that holds them in GGUF files.
pub fn factors(config: &ConfigJson) -> Result<Vec<(&'static str, Vec<f32>)>> {
    let rope = RopeJson::read(config)?;
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
            let (dims, base) = (config.head_dim()?, rope.base.unwrap_or(DEFAULT_BASE.into()));
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
        "proportional" => {
            let pairs = config.head_dim()? / 2;
            let turning = (rope.rotated_fraction * f64::from(pairs)) as u32;
            // Divisors that leave no angle.
            let factors = (0..pairs).map(|pair| if pair < turning { 1.0 } else { 1e30 });
            Ok(vec![("rope_freqs.weight", factors.collect())])
        }
        _ => Ok(Vec::new()),
    }
}
