//! The forms in which routes write tools and formats. Their meaning is the same.

/// The place of the members of a function, a schema and the like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::api) enum Form {
    /// The members are in an object of their own: `{"type": "function", "function": {"name"}}` and `response_format`.
    Nested,
    /// The members are beside `type`: `{"type": "function", "name"}`, and the format in `text`.
    Flat,
}
