//! Names from a file in messages.

/// A name in quotes, escaped and cut to 80 characters, since a hostile file may choose it.
pub(crate) fn quoted(name: &str) -> String {
    const MAX_CHARS: usize = 80;
    let mut shown: String = name.chars().take(MAX_CHARS).collect();
    if shown.len() < name.len() {
        shown.push_str("...");
    }
    format!("{shown:?}")
}
