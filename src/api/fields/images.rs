//! Images of a request: URLs in `images` (specification 4.2) and in parts of messages (specification 18.2). They are
//! fetched and decoded once the model is known.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::declare::{Field, fields};
use super::kinds::{Shape, shape};
use super::reader::{Fields, invalid_type, invalid_value, shorten};
use crate::Result;
use crate::api::http::Attachment;
use crate::api::switches::Switches;

fields! {
    ImageFields {
        /// Images for a model that sees: `data:` URLs, or one list of them per prompt; with the switch `remoteImages` also
        /// `http:` and `https:` URLs.
        images: Field<Shape> = shape("string[] or string[][]", "string[] | string[][]").of("Fireworks"),
    }
}

const NAME: &str = ImageFields::images.name;
const MIME_TYPES: &[&str] = &[
    "image/png",
    "image/jpeg",
    "image/webp",
    "image/gif",
    "image/bmp",
];

/// The beginning of the URL of an image beside the body; its number follows.
const ATTACHMENT: &str = "attachment:";

/// An image of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::api) enum ImageFile {
    /// The bytes are here.
    Given(Attachment),
    /// The image of this number beside the body.
    Attached(usize),
    /// The image at this `http:` or `https:` URL.
    Remote(String),
}

/// Reads the URLs of a request's images, one after another.
#[derive(Debug)]
pub(in crate::api) struct ImageUrls {
    may_be_remote: bool,
    files: Vec<ImageFile>,
}

impl ImageUrls {
    pub(in crate::api) fn new(switches: &Switches) -> ImageUrls {
        ImageUrls {
            may_be_remote: switches.remote_images,
            files: Vec::new(),
        }
    }

    /// Appends the image of a URL. The error says what is wrong with it.
    pub(in crate::api) fn push(&mut self, url: &str) -> std::result::Result<(), String> {
        let file = read_url(url)?;
        if matches!(file, ImageFile::Remote(_)) && !self.may_be_remote {
            return Err(format!(
                "\"{}\" is not a data: URL, and others are fetched only in a page whose engine has the option remoteImages: true",
                shorten(url)
            ));
        }
        self.files.push(file);
        Ok(())
    }

    /// Images that follow the placeholders of all prompts.
    pub(in crate::api) fn finish(self, field: &'static str) -> RequestImages {
        RequestImages {
            field,
            files: self.files,
            per_prompt: None,
        }
    }
}

/// The images of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::api) struct RequestImages {
    /// The field that holds them, which errors name.
    pub field: &'static str,
    /// The images of all prompts, one after another.
    pub files: Vec<ImageFile>,
    /// The number of images of each prompt; `None`: as many as it has placeholders.
    pub per_prompt: Option<Vec<usize>>,
}

impl RequestImages {
    /// No images.
    pub(in crate::api) fn none(field: &'static str) -> RequestImages {
        RequestImages {
            field,
            files: Vec::new(),
            per_prompt: None,
        }
    }

    /// Takes the images that URLs name from those beside the body.
    ///
    /// # Errors
    /// `invalid_value` for a number that no image has.
    pub(in crate::api) fn attach(&mut self, attachments: &[Attachment]) -> Result<()> {
        for file in &mut self.files {
            let ImageFile::Attached(number) = *file else {
                continue;
            };
            let attachment = attachments.get(number).ok_or_else(|| {
                let (field, count) = (self.field, attachments.len());
                let reason = format!("{ATTACHMENT}{number}, but {count} images are attached");
                invalid_value(field, reason)
            })?;
            *file = ImageFile::Given(attachment.clone());
        }
        Ok(())
    }

    /// Takes all images; none are left.
    pub(in crate::api) fn take(&mut self) -> RequestImages {
        RequestImages {
            field: self.field,
            files: std::mem::take(&mut self.files),
            per_prompt: self.per_prompt.take(),
        }
    }
}

/// Reads the images of `prompts` prompts.
pub(in crate::api) fn read(
    fields: &Fields,
    prompts: usize,
    switches: &Switches,
) -> Result<RequestImages> {
    let given = fields.array(NAME)?.unwrap_or_default();
    let mut images = ImageUrls::new(switches);
    if !given.iter().any(Value::is_array) {
        for url in given {
            push(&mut images, url)?;
        }
        return Ok(images.finish(NAME));
    }
    let mut per_prompt = Vec::new();
    for element in given {
        let Value::Array(urls) = element else {
            let expected = "either strings or one array of strings per prompt";
            return Err(invalid_type(NAME, expected, element));
        };
        per_prompt.push(urls.len());
        for url in urls {
            push(&mut images, url)?;
        }
    }
    if per_prompt.len() != prompts {
        let message = format!("{} lists for {prompts} prompts", per_prompt.len());
        return Err(invalid_value(NAME, message));
    }
    Ok(RequestImages {
        per_prompt: (!per_prompt.iter().all(|count| *count == 0)).then_some(per_prompt),
        ..images.finish(NAME)
    })
}

fn push(images: &mut ImageUrls, given: &Value) -> Result<()> {
    let url = given.as_str();
    let url = url.ok_or_else(|| invalid_type(NAME, "made of strings", given))?;
    images
        .push(url)
        .map_err(|reason| invalid_value(NAME, reason))
}

/// The image of a URL, or what is wrong with it.
fn read_url(url: &str) -> std::result::Result<ImageFile, String> {
    if let Some(number) = url.strip_prefix(ATTACHMENT) {
        let number = number.parse().ok();
        let number = number.ok_or_else(|| format!("\"{}\" has no number", shorten(url)))?;
        return Ok(ImageFile::Attached(number));
    }
    if has_scheme(url, "https://") || has_scheme(url, "http://") {
        return Ok(ImageFile::Remote(url.to_owned()));
    }
    if !has_scheme(url, "data:") {
        return Err(format!("\"{}\" is not a data: URL", shorten(url)));
    }
    let Some((mime, payload)) = url["data:".len()..].split_once(";base64,") else {
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

fn has_scheme(url: &str, scheme: &str) -> bool {
    // Compared byte by byte: the text may be cut anywhere.
    let start = url.as_bytes().get(..scheme.len());
    start.is_some_and(|start| start.eq_ignore_ascii_case(scheme.as_bytes()))
}
