//! The forms in which routes write tools and formats. Their meaning is the same.

/// Where the members of a function, a schema and the like are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::api) enum Form {
    /// In an object of their own: `{"type": "function", "function": {"name"}}` and `response_format`.
    Nested,
    /// Beside `type`: `{"type": "function", "name"}`, and the format in `text`.
    Flat,
}
