//! The files of the models in `images`: an archive `NAME.tar` each or, where programs other than these tests load the models,
//! files of their own.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use inpage::weights::{BytesSource, Gguf};
use pollster::block_on;
use serde_json::Value;

use crate::archive;

/// Each file in an archive, and how the file is called after NAME if there is no archive.
const FILES: [(&str, &str); 5] = [
    ("text.gguf", "gguf"),
    ("tower.gguf", "mmproj.gguf"),
    ("reference.json", "json"),
    ("folder.json", "folder.json"),
    ("rows.npy", "npy"),
];

pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/parity/images")
}

/// The files of a model.
pub struct ImageFiles(BTreeMap<String, Vec<u8>>);

impl ImageFiles {
    pub fn of(name: &str) -> ImageFiles {
        let read = |end: &str| std::fs::read(folder().join(format!("{name}.{end}")));
        if let Ok(bytes) = read("tar") {
            return ImageFiles(archive::files(&bytes));
        }
        let files = FILES.into_iter().filter_map(|(part, end)| {
            let bytes = read(end).ok()?;
            Some((part.to_owned(), bytes))
        });
        ImageFiles(files.collect())
    }

    /// All models whose rows of images are in a file of their own (`vision_grids.py`), or all others (`vision.py`).
    pub fn names(have_rows: bool) -> Vec<String> {
        let entries = std::fs::read_dir(folder()).expect("the folder of the models");
        let name = |file: String| Some(file.split('.').next()?.to_owned());
        let names: BTreeSet<String> = entries
            .filter_map(|entry| name(entry.ok()?.file_name().into_string().ok()?))
            .collect();
        let mut names: Vec<String> = names.into_iter().collect();
        names.retain(|name| ImageFiles::of(name).0.contains_key("rows.npy") == have_rows);
        assert!(!names.is_empty());
        names
    }

    pub fn bytes(&self, part: &str) -> &[u8] {
        &self.0[part]
    }

    pub fn json(&self, part: &str) -> Value {
        serde_json::from_slice(self.bytes(part)).expect("JSON")
    }

    pub fn gguf(&self, part: &str) -> (Gguf, BytesSource<Vec<u8>>) {
        let source = BytesSource(self.bytes(part).to_vec());
        (block_on(Gguf::read(&source)).expect("a GGUF"), source)
    }

    /// The text model and its tower.
    pub fn ggufs(&self) -> [(Gguf, BytesSource<Vec<u8>>); 2] {
        ["text.gguf", "tower.gguf"].map(|part| self.gguf(part))
    }
}

/// A family without a model here would not be tested.
#[test]
fn every_vision_family_has_a_model() {
    let names = [true, false].into_iter().flat_map(ImageFiles::names);
    let tested = names.map(|name| {
        let folder = ImageFiles::of(&name).json("folder.json");
        let model_type = folder["config.json"]["model_type"].as_str();
        model_type.unwrap().to_owned()
    });
    let tested: BTreeSet<String> = tested.collect();
    for types in inpage::model::vision_family_model_types() {
        assert!(types.iter().any(|it| tested.contains(*it)), "{types:?}");
    }
}
