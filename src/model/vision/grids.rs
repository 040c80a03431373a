//! The common part of the towers of Qwen2-VL and its successors: images of any size, rotary positions of rows and columns,
//! and squares of patches that are one row, which goes through a feed-forward.

use super::{
    config::{Join, LearnedPositions, ProjectorKind, Squares, TowerKind},
    folder::{FolderJson, Size},
};
use crate::{
    Result,
    images::{Filter, GridSizes, ImageGeometry, ImageMarkup},
    model::{
        architectures::Names,
        config::{
            ConfigJson, Keys, LayerRope, ModelConfig, Positions,
            rope::{DEFAULT_BASE, Rope, RopePairs, RopeParts, Scaling},
        },
    },
    weights::Metadata,
};

/// A tower without learned positions.
pub const TOWER: TowerKind = TowerKind {
    frames: 2,
    has_patch_bias: false,
    positions: LearnedPositions::None,
    ffn_dim_of_tensors: false,
    has_limits: false,
    squares: |keys, _, patch_size| squares(keys, patch_size, 4),
    projector: ProjectorKind {
        join: Join::Concatenate,
        norm: None,
        linears: &["mm.0", "mm.2"],
        is_transposed: false,
    },
    is_seen_whole: false,
    needs_layer_inputs: false,
    places_rows: true,
    markup: ImageMarkup::plain("<|image_pad|>"),
    filter: Filter::Bicubic,
};

/// The maximum number of rows that an image becomes, whatever the file says: a quarter of the default context, and attention of 4,096
/// patches.
const MAX_ROWS: usize = 1024;

/// Counts of all towers.
pub const SIZES: &[Size] = &[
    ("num_heads", "attention.head_count", 16),
    ("spatial_merge_size", "spatial_merge_size", 2),
];
/// Means of the channels in the processors of Qwen2-VL and Qwen2.5-VL.
pub const CLIP_MEAN: [f32; 3] = [0.481_454_66, 0.457_827_5, 0.408_210_73];
/// Deviations of the channels in the processors of Qwen2-VL and Qwen2.5-VL.
pub const CLIP_STD: [f32; 3] = [0.268_629_54, 0.261_302_6, 0.275_777_1];
/// The prefix of tensor names.
pub const PREFIXES: &[&str] = &["visual."];
/// Modules of all towers.
pub const TENSORS: Names = &[
    ("patch_embed.proj", "v.patch_embd"),
    ("blocks.*.norm1", "v.blk.*.ln1"),
    ("blocks.*.norm2", "v.blk.*.ln2"),
    ("blocks.*.attn.qkv", "v.blk.*.attn_qkv"),
    ("blocks.*.attn.proj", "v.blk.*.attn_out"),
];
/// The projector of Qwen2-VL and Qwen2.5-VL.
pub const MLP_TENSORS: Names = &[
    ("merger.ln_q", "v.post_ln"),
    ("merger.mlp.0", "mm.0"),
    ("merger.mlp.2", "mm.2"),
];

/// Reads the sizes of squares and images. Images have at least `min_rows` rows, if the file does not say: the value of
/// the model's own processor.
pub fn squares(keys: &Keys, patch_size: usize, min_rows: usize) -> Result<Squares> {
    let side = keys.size_or("spatial_merge_size", 2)?;
    if side > 8 || patch_size > 256 {
        return Err(keys.unsupported("squares of more pixels than supported"));
    }
    let row_side = side * patch_size;
    let square = row_side.pow(2);
    let most = MAX_ROWS * square;
    let max_pixels = keys.size_or_zero("image_max_pixels")?.unwrap_or(most);
    let max_pixels = max_pixels.clamp(square, most);
    let min_pixels = keys.size_or_zero("image_min_pixels")?;
    Ok(Squares {
        side,
        max_patches: max_pixels / patch_size.pow(2),
        geometry: ImageGeometry::Grid(GridSizes {
            side: row_side,
            min_pixels: min_pixels.unwrap_or(min_rows * square).min(max_pixels),
            max_pixels,
        }),
    })
}

/// Gives the layers rotary positions of rows and columns.
pub fn turn_by_places(layers: &mut ModelConfig) {
    for layer in &mut layers.layers {
        layer.rope = LayerRope::Global;
    }
    layers.positions = Positions::Rotary(Rope {
        base: DEFAULT_BASE,
        local_base: None,
        pairs: RopePairs::Halves,
        local_dims: layers.head_dim,
        dims: layers.head_dim,
        scaling: Scaling::None,
        parts: Some(RopeParts::Grid),
    });
}

/// The configuration of the text model alone. Earlier folders have it beside that of the tower, not in an object.
pub fn text(config: &ConfigJson, model_type: &str, eps: f64, base: f64) -> Result<ConfigJson> {
    let mut text = match config.object("text_config")? {
        Some(text) => text,
        None => config.clone(),
    };
    if let Some(tied) = config.bool("tie_word_embeddings")? {
        text.set("tie_word_embeddings", tied);
    }
    text.set("model_type", model_type);
    text.add("rms_norm_eps", eps);
    if text.get("rope_parameters").is_none() {
        text.add("rope_theta", base);
    }
    Ok(text)
}

/// Adds the bounds of pixels.
pub fn add_pixels(folder: &FolderJson, metadata: &mut Metadata) -> Result<()> {
    let Some(preprocessor) = &folder.preprocessor else {
        return Ok(());
    };
    let sizes = preprocessor.object("size")?;
    // Earlier processors name the bounds themselves, later ones as sides, which they are not.
    for (key, member) in [
        ("min_pixels", "shortest_edge"),
        ("max_pixels", "longest_edge"),
    ] {
        let pixels = match (preprocessor.size(key)?, &sizes) {
            (Some(pixels), _) => Some(pixels),
            (None, Some(sizes)) => sizes.size(member)?,
            (None, None) => None,
        };
        if let Some(pixels) = pixels {
            // More than any tower takes; the loader has a bound of its own.
            let pixels = pixels.min(1 << 24);
            metadata.insert(format!("clip.vision.image_{key}"), pixels);
        }
    }
    Ok(())
}
