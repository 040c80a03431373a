//! The hyperparameters of a vision tower and its projector: what its family declares, and what the metadata of an `mmproj`
//! file says. `read` reads the latter.

use crate::{
    Result,
    images::{Filter, ImageFormat, ImageGeometry, ImageMarkup},
    model::config::{Keys, ModelConfig, NormKind},
};

/// `general.architecture` of files with a vision tower.
pub const ARCHITECTURE: &str = "clip";

/// The facts that all towers of a family have in common, beside the layers of a vision transformer (Dosovitskiy et al. 2020,
/// <https://arxiv.org/abs/2010.11929>).
#[derive(Debug)]
pub struct TowerKind {
    /// Frames of a video that become a patch, each by a matrix of its own. An image is all frames.
    pub frames: usize,
    /// Whether the matrix of the first frame has a bias.
    pub has_patch_bias: bool,
    /// The learned position that is added to each patch.
    pub positions: LearnedPositions,
    /// Whether the width of the feed-forwards is that of their tensors, because files state another one.
    pub ffn_dim_of_tensors: bool,
    /// Whether values around the matrices of layers may have limits.
    pub has_limits: bool,
    /// Reads how patches become rows of the text model: metadata, image size and patch size in pixels.
    pub squares: fn(&Keys, usize, usize) -> Result<Squares>,
    /// The projector's tensors.
    pub projector: ProjectorKind,
    /// Whether each row of an image sees all of its rows in the text model.
    pub is_seen_whole: bool,
    /// Whether text models without a vector per token and layer see images in another way, which is not supported.
    pub needs_layer_inputs: bool,
    /// Whether rotary positions of the text model are those of rows in their image.
    pub places_rows: bool,
    /// Tokens and text of prompts with images.
    pub markup: ImageMarkup,
    /// The filter that images are resized with.
    pub filter: Filter,
}

/// The way in which rows of patches become rows of the text model.
#[derive(Debug)]
pub struct ProjectorKind {
    /// The treatment of the patches of a square.
    pub join: Join,
    /// The norm before the first matrix.
    pub norm: Option<ProjectorNorm>,
    /// The matrices. Between them is a GELU.
    pub linears: &'static [&'static str],
    /// Whether files hold matrices that rows are multiplied by from the right.
    pub is_transposed: bool,
}

/// The norm before the first matrix of a projector.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ProjectorNorm {
    /// Its name in `mmproj` files; `None` if it has no weights.
    pub name: Option<&'static str>,
    /// Its kind.
    pub kind: NormKind,
    /// The addend of the mean square or the variance; that of the tower's norms if `None`.
    pub eps: Option<f32>,
    /// Whether some models have none.
    pub is_optional: bool,
}

/// A learned position of each patch, from a table of a square of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LearnedPositions {
    /// No positions are learned.
    None,
    /// The corners of an image are those of the table; between them positions are interpolated.
    Corners,
    /// The table is resized like an image, by a triangle as wide as a patch of the table or of the image, whichever is wider.
    Resized,
    /// The sum of an entry for the column and one for the row, from two tables.
    PerAxis,
}

/// The treatment of the patches of a square.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Join {
    /// One row, patch after patch.
    Concatenate,
    /// The mean of the patches.
    Mean,
    /// The mean of the patches times the root of its length.
    LargeMean,
}

/// Squares of patches, each of which becomes a row of the text model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Squares {
    /// Patches on each side of a square.
    pub side: usize,
    /// The maximum number of patches of the pixels that the tower takes at once.
    pub max_patches: usize,
    /// The sizes that images get.
    pub geometry: ImageGeometry,
}

/// Windows of an image: parts from the top left, cut off at its right and lower edge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Windows {
    /// Width and height of a window, in squares of patches.
    pub side: usize,
    /// The period of the layers that attend to the whole image: the last one of each.
    pub period: usize,
}

impl Windows {
    /// Whether a layer attends to the whole image.
    pub fn is_whole(self, layer: usize) -> bool {
        (layer + 1).is_multiple_of(self.period)
    }
}

/// A tower, and how its rows become rows of the text model.
#[derive(Debug, Clone)]
pub struct VisionConfig {
    /// `clip.projector_type`.
    pub kind: &'static str,
    /// The declaration of its family.
    pub tower: &'static TowerKind,
    /// Its layers.
    pub layers: ModelConfig,
    /// Patches that become rows.
    pub squares: Squares,
    /// Windows within which most layers attend; `None` if all layers attend to the whole image.
    pub windows: Option<Windows>,
    /// Width and height of an image, or of what learned positions cover, in pixels: a multiple of the patch size.
    pub image_size: usize,
    /// Width and height of a patch, in pixels.
    pub patch_size: usize,
    /// The number that is subtracted from each channel, whose values are 0 to 1.
    pub mean: [f32; 3],
    /// The divisor of each channel after the subtraction.
    pub std: [f32; 3],
    /// Width of the text model.
    pub projection_dim: usize,
    /// Layers whose outputs become values for the first layers of the text model, too.
    pub deepstack: Vec<usize>,
}

impl VisionConfig {
    /// The form of its images.
    pub fn format(&self) -> ImageFormat {
        ImageFormat {
            markup: &self.tower.markup,
            filter: self.tower.filter,
            geometry: self.squares.geometry,
        }
    }

    /// Patches on each side of what learned positions cover.
    pub fn position_side(&self) -> usize {
        self.image_size / self.patch_size
    }

    /// The maximum number of patches above or beside each other.
    pub fn longest_side(&self) -> usize {
        self.squares.max_patches / self.squares.side
    }

    /// Patches that become a row.
    pub fn square(&self) -> usize {
        self.squares.side.pow(2)
    }

    /// Width and height of the square of pixels that becomes a row, if rows have places in the text model.
    pub fn row_side(&self) -> Option<usize> {
        let side = self.squares.side * self.patch_size;
        self.tower.places_rows.then_some(side)
    }

    /// Numbers of a patch: three channels.
    pub fn patch_values(&self) -> usize {
        3 * self.patch_size.pow(2)
    }

    /// The maximum number of rows of the text model that pixels become at once.
    pub fn rows(&self) -> usize {
        self.squares.max_patches / self.square()
    }

    /// Columns of the patches of a square, joined.
    pub fn joined_dim(&self) -> usize {
        match self.tower.projector.join {
            Join::Concatenate => self.layers.dim * self.square(),
            Join::Mean | Join::LargeMean => self.layers.dim,
        }
    }
}
