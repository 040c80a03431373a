//! LFM2-VL (Amini et al. 2025, <https://arxiv.org/abs/2511.23404>): the tower of SigLIP 2, which takes images of any size, and
//! tiles of large ones. Squares of patches are one row, which goes through a feed-forward.

use super::{
    config::{Join, LearnedPositions, ProjectorKind, ProjectorNorm, Squares, TowerKind},
    family::Family,
    folder::{FolderJson, FolderKind},
    read::invalid,
    siglip,
};
use crate::{
    Result,
    images::{Filter, GridSizes, ImageGeometry, ImageMarkup, TileSizes},
    model::config::{Keys, NormKind},
    weights::Metadata,
};

pub const FAMILY: Family = Family {
    projector: "lfm2",
    tower: TowerKind {
        frames: 1,
        has_patch_bias: true,
        positions: LearnedPositions::Resized,
        ffn_dim_of_tensors: false,
        has_limits: false,
        squares,
        projector: ProjectorKind {
            join: Join::Concatenate,
            norm: Some(ProjectorNorm {
                name: Some("mm.input_norm"),
                kind: NormKind::Layer,
                eps: Some(1e-5),
                is_optional: true,
            }),
            linears: &["mm.1", "mm.2"],
            is_transposed: false,
        },
        is_seen_whole: false,
        needs_layer_inputs: false,
        places_rows: false,
        markup: ImageMarkup {
            before_all: "<|image_start|>",
            before_tile: "<|img_row_{row}_col_{column}|>",
            after_tiles: "<|img_thumbnail|>",
            after_whole: "<|image_end|>",
            ..ImageMarkup::plain("<image>")
        },
        filter: Filter::Bilinear,
    },
    configure: |_, _| Ok(()),
    folder: FolderKind {
        model_types: &["lfm2_vl"],
        sizes: &[&[
            ("patch_size", "patch_size", 16),
            ("hidden_size", "embedding_length", 768),
            ("intermediate_size", "feed_forward_length", 3072),
            ("num_hidden_layers", "block_count", 12),
            ("num_attention_heads", "attention.head_count", 12),
        ]],
        add,
        prefixes: &[
            "vision_tower.vision_model.",
            "vision_tower.",
            "multi_modal_projector.",
        ],
        tensors: &[
            siglip::TENSORS,
            &[
                ("layer_norm", "mm.input_norm"),
                ("linear_1", "mm.1"),
                ("linear_2", "mm.2"),
            ],
        ],
        has_linear_patches: true,
        ignored: siglip::IGNORED,
        ..FolderKind::PLAIN
    },
};

/// Fewest and most rows of the whole image, if the file does not say.
const ROWS: [usize; 2] = [64, 256];
/// Width and height of a tile in pixels, and the fewest and most of them, if the file does not say.
const TILE: usize = 512;
const TILES: [usize; 2] = [2, 10];
/// An image with this multiple of the pixels of the largest whole image is cut.
const TOLERANCE: usize = 2;
/// The maximum number of rows that a file may ask for: of the whole image or of a tile, and of tiles.
const MAX_ROWS: usize = 1024;
const MAX_TILES: usize = 32;

const MIN_PIXELS: &str = "image_min_pixels";
const MAX_PIXELS: &str = "image_max_pixels";
const TILE_SIZE: &str = "preproc_image_size";
const MIN_TILES: &str = "preproc_min_tiles";
const MAX_TILES_KEY: &str = "preproc_max_tiles";

fn squares(keys: &Keys, _: usize, patch_size: usize) -> Result<Squares> {
    let side = keys.size_or("projector.scale_factor", 2)?;
    if side > 8 || patch_size > 128 {
        return Err(keys.unsupported("squares of more pixels than supported"));
    }
    let row_side = side * patch_size;
    let square = row_side.pow(2);
    let most = MAX_ROWS * square;
    let max_pixels = keys
        .size_or(MAX_PIXELS, ROWS[1] * square)?
        .clamp(square, most);
    let min_pixels = keys.size_or(MIN_PIXELS, ROWS[0] * square)?.min(max_pixels);
    let size = keys.size_or(TILE_SIZE, TILE)?;
    if !size.is_multiple_of(row_side) || (size / row_side).saturating_pow(2) > MAX_ROWS {
        return Err(invalid(
            TILE_SIZE,
            "no tile of whole rows, or too many of them",
        ));
    }
    let most_tiles = keys.size_or(MAX_TILES_KEY, TILES[1])?.min(MAX_TILES);
    let tiles = TileSizes {
        size,
        count: [
            keys.size_or(MIN_TILES, TILES[0])?.min(most_tiles),
            most_tiles,
        ],
        max_whole_pixels: TOLERANCE * max_pixels,
    };
    let whole = GridSizes {
        side: row_side,
        min_pixels,
        max_pixels,
    };
    Ok(Squares {
        side,
        max_patches: max_pixels.max(size.pow(2)) / patch_size.pow(2),
        geometry: ImageGeometry::GridAndTiles(whole, tiles),
    })
}

fn add(folder: &FolderJson, metadata: &mut Metadata) -> Result<()> {
    let (config, vision) = (&folder.config, &folder.vision);
    let layer = config.number("vision_feature_layer")?;
    config.require("vision_feature_layer", layer.is_none_or(|it| it == -1.0))?;
    let activation = config.str("projector_hidden_act")?;
    let is_known = activation.is_none_or(|it| it == "gelu");
    config.require("projector_hidden_act", is_known)?;
    let mut add = |key: &str, value: u32| metadata.insert(format!("clip.vision.{key}"), value);
    let side = config.size("downsample_factor")?.unwrap_or(2);
    add("projector.scale_factor", side);
    let patch = vision.size("patch_size")?.unwrap_or(16);
    let positions = vision.size("num_patches")?.unwrap_or(256);
    add("image_size", positions.isqrt().saturating_mul(patch));
    let Some(preprocessor) = &folder.preprocessor else {
        return Ok(());
    };
    let key = "max_pixels_tolerance";
    let tolerance = preprocessor.number(key)?;
    preprocessor.require(key, tolerance.is_none_or(|it| it == TOLERANCE as f64))?;
    let square = side.saturating_mul(patch).saturating_pow(2);
    for (member, key, factor) in [
        ("min_image_tokens", MIN_PIXELS, square),
        ("max_image_tokens", MAX_PIXELS, square),
        ("tile_size", TILE_SIZE, 1),
        ("min_tiles", MIN_TILES, 1),
        ("max_tiles", MAX_TILES_KEY, 1),
    ] {
        if let Some(value) = preprocessor.size(member)? {
            add(key, value.saturating_mul(factor));
        }
    }
    if preprocessor.bool("do_image_splitting")? == Some(false) {
        add(MIN_TILES, 1);
        add(MAX_TILES_KEY, 1);
    }
    Ok(())
}
