//! Finds the shared test data (real models, references): the folder `INPAGE_MODELS`, or `shared/models`
//! beside the repository.

use std::path::PathBuf;

/// The folder, or `None` if it does not exist. Then a note is printed.
pub fn folder() -> Option<PathBuf> {
    let beside = concat!(env!("CARGO_MANIFEST_DIR"), "/../shared/models");
    let folder = std::env::var_os("INPAGE_MODELS").map_or_else(|| beside.into(), PathBuf::from);
    if folder.is_dir() {
        return Some(folder);
    }
    println!(
        "skipped: no shared models at {} (set INPAGE_MODELS)",
        folder.display()
    );
    None
}
