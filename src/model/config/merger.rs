//! What the vision towers of Qwen3-VL have beside those of other families: pictures of any size, rotary positions, and
//! values for the first layers of the text model.

use super::{
    Keys, ModelConfig, Positions,
    rope::{DEFAULT_BASE, Rope, RopePairs, RopeParts, Scaling},
};
use crate::{Error, Result, pictures::GridSizes, weights::Metadata};

/// Most rows that a picture becomes, whatever the file says: a quarter of the default context, and attention of 4,096
/// patches.
const MAX_ROWS: usize = 1024;
/// Least rows of a picture, if the file does not say: the value of the model's own processor.
const MIN_ROWS: usize = 64;

/// Squares of patches that become rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Merger {
    /// Patches on each side of a square.
    pub side: usize,
    /// Pixels of the smallest picture.
    pub min_pixels: usize,
    /// Pixels of the largest picture.
    pub max_pixels: usize,
}

impl Merger {
    /// Reads the keys of a file.
    pub(super) fn read(keys: &Keys, patch_size: usize) -> Result<Merger> {
        let side = keys.size_or("spatial_merge_size", 2)?;
        let merger = Merger {
            side,
            min_pixels: 0,
            max_pixels: 0,
        };
        if side > 8 || patch_size > 256 {
            return Err(keys.unsupported("squares of more pixels than supported"));
        }
        let square = merger.row_side(patch_size).pow(2);
        let most = MAX_ROWS * square;
        let max_pixels = keys.size_or_zero("image_max_pixels")?.unwrap_or(most);
        let max_pixels = max_pixels.clamp(square, most);
        let min_pixels = keys.size_or_zero("image_min_pixels")?;
        Ok(Merger {
            max_pixels,
            min_pixels: min_pixels.unwrap_or(MIN_ROWS * square).min(max_pixels),
            ..merger
        })
    }

    fn row_side(self, patch_size: usize) -> usize {
        self.side * patch_size
    }

    /// The sizes that pictures get.
    pub fn sizes(self, patch_size: usize) -> GridSizes {
        GridSizes {
            side: self.row_side(patch_size),
            min_pixels: self.min_pixels,
            max_pixels: self.max_pixels,
        }
    }

    /// Patches of the largest picture.
    pub fn max_patches(self, patch_size: usize) -> usize {
        self.max_pixels / patch_size.pow(2)
    }
}

/// Gives the layers rotary positions of rows and columns.
pub(super) fn configure(layers: &mut ModelConfig) {
    for layer in &mut layers.layers {
        layer.rope = super::LayerRope::Global;
    }
    layers.positions = Positions::Rotary(Rope {
        base: DEFAULT_BASE,
        local_base: None,
        pairs: RopePairs::Halves,
        dims: layers.head_dim,
        scaling: Scaling::None,
        parts: Some(RopeParts::Grid),
    });
}

/// The layers whose outputs become values for the text model's first layers.
pub(super) fn deepstack(metadata: &Metadata, layers: usize) -> Result<Vec<usize>> {
    let key = "clip.vision.is_deepstack_layers";
    let flags = metadata.bools(key)?.unwrap_or_default();
    if flags.len() > layers {
        return Err(Error::InvalidModelFile(format!(
            "{key} has {} entries for {layers} layers",
            flags.len()
        )));
    }
    let flagged = flags.iter().enumerate().filter(|(_, is_deep)| **is_deep);
    Ok(flagged.map(|(layer, _)| layer).collect())
}
