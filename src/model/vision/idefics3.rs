//! Idefics 3 (Laurençon et al. 2024, <https://arxiv.org/abs/2408.12637>) and SmolVLM: images that are cut into tiles. Squares
//! of patches are one row, which is multiplied by a matrix.

use super::{
    config::{Join, LearnedPositions, ProjectorKind, Squares, TowerKind},
    family::Family,
    folder::{FolderJson, FolderKind},
    siglip,
};
use crate::{
    Result,
    images::{Filter, ImageGeometry, ImageMarkup},
    model::config::Keys,
    weights::Metadata,
};

pub const FAMILY: Family = Family {
    projector: "idefics3",
    tower: TowerKind {
        frames: 1,
        has_patch_bias: true,
        positions: LearnedPositions::Corners,
        ffn_dim_of_tensors: false,
        has_limits: false,
        squares,
        projector: ProjectorKind {
            join: Join::Concatenate,
            norm: None,
            linears: &["mm.model.fc"],
            is_transposed: false,
        },
        is_seen_whole: false,
        needs_layer_inputs: false,
        places_rows: false,
        markup: ImageMarkup {
            before_tile: "<fake_token_around_image><row_{row}_col_{column}>",
            after_tile_row: "\n",
            after_tiles: "\n",
            before_whole: "<fake_token_around_image><global-img>",
            after_whole: "<fake_token_around_image>",
            ..ImageMarkup::plain("<image>")
        },
        filter: Filter::Lanczos,
    },
    configure: |_, _| Ok(()),
    folder: FolderKind {
        model_types: &["idefics3", "smolvlm"],
        sizes: &[
            siglip::SIZES,
            &[
                ("patch_size", "patch_size", 32),
                ("hidden_size", "embedding_length", 1152),
                ("num_attention_heads", "attention.head_count", 16),
            ],
        ],
        add,
        prefixes: &["vision_model.", "connector."],
        tensors: &[
            siglip::TENSORS,
            &[("modality_projection.proj", "mm.model.fc")],
        ],
        ignored: siglip::IGNORED,
        ..FolderKind::PLAIN
    },
};

fn squares(keys: &Keys, image_size: usize, patch_size: usize) -> Result<Squares> {
    let [side, max_patches] = siglip::squares(keys, image_size, patch_size)?;
    Ok(Squares {
        side,
        max_patches,
        geometry: ImageGeometry::Tiles {
            size: image_size,
            longest_edge: keys.size_or("preproc_image_size", 4 * image_size)?,
            rows: max_patches / side.pow(2),
        },
    })
}

fn add(folder: &FolderJson, metadata: &mut Metadata) -> Result<()> {
    let side = folder.config.size("scale_factor")?.unwrap_or(2);
    metadata.insert("clip.vision.projector.scale_factor", side);
    let size = match &folder.preprocessor {
        Some(preprocessor) => preprocessor.object("size")?,
        None => None,
    };
    let edge = match size {
        Some(size) => size.size("longest_edge")?,
        None => None,
    };
    if let Some(edge) = edge {
        metadata.insert("clip.vision.preproc_image_size", edge);
    }
    Ok(())
}
