//! JSON text of wire types.

use serde::Serialize;

/// JSON in one line.
pub(super) fn to_json<T: Serialize>(value: &T) -> Vec<u8> {
    // Only non-string map keys or a failing `Serialize` could fail here, and the wire types have
    // neither.
    serde_json::to_vec(value).unwrap_or_default()
}
