//! Qwen3-VL (Bai et al. 2025, <https://arxiv.org/abs/2511.21631>): learned positions beside the rotary ones, and values for
//! the first layers of the text model.

use super::{
    config::{LearnedPositions, TowerKind, VisionConfig},
    family::Family,
    folder::{DEEPSTACK, FolderJson, FolderKind, layers, vision},
    grids,
};
use crate::{
    Error, Result,
    model::{
        architectures::DEEPSTACK_LAYERS,
        config::{ConfigJson, Keys},
    },
    weights::Metadata,
};

pub const FAMILY: Family = Family {
    projector: "qwen3vl_merger",
    tower: TowerKind {
        has_patch_bias: true,
        positions: LearnedPositions::Corners,
        squares: |keys, _, patch_size| grids::squares(keys, patch_size, 64),
        ..grids::TOWER
    },
    configure,
    folder: FolderKind {
        model_types: &["qwen3_vl"],
        text,
        sizes: &[
            grids::SIZES,
            &[
                ("patch_size", "patch_size", 16),
                ("depth", "block_count", 27),
                ("hidden_size", "embedding_length", 1152),
                ("intermediate_size", "feed_forward_length", 4304),
            ],
        ],
        deepstack: DEEP_LAYERS,
        add,
        prefixes: grids::PREFIXES,
        tensors: &[
            grids::TENSORS,
            &[
                ("pos_embed", "v.position_embd"),
                ("blocks.*.mlp.linear_fc1", "v.blk.*.ffn_up"),
                ("blocks.*.mlp.linear_fc2", "v.blk.*.ffn_down"),
                ("merger.norm", "v.post_ln"),
                ("merger.linear_fc1", "mm.0"),
                ("merger.linear_fc2", "mm.2"),
                ("deepstack_merger_list.*.norm", "v.deepstack.*.norm"),
                ("deepstack_merger_list.*.linear_fc1", "v.deepstack.*.fc1"),
                ("deepstack_merger_list.*.linear_fc2", "v.deepstack.*.fc2"),
            ],
        ],
        ..FolderKind::PLAIN
    },
};

/// Layers whose outputs become values for the text model, if the configuration does not list them.
const DEEP_LAYERS: &[u32] = &[8, 16, 24];

fn configure(keys: &Keys, config: &mut VisionConfig) -> Result<()> {
    grids::turn_by_places(&mut config.layers);
    let key = keys.name("is_deepstack_layers");
    let flags = keys.metadata().bools(&key)?.unwrap_or_default();
    let count = config.layers.layers.len();
    if flags.len() > count {
        return Err(Error::InvalidModelFile(format!(
            "{key} has {} entries for {count} layers",
            flags.len()
        )));
    }
    let flagged = flags.iter().enumerate().filter(|(_, is_deep)| **is_deep);
    config.deepstack = flagged.map(|(layer, _)| layer).collect();
    Ok(())
}

fn text(config: &ConfigJson) -> Result<ConfigJson> {
    let mut text = grids::text(config, "qwen3_vl_text", 1e-6, 5e6)?;
    let layers = layers(&vision(config)?, DEEPSTACK, DEEP_LAYERS)?;
    text.set(DEEPSTACK_LAYERS, layers.len());
    Ok(text)
}

fn add(folder: &FolderJson, metadata: &mut Metadata) -> Result<()> {
    let positions = folder.vision.size("num_position_embeddings")?;
    let side = positions.unwrap_or(2304).isqrt();
    let patch = metadata.u32("clip.vision.patch_size")?.unwrap_or(0);
    metadata.insert("clip.vision.image_size", side.saturating_mul(patch));
    grids::add_pixels(folder, metadata)
}
