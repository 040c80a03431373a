//! Qwen3.5: the tower of Qwen3-VL, whose files have the same projector, without values for layers of the text model.

use super::{
    family::Family,
    folder::{FolderKind, nested_text},
    qwen3vl,
};

pub const FAMILY: Family = Family {
    folder: FolderKind {
        model_types: &["qwen3_5", "qwen3_5_moe"],
        text: nested_text,
        deepstack: &[],
        ..qwen3vl::FAMILY.folder
    },
    ..qwen3vl::FAMILY
};
