//! Decodes a picture's file natively. In a page the browser does it.

use std::io::Cursor;

use image::{DynamicImage, ImageDecoder, ImageFormat, ImageReader};

use super::{FileFormat, FileHeader, Picture};

impl Picture {
    /// Decodes a file with this header: the first frame, in the orientation that it names, on white. The error says what
    /// is wrong with the file.
    pub fn decode(file: &[u8], header: FileHeader) -> Result<Picture, String> {
        let format = match header.format {
            FileFormat::Png => ImageFormat::Png,
            FileFormat::Jpeg => ImageFormat::Jpeg,
            FileFormat::WebP => ImageFormat::WebP,
            FileFormat::Gif => ImageFormat::Gif,
            FileFormat::Bmp => return Picture::decode_bmp(file),
        };
        let damaged = |error| format!("it cannot be decoded: {error}");
        let reader = ImageReader::with_format(Cursor::new(file), format);
        let mut decoder = reader.into_decoder().map_err(damaged)?;
        // A browser leaves out what it cannot read of the metadata.
        let orientation = decoder.orientation().ok();
        let mut image = DynamicImage::from_decoder(decoder).map_err(damaged)?;
        if let Some(orientation) = orientation {
            image.apply_orientation(orientation);
        }
        let (width, height) = (image.width() as usize, image.height() as usize);
        Ok(match image.color().has_alpha() {
            false => Picture {
                width,
                height,
                rgb: image.into_rgb8().into_raw(),
            },
            true => Picture::on_white(width, height, image.into_rgba8().as_raw()),
        })
    }
}
