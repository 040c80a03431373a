//! Qwen2.5-VL (Bai et al. 2025, <https://arxiv.org/abs/2502.13923>): most layers attend within windows; gated feed-forwards
//! and norms without means.

use super::{
    config::{VisionConfig, Windows},
    family::Family,
    folder::{FolderJson, FolderKind, layers},
    grids,
};
use crate::{
    Error, Result,
    model::config::{ConfigJson, FeedForwardKind, Keys, NormKind, keys::missing},
    weights::Metadata,
};

pub const FAMILY: Family = Family {
    projector: "qwen2.5vl_merger",
    tower: grids::TOWER,
    configure,
    folder: FolderKind {
        model_types: &["qwen2_5_vl"],
        text: |config| grids::text(config, "qwen2_5_vl_text", 1e-5, 1e6),
        sizes: &[
            grids::SIZES,
            &[
                ("patch_size", "patch_size", 14),
                ("depth", "block_count", 32),
                ("hidden_size", "embedding_length", 3584),
                ("intermediate_size", "feed_forward_length", 3420),
                ("window_size", "window_size", WINDOW_PIXELS as u32),
            ],
        ],
        activations: &["silu"],
        activation_flag: Some("clip.use_silu"),
        mean: grids::CLIP_MEAN,
        std: grids::CLIP_STD,
        add,
        prefixes: grids::PREFIXES,
        tensors: &[
            grids::TENSORS,
            grids::MLP_TENSORS,
            &[
                ("blocks.*.mlp.gate_proj", "v.blk.*.ffn_gate"),
                ("blocks.*.mlp.up_proj", "v.blk.*.ffn_up"),
                ("blocks.*.mlp.down_proj", "v.blk.*.ffn_down"),
            ],
        ],
        ..FolderKind::PLAIN
    },
};

/// Width and height of a window, in pixels, if the file does not say.
const WINDOW_PIXELS: usize = 112;

fn configure(keys: &Keys, config: &mut VisionConfig) -> Result<()> {
    grids::turn_by_places(&mut config.layers);
    config.windows = windows(keys, config.squares.side * config.patch_size)?;
    let layers = &mut config.layers;
    layers.norm = NormKind::Rms;
    layers.has_gate_biases = true;
    if let FeedForwardKind::Plain(activation) = layers.feed_forward {
        layers.feed_forward = FeedForwardKind::Gated(activation);
    }
    Ok(())
}

fn windows(keys: &Keys, row_side: usize) -> Result<Option<Windows>> {
    let pattern = "n_wa_pattern";
    // Zero says that there are none; a file without the key does not say which layers have them.
    if keys.metadata().usize(&keys.name(pattern))?.is_none() {
        return Err(missing(&keys.name(pattern)));
    }
    let Some(period) = keys.size_or_zero(pattern)? else {
        return Ok(None);
    };
    let pixels = keys.size_or("window_size", WINDOW_PIXELS)?;
    match pixels / row_side {
        0 => Err(Error::InvalidModelFile(format!(
            "{} is {pixels}, less than the {row_side} pixels of a row",
            keys.name("window_size")
        ))),
        side => Ok(Some(Windows { side, period })),
    }
}

fn add(folder: &FolderJson, metadata: &mut Metadata) -> Result<()> {
    let depth = metadata.u32("clip.vision.block_count")?.unwrap_or(0);
    let period = period(&folder.vision, depth)?;
    metadata.insert("clip.vision.n_wa_pattern", period);
    grids::add_pixels(folder, metadata)
}

/// The period of the layers that attend to the whole image, which the configuration lists: the last one of each.
fn period(vision: &ConfigJson, depth: u32) -> Result<u32> {
    let key = "fullatt_block_indexes";
    let whole = layers(vision, key, &[7, 15, 23, 31])?;
    let period = whole.first().map_or(0, |first| first.saturating_add(1));
    let expected = (1..=depth.checked_div(period).unwrap_or(0)).map(|n| n * period - 1);
    vision.require(key, period > 0 && expected.eq(whole.iter().copied()))?;
    Ok(period)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layers_without_a_period_are_refused() {
        for (layers, depth, is_supported) in [
            ("[1, 3]", 4, true),
            ("[1, 3]", 5, true),
            ("[1]", 4, false),
            ("[1, 4]", 6, false),
            ("[3, 1]", 4, false),
            ("[]", 4, false),
            ("[0.5]", 1, false),
            ("[-1]", 1, false),
            ("[4294967295]", 4, false),
        ] {
            let json = format!(r#"{{"fullatt_block_indexes": {layers}}}"#);
            let vision = ConfigJson::parse(json.as_bytes()).unwrap();
            assert_eq!(period(&vision, depth).is_ok(), is_supported, "{layers}");
        }
    }
}
