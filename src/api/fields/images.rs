//! `images` (specification 4.2): data URLs are validated and then rejected, because all models are
//! text-only.

use serde_json::Value;

use super::declare::fields;
use super::reader::{Fields, invalid_type, invalid_value, shorten};
use crate::api::error::fault;
use crate::{RequestFault, Result};

fields! {
    ImageFields {
        /// `data:` URLs, or one list of them per prompt.
        #[ts(optional, type = "string[] | string[][] | null")]
        images: Option<()>,
    }
}

const NAME: &str = "images";
const MIME_TYPES: &[&str] = &[
    "image/png",
    "image/jpeg",
    "image/webp",
    "image/gif",
    "image/bmp",
];

/// Fails if there is any image, whether it is well-formed or not.
pub(in crate::api) fn check(fields: &Fields) -> Result<()> {
    let mut count = 0_usize;
    for element in fields.array(NAME)?.unwrap_or_default() {
        // One image, or one list of images per prompt.
        let images = match element {
            Value::Array(images) => images.as_slice(),
            image => std::slice::from_ref(image),
        };
        for image in images {
            let url = image
                .as_str()
                .ok_or_else(|| invalid_type(NAME, "made of strings", image))?;
            check_data_url(url)?;
            count += 1;
        }
    }
    match count {
        0 => Ok(()),
        _ => Err(fault(
            RequestFault::UnsupportedParameter,
            NAME,
            format!("images: the model takes text only, but {count} images are given"),
        )),
    }
}

fn check_data_url(url: &str) -> Result<()> {
    // Compared byte by byte: the text may be cut anywhere.
    if !url
        .as_bytes()
        .get(..5)
        .is_some_and(|scheme| scheme.eq_ignore_ascii_case(b"data:"))
    {
        let message = format!("\"{}\" is not a data: URL", shorten(url));
        return Err(invalid_value(NAME, message));
    }
    let Some((mime, payload)) = url[5..].split_once(";base64,") else {
        return Err(invalid_value(NAME, "a data URL needs \";base64,\""));
    };
    if !MIME_TYPES
        .iter()
        .any(|known| mime.eq_ignore_ascii_case(known))
    {
        let message = format!(
            "\"{}\" is not one of {}",
            shorten(mime),
            MIME_TYPES.join(", ")
        );
        return Err(invalid_value(NAME, message));
    }
    if !is_base64(payload) {
        return Err(invalid_value(NAME, "the data is not valid base64"));
    }
    Ok(())
}

/// Whether this is RFC 4648's base64 of at least one byte: padded, nothing between the characters.
fn is_base64(text: &str) -> bool {
    let data = text.strip_suffix('=').unwrap_or(text);
    let data = data.strip_suffix('=').unwrap_or(data);
    let is_digit = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'+' || byte == b'/';
    !text.is_empty() && text.len().is_multiple_of(4) && data.bytes().all(is_digit)
}
