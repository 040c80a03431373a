//! The hyperparameters of a vision tower and its projector, from the metadata of an `mmproj` file as llama.cpp writes
//! it: `clip.vision.*`.

use super::merger::{self, Merger, MergerFamily};
use super::{
    Activation, FeedForwardKind, Keys, LayerConfig, LayerRope, ModelConfig, NormKind, NormPlaces,
    Positions, QkNorm,
};
use crate::{Error, Result, pictures::PictureFormat, weights::Metadata};

/// `general.architecture` of files with a vision tower.
pub const ARCHITECTURE: &str = "clip";

/// More than real towers have. A hostile header must not make the loader reserve memory.
const MAX_LAYERS: usize = 256;
/// Most patches of a picture; real towers have 4,096 at most.
const MAX_PATCHES: usize = 1 << 14;

/// A tower of a vision transformer (Dosovitskiy et al. 2020, <https://arxiv.org/abs/2010.11929>), and how its rows
/// become rows of the text model.
#[derive(Debug, Clone, PartialEq)]
pub struct VisionConfig {
    /// `clip.projector_type`.
    pub kind: String,
    /// Its layers.
    pub layers: ModelConfig,
    /// How the rows are projected.
    pub projector: Projector,
    /// Width and height of a picture, or of what learned positions cover, in pixels: a multiple of the patch size.
    pub image_size: usize,
    /// Width and height of a patch, in pixels.
    pub patch_size: usize,
    /// Subtracted from each channel, whose values are 0 to 1.
    pub mean: [f32; 3],
    /// What each channel is divided by after that.
    pub std: [f32; 3],
    /// Width of the text model.
    pub projection_dim: usize,
    /// Layers whose outputs become values for the first layers of the text model, too.
    pub deepstack: Vec<usize>,
}

/// How the rows of patches become rows of the text model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Projector {
    /// SmolVLM and Idefics 3 (Laurençon et al. 2024, <https://arxiv.org/abs/2408.12637>): squares of `side` by `side`
    /// patches are one row, which is multiplied by a matrix.
    PixelShuffle {
        /// Patches on each side of a square.
        side: usize,
        /// The longest side that a picture is resized to before it is cut into tiles, in pixels.
        longest_edge: usize,
    },
    /// Gemma 3 (Kamath et al. 2025, <https://arxiv.org/abs/2503.19786>): the means of squares of `side` by `side` rows
    /// are normalized and multiplied by a matrix. Rows of a picture attend to each other in the text model.
    AveragePool {
        /// Patches on each side of a square.
        side: usize,
    },
    /// Qwen2-VL and its successors: pictures of any size, whose squares of patches are one row, which goes through a
    /// feed-forward.
    Merger(Merger),
}

impl VisionConfig {
    /// Reads the metadata of an `mmproj` file.
    ///
    /// # Errors
    /// [`Error::UnsupportedModel`] for projectors and values that this build does not support,
    /// [`Error::InvalidModelFile`] for missing, mistyped or contradictory values. The text names the key.
    pub fn read(metadata: &Metadata) -> Result<VisionConfig> {
        let keys = Keys::new(metadata, "clip.vision");
        if metadata.bool("clip.has_vision_encoder")? == Some(false) {
            return Err(unsupported("without a vision tower"));
        }
        let kind = match metadata.str("clip.projector_type")? {
            Some(kind) => Some(kind),
            None => keys.str("projector_type")?,
        };
        let family = kind.and_then(MergerFamily::of);
        let patch_size = keys.size("patch_size")?;
        let image_size = match family {
            // Converters make up the key.
            Some(family) if !family.learns_positions() => patch_size,
            _ => keys.size("image_size")?,
        };
        if !image_size.is_multiple_of(patch_size) {
            return Err(invalid("image_size", "no multiple of patch_size"));
        }
        let side_patches = image_size / patch_size;
        if side_patches.pow(2) > MAX_PATCHES {
            return Err(unsupported("with more patches than supported"));
        }
        let projector = match (family, kind) {
            (Some(family), _) => Projector::Merger(Merger::read(&keys, family, patch_size)?),
            (None, Some("gemma3")) => Projector::AveragePool {
                side: square_side(&keys, side_patches)?,
            },
            (None, Some("idefics3")) => {
                let side = square_side(&keys, side_patches)?;
                Projector::PixelShuffle {
                    side,
                    longest_edge: keys.size_or("preproc_image_size", 4 * image_size)?,
                }
            }
            (None, Some(other)) => {
                let other: String = other.chars().take(64).collect();
                return Err(unsupported(&format!("with a projector {other:?}")));
            }
            (None, None) => return Err(unsupported("without clip.projector_type")),
        };
        let (layers, deepstack) = match projector {
            Projector::PixelShuffle { .. } | Projector::AveragePool { .. } => {
                (layers(&keys, side_patches.pow(2))?, Vec::new())
            }
            Projector::Merger(merger) => {
                let mut layers = layers(&keys, merger.max_patches(patch_size))?;
                merger::configure(&mut layers, merger.family);
                let deepstack = merger::deepstack(metadata, layers.layers.len())?;
                (layers, deepstack)
            }
        };
        Ok(VisionConfig {
            kind: kind.unwrap_or_default().to_owned(),
            layers,
            deepstack,
            projector,
            image_size,
            patch_size,
            mean: channels(metadata, "clip.vision.image_mean")?,
            std: channels(metadata, "clip.vision.image_std")?,
            projection_dim: keys.size("projection_dim")?,
        })
    }

