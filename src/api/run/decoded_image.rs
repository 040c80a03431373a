//! One image of a request: its size, then its pixels as the model takes them. Images of all requests are decoded one at a
//! time.

use std::hash::{DefaultHasher, Hasher};
use std::rc::Rc;

use crate::api::endpoint::Endpoint;
use crate::api::host::ImageError;
use crate::api::http::Attachment;
use crate::api::models::ImageReader;
use crate::engine::Permit;
use crate::engine::generation::{Content, Embeddings};
use crate::images::{Cost, FileHeader, Image, ImageFormat, Part};

/// The text and the embeddings that replace a placeholder.
#[derive(Debug)]
pub(super) struct Decoded {
    /// The text that replaces the placeholder. It has the token of a row once per element of `rows`.
    pub text: String,
    /// The rows of each part that is pixels.
    pub rows: Vec<usize>,
    /// These parts; none if the image is only measured.
    pub pixels: Vec<Rc<Embeddings>>,
}

/// An image of a size that the model takes. It may have to be decoded.
pub(super) enum SizedImage {
    File(Rc<[u8]>, FileHeader, Cost),
    Pixels(Rc<Image>, Cost),
}

impl SizedImage {
    /// Reads the size. The error says what is wrong with it or with the file's header.
    pub(super) fn new(given: Attachment, format: ImageFormat) -> Result<SizedImage, ImageError> {
        match given {
            Attachment::File(file) => {
                let header = FileHeader::read(&file)?;
                let FileHeader { width, height, .. } = header;
                // The file may name an orientation that exchanges its sides.
                let [stored, turned] = [[width, height], [height, width]].map(|it| format.cost(it));
                let (stored, turned) = (stored?, turned?);
                let cost = Cost {
                    rows: stored.rows.min(turned.rows),
                    bytes: stored.bytes.max(turned.bytes),
                };
                Ok(SizedImage::File(file, header, cost))
            }
            Attachment::Pixels(image) => {
                let cost = cost(&image, format)?;
                Ok(SizedImage::Pixels(image, cost))
            }
        }
    }

    /// The fewest rows and the most bytes that it may become.
    pub(super) fn cost(&self) -> Cost {
        let (SizedImage::File(.., cost) | SizedImage::Pixels(_, cost)) = self;
        *cost
    }

    /// Decodes and converts it when it is its turn, and returns the cost.
    pub(super) async fn decode(
        self,
        reader: &ImageReader,
        endpoint: &Endpoint,
    ) -> Result<(Decoded, Cost), ImageError> {
        // Held until the image was converted.
        let turn = Rc::new(endpoint.decoder.acquire(1).await);
        let (image, key) = self.pixels(endpoint, &turn).await?;
        let cost = cost(&image, reader.format)?;
        Ok((converted(&image, key, reader), cost))
    }

    /// Determines the text, the rows and the cost without converting pixels. The file is decoded, because it may name an orientation, and because a damaged one is
    /// refused as in [`SizedImage::decode`].
    pub(super) async fn measure(
        self,
        reader: &ImageReader,
        endpoint: &Endpoint,
    ) -> Result<(Decoded, Cost), ImageError> {
        let turn = Rc::new(endpoint.decoder.acquire(1).await);
        let (image, _) = self.pixels(endpoint, &turn).await?;
        let cost = cost(&image, reader.format)?;
        let (text, rows) = reader.format.outline([image.width, image.height]);
        let pixels = Vec::new();
        Ok((Decoded { text, rows, pixels }, cost))
    }

    /// The image with its orientation applied, and a name for it. `turn` is the turn to decode.
    async fn pixels(
        self,
        endpoint: &Endpoint,
        turn: &Rc<Permit>,
    ) -> Result<(Rc<Image>, u128), ImageError> {
        match self {
            SizedImage::File(file, header, _) => {
                let key = key(|hasher| hasher.write(&file));
                let image = endpoint.host.decode_image(file, header, turn.clone());
                Ok((Rc::new(image.await?), key))
            }
            SizedImage::Pixels(image, _) => {
                let key = key(|hasher| {
                    hasher.write_usize(image.width);
                    hasher.write(&image.rgb);
                });
                Ok((image, key))
            }
        }
    }
}

/// The cost of converting pixels. The error says why they are not converted.
fn cost(image: &Image, format: ImageFormat) -> Result<Cost, String> {
    let Image { width, height, rgb } = image;
    let cost = format.cost([*width, *height])?;
    match rgb.len() == 3 * width * height {
        true => Ok(cost),
        false => Err("it has too few or too many pixels".into()),
    }
}

fn converted(image: &Image, key: u128, reader: &ImageReader) -> Decoded {
    let mut decoded = Decoded {
        text: String::new(),
        rows: Vec::new(),
        pixels: Vec::new(),
    };
    for part in reader.format.parts(image) {
        match part {
            Part::Text(text) => decoded.text.push_str(&text),
            Part::Pixels(pixels, positions) => {
                decoded.text.push_str(reader.format.row_token());
                decoded.rows.push(positions);
                decoded.pixels.push(Rc::new(Embeddings {
                    // Parts of an image differ in the low bits.
                    key: key.wrapping_add(decoded.pixels.len() as u128),
                    positions,
                    content: Content::Pixels(pixels),
                }));
            }
        }
    }
    decoded
}

/// A name for what `write` writes. It is valid for this run of the program.
fn key(write: impl Fn(&mut DefaultHasher)) -> u128 {
    let half = |salt: u8| {
        let mut hasher = DefaultHasher::new();
        hasher.write_u8(salt);
        write(&mut hasher);
        u128::from(hasher.finish())
    };
    half(0) << 64 | half(1)
}
