//! Qwen2-VL (Wang et al. 2024, <https://arxiv.org/abs/2409.12191>).

use super::{
    config::TowerKind,
    family::Family,
    folder::{FolderJson, FolderKind},
    grids,
};
use crate::{Result, weights::Metadata};

pub const FAMILY: Family = Family {
    projector: "qwen2vl_merger",
    tower: TowerKind {
        // Converters write the width of the text model.
        ffn_dim_of_tensors: true,
        ..grids::TOWER
    },
    configure: |_, config| {
        grids::turn_by_places(&mut config.layers);
        Ok(())
    },
    folder: FolderKind {
        model_types: &["qwen2_vl"],
        text: |config| grids::text(config, "qwen2_vl_text", 1e-5, 1e6),
        sizes: &[
            grids::SIZES,
            &[
                ("patch_size", "patch_size", 14),
                ("depth", "block_count", 32),
                ("embed_dim", "embedding_length", 1280),
            ],
        ],
        activations: &["quick_gelu"],
        activation_flag: None,
        mean: grids::CLIP_MEAN,
        std: grids::CLIP_STD,
        add,
        prefixes: grids::PREFIXES,
        tensors: &[
            grids::TENSORS,
            grids::MLP_TENSORS,
            &[
                ("blocks.*.mlp.fc1", "v.blk.*.ffn_up"),
                ("blocks.*.mlp.fc2", "v.blk.*.ffn_down"),
            ],
        ],
        ..FolderKind::PLAIN
    },
};

fn add(folder: &FolderJson, metadata: &mut Metadata) -> Result<()> {
    let dim = metadata.u32("clip.vision.embedding_length")?.unwrap_or(0);
    let ratio = folder.vision.number("mlp_ratio")?.unwrap_or(4.0);
    let ffn_dim = (f64::from(dim) * ratio) as u32;
    metadata.insert("clip.vision.feed_forward_length", ffn_dim);
    grids::add_pixels(folder, metadata)
}
