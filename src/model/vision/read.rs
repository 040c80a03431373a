//! Reads the metadata of an `mmproj` file as llama.cpp writes it, `clip.vision.*`, as far as all families have it.

use super::config::{ARCHITECTURE, LearnedPositions, TowerKind, VisionConfig};
use crate::{
    Error, Result,
    model::config::{
        Activation, FeedForwardKind, Keys, LayerConfig, LayerRope, ModelConfig, NormKind,
        PlainModel, Positions,
    },
    weights::Metadata,
};

/// More than real towers have. A hostile header must not make the loader reserve memory.
const MAX_LAYERS: usize = 256;
/// The maximum number of patches of an image; real towers have 4,096 at most.
const MAX_PATCHES: usize = 1 << 14;

/// The hyperparameters, but for what only the family has.
///
/// # Errors
/// [`Error::UnsupportedModel`] for values that this build does not support, [`Error::InvalidModelFile`] for missing,
/// mistyped or contradictory values. The text names the key.
pub fn read(keys: &Keys, kind: &'static str, tower: &'static TowerKind) -> Result<VisionConfig> {
    let metadata = keys.metadata();
    let patch_size = keys.size("patch_size")?;
    let image_size = match tower.positions {
        // Converters make up the key.
        LearnedPositions::None | LearnedPositions::PerAxis => patch_size,
        _ => keys.size("image_size")?,
    };
    if !image_size.is_multiple_of(patch_size) {
        return Err(invalid("image_size", "no multiple of patch_size"));
    }
    if (image_size / patch_size).pow(2) > MAX_PATCHES {
        return Err(unsupported("with more patches than supported"));
    }
    let squares = (tower.squares)(keys, image_size, patch_size)?;
    Ok(VisionConfig {
        kind,
        tower,
        layers: layers(keys, squares.max_patches)?,
        squares,
        windows: None,
        image_size,
        patch_size,
        mean: channels(metadata, "clip.vision.image_mean", |_| true)?,
        std: channels(metadata, "clip.vision.image_std", |it| it != 0.0)?,
        projection_dim: keys.size("projection_dim")?,
        deepstack: Vec::new(),
    })
}

fn activation(metadata: &Metadata) -> Result<Activation> {
    let flag = |name: &str| metadata.bool(&format!("clip.{name}"));
    match (flag("use_gelu")?, flag("use_silu")?) {
        (Some(true), Some(true)) => {
            let message = "clip.use_gelu and clip.use_silu are both set";
            Err(Error::InvalidModelFile(message.to_owned()))
        }
        (Some(true), _) => Ok(Activation::Gelu),
        (_, Some(true)) => Ok(Activation::Silu),
        _ => Ok(Activation::QuickGelu),
    }
}

/// The layers of the tower: an encoder with norms before attention and feed-forward, and learned positions.
fn layers(keys: &Keys, patches: usize) -> Result<ModelConfig> {
    let activation = activation(keys.metadata())?;
    let dim = keys.size("embedding_length")?;
    let heads = keys.size("attention.head_count")?;
    let count = keys.size("block_count")?;
    let head_dim = dim / heads;
    if count > MAX_LAYERS
        || heads * head_dim != dim
        || !head_dim.is_multiple_of(8)
        || head_dim > 256
    {
        let message = format!("with {count} layers of {heads} heads of {head_dim}");
        return Err(unsupported(&message));
    }
    let norm_eps = keys.positive("attention.layer_norm_epsilon")?;
    let plain = PlainModel {
        architecture: ARCHITECTURE.to_owned(),
        dim,
        ffn_dim: keys.size("feed_forward_length")?,
        heads,
        kv_heads: heads,
        head_dim,
        vocab: 1,
        token_ids: 1,
        context_tokens: patches,
        layers: vec![
            LayerConfig {
                rope: LayerRope::None,
                ..LayerConfig::PLAIN
            };
            count
        ],
        norm: NormKind::Layer,
        norm_eps: norm_eps.unwrap_or(1e-6),
        positions: Positions::Learned,
        feed_forward: FeedForwardKind::Plain(activation),
        is_causal: false,
    };
    Ok(plain.config())
}

/// A number per channel.
fn channels(metadata: &Metadata, key: &str, is_valid: fn(f32) -> bool) -> Result<[f32; 3]> {
    let values = metadata.f32s(key)?.unwrap_or_default();
    match <[f32; 3]>::try_from(values) {
        Ok(values) if values.iter().all(|x| x.is_finite() && is_valid(*x)) => Ok(values),
        _ => Err(Error::InvalidModelFile(format!(
            "{key} is not three numbers"
        ))),
    }
}

/// The error for a file that this build does not support.
pub fn unsupported(what: &str) -> Error {
    Error::UnsupportedModel(format!("a projector file {what}"))
}

/// The error for the value of a key.
pub fn invalid(key: &str, what: &str) -> Error {
    Error::InvalidModelFile(format!("clip.vision.{key} is {what}"))
}
