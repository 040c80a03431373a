//! `images` (specification 4.2): data URLs with pictures. What is in them is decoded once the model is known.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::declare::fields;
use super::reader::{Fields, invalid_type, invalid_value, shorten};
use crate::Result;

fields! {
    ImageFields {
        /// `data:` URLs, or one list of them per prompt.
        #[ts(optional, type = "string[] | string[][] | null")]
        images: Option<()>,
    }
}

pub(in crate::api) const NAME: &str = "images";
const MIME_TYPES: &[&str] = &[
    "image/png",
    "image/jpeg",
    "image/webp",
    "image/gif",
    "image/bmp",
];

/// The bytes of a picture's file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::api) struct ImageFile {
    pub mime_type: &'static str,
    pub bytes: Vec<u8>,
}

/// The pictures of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::api) enum Images {
    /// Those of all prompts, one after another.
    Together(Vec<ImageFile>),
    /// A list per prompt.
    PerPrompt(Vec<Vec<ImageFile>>),
}

impl Images {
    pub(in crate::api) const NONE: Images = Images::Together(Vec::new());

    pub(in crate::api) fn count(&self) -> usize {
        match self {
            Images::Together(files) => files.len(),
            Images::PerPrompt(lists) => lists.iter().map(Vec::len).sum(),
        }
    }

    /// All of them, in their order.
    pub(in crate::api) fn files(&self) -> impl Iterator<Item = &ImageFile> {
        let lists = match self {
            Images::Together(files) => std::slice::from_ref(files),
            Images::PerPrompt(lists) => lists,
        };
        lists.iter().flatten()
    }
}

/// Reads the pictures of `prompts` prompts.
pub(in crate::api) fn read(fields: &Fields, prompts: usize) -> Result<Images> {
    let given = fields.array(NAME)?.unwrap_or_default();
    let lists = given.iter().filter(|it| it.is_array()).count();
    if lists == 0 {
        let files = given.iter().map(image).collect::<Result<Vec<_>>>()?;
        return Ok(Images::Together(files));
    }
    let of_prompt = |element: &Value| match element {
        Value::Array(images) => images.iter().map(image).collect::<Result<Vec<_>>>(),
        other => Err(invalid_type(NAME, "made of lists, like its first ones", other)),
    };
    let lists = given.iter().map(of_prompt).collect::<Result<Vec<_>>>()?;
    if lists.len() != prompts {
        let message = format!("{} lists are given for {prompts} prompts", lists.len());
        return Err(invalid_value(NAME, message));
    }
    Ok(Images::PerPrompt(lists))
}

fn image(given: &Value) -> Result<ImageFile> {
    let url = given.as_str();
    read_url(url.ok_or_else(|| invalid_type(NAME, "made of strings", given))?).map_err(|reason| invalid_value(NAME, reason))
}

/// The picture of a data URL, or what is wrong with it.
pub(in crate::api) fn read_url(url: &str) -> std::result::Result<ImageFile, String> {
    // Compared byte by byte: the text may be cut anywhere.
    if !url
        .as_bytes()
        .get(..5)
        .is_some_and(|scheme| scheme.eq_ignore_ascii_case(b"data:"))
    {
        return Err(format!("\"{}\" is not a data: URL", shorten(url)));
    }
    let Some((mime, payload)) = url[5..].split_once(";base64,") else {
        return Err("a data URL needs \";base64,\"".into());
    };
    let known = MIME_TYPES.iter().find(|known| mime.eq_ignore_ascii_case(known));
    let Some(mime_type) = known else {
        let (mime, known) = (shorten(mime), MIME_TYPES.join(", "));
        return Err(format!("\"{mime}\" is not one of {known}"));
    };
    match STANDARD.decode(payload) {
        Ok(bytes) if !bytes.is_empty() => Ok(ImageFile { mime_type, bytes }),
        _ => Err("the data is not valid base64".into()),
    }
}
