//! The fuzz targets, a file each. A target takes any bytes and must neither panic nor take more memory than its bounds.

mod chat_template;
mod grammar;
mod hugging_face;
mod image;
mod model_file;
mod request;
mod safetensors;
mod tokenizer;

use crate::bounds::Bounds;

/// The reader of the input, and its bounds.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    name: &'static str,
    pub bounds: Bounds,
    pub run: fn(&[u8]),
}

const MIB: usize = 1 << 20;

const fn target(
    name: &'static str,
    run: fn(&[u8]),
    base_mib: usize,
    per_input_byte: usize,
) -> Target {
    let bounds = Bounds {
        base_bytes: base_mib * MIB,
        per_input_byte,
    };
    Target { name, bounds, run }
}

/// Names are those of the folders in `tests/fuzz/corpus`. The bounds are those of docs/security.md.
const TARGETS: [Target; 9] = [
    target("gguf", model_file::run, 8, 256),
    target("projector", model_file::run, 8, 256),
    target("safetensors", safetensors::run, 4, 64),
    target("hugging_face", hugging_face::run, 16, 256),
    target("tokenizer", tokenizer::run, 16, 1024),
    target("chat_template", chat_template::run, 64, 64),
    target("request", request::run, 64, 256),
    target("image", image::run, 64, 4096),
    target("grammar", grammar::run, 128, 1024),
];

/// The target that `INPAGE_FUZZ_TARGET` names.
pub fn named() -> Target {
    let name = std::env::var("INPAGE_FUZZ_TARGET").unwrap_or_default();
    let known = TARGETS.map(|target| target.name).join(", ");
    let target = TARGETS.into_iter().find(|target| target.name == name);
    target.unwrap_or_else(|| panic!("INPAGE_FUZZ_TARGET is {name:?}; targets: {known}"))
}
