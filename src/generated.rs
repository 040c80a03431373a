//! Files that are generated from the code. The tests of `typescript` and `api::reference` compare them with what they should
//! contain; with `INPAGE_GENERATE=1` in the environment they rewrite them instead.

use std::path::Path;

/// Checks the file at `path` from the root of the repository. `content` makes the text that it should contain from its text.
pub fn check(path: &str, content: impl FnOnce(&str) -> String) {
    let place = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    // A checkout may have different line endings.
    let found = std::fs::read_to_string(&place).unwrap_or_default();
    let found = found.replace("\r\n", "\n");
    let wanted = content(&found);
    if std::env::var_os("INPAGE_GENERATE").is_some() {
        std::fs::write(&place, wanted).unwrap();
        return;
    }
    assert!(
        found == wanted,
        "{path} is out of date: run the tests `generated` with INPAGE_GENERATE=1"
    );
}