    /// What it wants of a picture.
    pub fn format(&self) -> PictureFormat {
        match self.projector {
            Projector::PixelShuffle { longest_edge, .. } => PictureFormat::Tiles {
                size: self.image_size,
                longest_edge,
                rows: self.rows(),
            },
            Projector::AveragePool { .. } => PictureFormat::Stretched {
                size: self.image_size,
                rows: self.rows(),
            },
            Projector::Merger(merger) => PictureFormat::Grid(merger.sizes(self.patch_size)),
        }
    }

    /// Whether each row of a picture sees all of its rows in the text model.
    pub fn is_seen_whole(&self) -> bool {
        matches!(self.projector, Projector::AveragePool { .. })
    }

    /// Patches of a tile, or most patches of a picture of any size.
    pub fn patches(&self) -> usize {
        match self.projector {
            Projector::PixelShuffle { .. } | Projector::AveragePool { .. } => {
                (self.image_size / self.patch_size).pow(2)
            }
            Projector::Merger(merger) => merger.max_patches(self.patch_size),
        }
    }

    /// Patches that become a row.
    pub fn square(&self) -> usize {
        match self.projector {
            Projector::PixelShuffle { side, .. } | Projector::AveragePool { side } => side.pow(2),
            Projector::Merger(merger) => merger.side.pow(2),
        }
    }

    /// Width and height of the square of pixels that becomes a row, if rows have places in a picture.
    pub fn row_side(&self) -> Option<usize> {
        match self.projector {
            Projector::PixelShuffle { .. } | Projector::AveragePool { .. } => None,
            Projector::Merger(merger) => Some(merger.side * self.patch_size),
        }
    }

    /// Numbers of a patch: three channels.
    pub fn patch_values(&self) -> usize {
        3 * self.patch_size.pow(2)
    }

    /// Rows of the text model that a tile becomes, or most rows of a picture of any size.
    pub fn rows(&self) -> usize {
        self.patches() / self.square()
    }

    /// Columns and rows of the projector's matrix.
    pub fn projector_shape(&self) -> [usize; 2] {
        match self.projector {
            Projector::PixelShuffle { side, .. } => {
                [self.layers.dim * side.pow(2), self.projection_dim]
            }
            Projector::AveragePool { .. } => [self.layers.dim, self.projection_dim],
            Projector::Merger(_) => [self.layers.dim * self.square(), self.projection_dim],
        }
    }
}

/// The layers of the tower: an encoder with norms before attention and feed-forward, and learned positions.
fn layers(keys: &Keys, patches: usize) -> Result<ModelConfig> {
    let metadata = keys.metadata();
    let flag = |name: &str| metadata.bool(&format!("clip.{name}"));
    let activation = match (flag("use_gelu")?, flag("use_silu")?) {
        (Some(true), Some(true)) => {
            let message = "clip.use_gelu and clip.use_silu are both set";
            return Err(Error::InvalidModelFile(message.to_owned()));
        }
        (Some(true), _) => Activation::Gelu,
        (_, Some(true)) => Activation::Silu,
        _ => Activation::QuickGelu,
    };
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
    Ok(ModelConfig {
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
                window: None,
                rope: LayerRope::None,
            };
            count
        ],
        norm: NormKind::Layer,
        norm_eps: norm_eps.unwrap_or(1e-6),
        norm_places: NormPlaces::BEFORE,
        qk_norm: QkNorm::None,
        positions: Positions::Learned,
        attention_scale: None,
        attention_soft_cap: None,
        feed_forward: FeedForwardKind::Plain(activation),
        has_gate_biases: false,
        embedding_scale: 1.0,
        residual_scale: 1.0,
        logit_scale: 1.0,
        is_causal: false,
        has_embedding_norm: false,
        has_output_norm: true,
        logit_soft_cap: None,
        deepstack_layers: 0,
        embedding: None,
    })
}

/// Patches on each side of the squares that a projector joins.
fn square_side(keys: &Keys, side_patches: usize) -> Result<usize> {
    let side = keys.size_or("projector.scale_factor", 4)?;
    match side_patches.is_multiple_of(side) {
        true => Ok(side),
        false => Err(invalid(
            "projector.scale_factor",
            "no divisor of the patches",
        )),
    }
}

/// A number per channel.
fn channels(metadata: &Metadata, key: &str) -> Result<[f32; 3]> {
    let values = metadata.f32s(key)?.unwrap_or_default();
    match <[f32; 3]>::try_from(values) {
        Ok(values) if values.iter().all(|x| x.is_finite() && *x != 0.0) => Ok(values),
        _ => Err(Error::InvalidModelFile(format!(
            "{key} is not three numbers"
        ))),
    }
}

fn unsupported(what: &str) -> Error {
    Error::UnsupportedModel(format!("a projector file {what}"))
}

fn invalid(key: &str, what: &str) -> Error {
    Error::InvalidModelFile(format!("clip.vision.{key} is {what}"))
}
