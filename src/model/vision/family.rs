//! The declaration of a family of models that take images.

use super::{
    config::{TowerKind, VisionConfig},
    folder::FolderKind,
};
use crate::{Result, model::config::Keys};

/// The declaration of a family.
#[derive(Debug)]
pub struct Family {
    /// `clip.projector_type` of its `mmproj` files.
    pub projector: &'static str,
    /// Its towers, and what becomes of images.
    pub tower: TowerKind,
    /// Changes the configuration of a plain vision transformer to that of this family. Reads the metadata keys that only
    /// this family has.
    pub configure: fn(&Keys, &mut VisionConfig) -> Result<()>,
    /// Its Hugging Face folders.
    pub folder: FolderKind,
}
