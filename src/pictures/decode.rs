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
            FileFormat::Bmp => ImageFormat::Bmp,
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
        let rgb = match image.color().has_alpha() {
            false => image.into_rgb8().into_raw(),
            true => on_white(image.into_rgba8().as_raw()),
        };
        Ok(Picture { width, height, rgb })
    }
}

/// Red, green, blue and opacity of pixels to what is seen on white.
fn on_white(rgba: &[u8]) -> Vec<u8> {
    let pixels = rgba.chunks_exact(4).flat_map(|pixel| {
        let opacity = u32::from(pixel[3]);
        let blend = move |channel: u8| {
            let sum = u32::from(channel) * opacity + 255 * (255 - opacity);
            ((sum + 127) / 255) as u8
        };
        [blend(pixel[0]), blend(pixel[1]), blend(pixel[2])]
    });
    pixels.collect()
}
