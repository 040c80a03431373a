//! Gemma 3 (Kamath et al. 2025, <https://arxiv.org/abs/2503.19786>): images in one size whatever their shape. The means of
//! squares of patches are normalized and multiplied by a matrix. Rows of an image attend to each other in the text model.

use super::{
    config::{Join, LearnedPositions, ProjectorKind, ProjectorNorm, Squares, TowerKind},
    family::Family,
    folder::{FolderJson, FolderKind, nested_text},
    siglip,
};
use crate::{
    Result,
    images::{Filter, ImageGeometry, ImageMarkup},
    model::config::{ConfigJson, Keys, NormKind},
    weights::Metadata,
};

pub const FAMILY: Family = Family {
    projector: "gemma3",
    tower: TowerKind {
        frames: 1,
        has_patch_bias: true,
        positions: LearnedPositions::Corners,
        ffn_dim_of_tensors: false,
        has_limits: false,
        squares,
        projector: ProjectorKind {
            join: Join::Mean,
            norm: Some(ProjectorNorm {
                name: Some("mm.soft_emb_norm"),
                kind: NormKind::Rms,
                eps: None,
                is_optional: false,
            }),
            linears: &["mm.input_projection"],
            is_transposed: true,
        },
        is_seen_whole: true,
        needs_layer_inputs: false,
        places_rows: false,
        markup: ImageMarkup {
            row_token: "<image_soft_token>",
            before_whole: "\n\n<start_of_image>",
            after_whole: "<end_of_image>\n\n",
            ..ImageMarkup::plain("<start_of_image>")
        },
        filter: Filter::Bilinear,
    },
    configure: |_, _| Ok(()),
    folder: FolderKind {
        model_types: &["gemma3"],
        text,
        sizes: &[
            siglip::SIZES,
            &[
                ("patch_size", "patch_size", 16),
                ("hidden_size", "embedding_length", 768),
                ("num_attention_heads", "attention.head_count", 12),
            ],
        ],
        add,
        prefixes: &["vision_tower.vision_model.", "multi_modal_projector."],
        tensors: &[
            siglip::TENSORS,
            &[
                ("mm_soft_emb_norm", "mm.soft_emb_norm"),
                // Neither a weight of a module nor in its place: rows are multiplied by it from the right.
                ("mm_input_projection_weight", "mm.input_projection.weight"),
            ],
        ],
        ignored: siglip::IGNORED,
        plus_one: Some("mm.soft_emb_norm"),
        ..FolderKind::PLAIN
    },
};

/// Members that a text configuration may leave out.
const TEXT_SIZES: [(&str, u32); 9] = [
    ("hidden_size", 2304),
    ("intermediate_size", 9216),
    ("num_hidden_layers", 26),
    ("num_attention_heads", 8),
    ("num_key_value_heads", 4),
    ("head_dim", 256),
    ("query_pre_attn_scalar", 256),
    ("max_position_embeddings", 131_072),
    ("sliding_window", 4096),
];

fn squares(keys: &Keys, image_size: usize, patch_size: usize) -> Result<Squares> {
    let [side, max_patches] = siglip::squares(keys, image_size, patch_size)?;
    Ok(Squares {
        side,
        max_patches,
        geometry: ImageGeometry::Stretched {
            size: image_size,
            rows: max_patches / side.pow(2),
        },
    })
}

fn text(config: &ConfigJson) -> Result<ConfigJson> {
    let mut text = nested_text(config)?;
    text.add("model_type", "gemma3_text");
    for (key, value) in TEXT_SIZES {
        text.add(key, value);
    }
    text.add("hidden_activation", "gelu_pytorch_tanh");
    text.add("rms_norm_eps", 1e-6);
    text.add("rope_theta", 1e6);
    text.add("rope_local_base_freq", 1e4);
    text.add("tie_word_embeddings", true);
    Ok(text)
}

/// Folders have the number of rows, files the side of a square.
fn add(folder: &FolderJson, metadata: &mut Metadata) -> Result<()> {
    let rows = folder.config.size("mm_tokens_per_image")?.unwrap_or(256);
    let size = |key: &str| metadata.u32(&format!("clip.vision.{key}"));
    let (image, patch) = (size("image_size")?, size("patch_size")?);
    let patches = image.unwrap_or(0).checked_div(patch.unwrap_or(0));
    let side = patches.unwrap_or(0).checked_div(rows.isqrt());
    metadata.insert("clip.vision.projector.scale_factor", side.unwrap_or(0));
    Ok(())
}
