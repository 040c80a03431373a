//! The families of models that take images. Each is a file, which declares its towers, images and folders, and a `mod`
//! line and a list entry here; `docs/adding-a-vision-family.md` describes the steps. How a tower computes is in `layers`.

mod config;
mod family;
mod folder;
mod grids;
mod read;
mod siglip;

mod gemma3;
mod gemma4;
mod idefics3;
mod lfm2;
mod qwen25vl;
mod qwen2vl;
mod qwen35;
mod qwen3vl;

pub use config::{ARCHITECTURE, Join, LearnedPositions, ProjectorNorm, VisionConfig, Windows};
pub use family::Family;
pub use folder::{DEEPSTACK, FolderJson, layers};

use self::read::unsupported;
use super::config::{ConfigJson, Keys};
use crate::{Result, weights::Metadata};

/// All supported families.
const FAMILIES: &[&Family] = &[
    &gemma3::FAMILY,
    &gemma4::FAMILY,
    &idefics3::FAMILY,
    &lfm2::FAMILY,
    &qwen2vl::FAMILY,
    &qwen25vl::FAMILY,
    &qwen3vl::FAMILY,
    &qwen35::FAMILY,
];

/// The values of `model_type` of each supported family's folders. Some families have the projector of another one.
pub fn family_model_types() -> impl Iterator<Item = &'static [&'static str]> {
    FAMILIES.iter().map(|family| family.folder.model_types)
}

/// The family of Hugging Face folders with this `config.json`; `None` if it has no tower that this build knows.
///
/// # Errors
/// [`crate::Error::InvalidModelFile`] if `model_type` is not a string.
pub fn find_by_config(config: &ConfigJson) -> Result<Option<&'static Family>> {
    let model_type = config.str("model_type")?.unwrap_or_default();
    let mut families = FAMILIES.iter().copied();
    Ok(families.find(|it| it.folder.model_types.contains(&model_type)))
}

/// Reads the metadata of an `mmproj` file.
///
/// # Errors
/// [`crate::Error::UnsupportedModel`] for families and values that this build does not support,
/// [`crate::Error::InvalidModelFile`] for missing, mistyped or contradictory values. The text names the key.
pub fn read_config(metadata: &Metadata) -> Result<VisionConfig> {
    let keys = Keys::new(metadata, "clip.vision");
    if metadata.bool("clip.has_vision_encoder")? == Some(false) {
        return Err(unsupported("without a vision tower"));
    }
    let projector = match metadata.str("clip.projector_type")? {
        Some(projector) => Some(projector),
        None => keys.str("projector_type")?,
    };
    let projector = projector.ok_or_else(|| unsupported("without clip.projector_type"))?;
    let family = FAMILIES.iter().find(|it| it.projector == projector);
    let family = family.ok_or_else(|| {
        let projector: String = projector.chars().take(64).collect();
        unsupported(&format!("with a projector {projector:?}"))
    })?;
    let mut config = read::read(&keys, family.projector, &family.tower)?;
    (family.configure)(&keys, &mut config)?;
    Ok(config)
}

#[cfg(test)]
mod tests;
