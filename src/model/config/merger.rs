//! What the vision towers of Qwen2-VL and its successors have beside those of other families: pictures of any size, rotary
//! positions, windows, and values for the first layers of the text model.

use super::{
    FeedForwardKind, Keys, ModelConfig, NormKind, Positions,
    keys::missing,
    rope::{DEFAULT_BASE, Rope, RopePairs, RopeParts, Scaling},
};
use crate::{Error, Result, pictures::GridSizes, weights::Metadata};

/// Most rows that a picture becomes, whatever the file says: a quarter of the default context, and attention of 4,096
/// patches.
const MAX_ROWS: usize = 1024;
/// Width and height of a window, in pixels, if the file does not say: that of Qwen2.5-VL.
const WINDOW_PIXELS: usize = 112;

/// A generation of Qwen's towers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MergerFamily {
    /// Qwen2-VL (Wang et al. 2024, <https://arxiv.org/abs/2409.12191>).
    Qwen2,
    /// Qwen2.5-VL (Bai et al. 2025, <https://arxiv.org/abs/2502.13923>): most layers attend within windows; gated
    /// feed-forwards and norms without means.
    Qwen25,
    /// Qwen3-VL (Bai et al. 2025, <https://arxiv.org/abs/2511.21631>): learned positions beside the rotary ones, and
    /// values for the first layers of the text model.
    Qwen3,
}

impl MergerFamily {
    /// The family with this value of `clip.projector_type`.
    pub(super) fn of(projector: &str) -> Option<MergerFamily> {
        let all = [
            MergerFamily::Qwen2,
            MergerFamily::Qwen25,
            MergerFamily::Qwen3,
        ];
        all.into_iter()
            .find(|family| family.projector() == projector)
    }

    /// The value of `clip.projector_type`.
    pub fn projector(self) -> &'static str {
        match self {
            MergerFamily::Qwen2 => "qwen2vl_merger",
            MergerFamily::Qwen25 => "qwen2.5vl_merger",
            MergerFamily::Qwen3 => "qwen3vl_merger",
        }
    }

    /// Whether patches have learned positions, too.
    pub fn learns_positions(self) -> bool {
        self == MergerFamily::Qwen3
    }

    /// Least rows of a picture, if the file does not say: the value of the model's own processor.
    fn min_rows(self) -> usize {
        match self {
            MergerFamily::Qwen2 | MergerFamily::Qwen25 => 4,
            MergerFamily::Qwen3 => 64,
        }
    }
}

/// Squares of patches that become rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Merger {
    /// The generation.
    pub family: MergerFamily,
    /// Patches on each side of a square.
    pub side: usize,
    /// Pixels of the smallest picture.
    pub min_pixels: usize,
    /// Pixels of the largest picture.
    pub max_pixels: usize,
    /// Windows within which most layers attend; `None` if all layers attend to the whole picture.
    pub windows: Option<Windows>,
}

/// Windows of a picture: squares from the top left, cut off at its right and lower edge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Windows {
    /// Width and height of a window, in squares of patches.
    pub side: usize,
    /// The last of so many layers attends to the whole picture.
    pub period: usize,
}

impl Windows {
    fn read(keys: &Keys, row_side: usize) -> Result<Option<Windows>> {
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

    /// Whether a layer attends to the whole picture.
    pub fn is_whole(self, layer: usize) -> bool {
        (layer + 1).is_multiple_of(self.period)
    }
}

impl Merger {
    /// Reads the keys of a file.
    pub(super) fn read(keys: &Keys, family: MergerFamily, patch_size: usize) -> Result<Merger> {
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
        Ok(Merger {
            family,
            side,
            max_pixels,
            min_pixels: min_pixels
                .unwrap_or(family.min_rows() * square)
                .min(max_pixels),
            windows: match family {
                MergerFamily::Qwen25 => Windows::read(keys, row_side)?,
                MergerFamily::Qwen2 | MergerFamily::Qwen3 => None,
            },
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

/// Gives the layers rotary positions of rows and columns, and what the family has beside them.
pub(super) fn configure(layers: &mut ModelConfig, family: MergerFamily) {
    if family == MergerFamily::Qwen25 {
        layers.norm = NormKind::Rms;
        layers.has_gate_biases = true;
        if let FeedForwardKind::Plain(activation) = layers.feed_forward {
            layers.feed_forward = FeedForwardKind::Gated(activation);
        }
    }
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
