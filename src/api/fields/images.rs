//! Pictures of a request: data URLs in `images` (specification 4.2) and in parts of messages (specification 18.2). What is
//! in them is decoded once the model is known.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::declare::fields;
use super::reader::{Fields, invalid_type, invalid_value, shorten};
use crate::Result;
use crate::api::http::Attachment;

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

/// How the URL of a picture beside the body begins; its number follows.
const ATTACHMENT: &str = "attachment:";

/// A picture of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::api) enum ImageFile {
    /// It is here.
    Given(Attachment),
    /// The picture of this number beside the body.
    Attached(usize),
}

/// The pictures of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::api) struct Images {
    /// The field that holds them, which errors name.
    pub field: &'static str,
    /// Those of all prompts, one after another.
    pub files: Vec<ImageFile>,
    /// How many belong to each prompt; `None`: as many as it has placeholders.
    pub per_prompt: Option<Vec<usize>>,
}

impl Images {
    /// Pictures that follow the placeholders of all prompts.
    pub(in crate::api) fn new(field: &'static str, files: Vec<ImageFile>) -> Images {
        Images {
            field,
            files,
            per_prompt: None,
        }
    }

    /// Takes the pictures that URLs name from those beside the body.
    ///
    /// # Errors
    /// `invalid_value` for a number that no picture has.
    pub(in crate::api) fn attach(&mut self, attachments: &[Attachment]) -> Result<()> {
        for file in &mut self.files {
            let ImageFile::Attached(number) = *file else {
                continue;
            };
            let attachment = attachments.get(number).ok_or_else(|| {
                let (field, count) = (self.field, attachments.len());
                let reason = format!("{ATTACHMENT}{number}, but {count} pictures are attached");
                invalid_value(field, reason)
            })?;
            *file = ImageFile::Given(attachment.clone());
        }
        Ok(())
    }

    /// All of them; none are left.
    pub(in crate::api) fn take(&mut self) -> Images {
        let none = Images::new(self.field, Vec::new());
        std::mem::replace(self, none)
    }
}

/// Reads the pictures of `prompts` prompts.
pub(in crate::api) fn read(fields: &Fields, prompts: usize) -> Result<Images> {
    let given = fields.array(NAME)?.unwrap_or_default();
    if !given.iter().any(Value::is_array) {
        let files = given.iter().map(image).collect::<Result<Vec<_>>>()?;
        return Ok(Images::new(NAME, files));
    }
    let mut files = Vec::new();
    let mut per_prompt = Vec::new();
    for element in given {
        let Value::Array(images) = element else {
            let expected = "either strings or one array of strings per prompt";
            return Err(invalid_type(NAME, expected, element));
        };
        per_prompt.push(images.len());
        for given in images {
            files.push(image(given)?);
        }
    }
    if per_prompt.len() != prompts {
        let message = format!("{} lists for {prompts} prompts", per_prompt.len());
        return Err(invalid_value(NAME, message));
    }
    Ok(Images {
        field: NAME,
        files,
        per_prompt: (!per_prompt.iter().all(|count| *count == 0)).then_some(per_prompt),
    })
}

fn image(given: &Value) -> Result<ImageFile> {
    let url = given.as_str();
    let url = url.ok_or_else(|| invalid_type(NAME, "made of strings", given))?;
    read_url(url).map_err(|reason| invalid_value(NAME, reason))
}

/// The picture of a URL, or what is wrong with it.
pub(in crate::api) fn read_url(url: &str) -> std::result::Result<ImageFile, String> {
    if let Some(number) = url.strip_prefix(ATTACHMENT) {
        let number = number.parse().ok();
        let number = number.ok_or_else(|| format!("\"{}\" has no number", shorten(url)))?;
        return Ok(ImageFile::Attached(number));
    }
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
    if !MIME_TYPES
        .iter()
        .any(|known| mime.eq_ignore_ascii_case(known))
    {
        let (mime, known) = (shorten(mime), MIME_TYPES.join(", "));
        return Err(format!("\"{mime}\" is not one of {known}"));
    }
    match STANDARD.decode(payload) {
        Ok(bytes) if !bytes.is_empty() => Ok(ImageFile::Given(Attachment::File(bytes.into()))),
        _ => Err("the data is not valid base64".into()),
    }
}
