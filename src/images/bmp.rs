//! Decodes BMP files, natively and for programs whose decoder does not know the format.

use std::io::Cursor;

use image::codecs::bmp::BmpDecoder;
use image::{ColorType, ImageDecoder};

use super::{Image, check_size};

impl Image {
    /// Decodes a BMP file whose header was checked, on white. The error says what is wrong with the file.
    pub fn decode_bmp(file: &[u8]) -> Result<Image, String> {
        let damaged = |error| format!("it cannot be decoded: {error}");
        let decoder = BmpDecoder::new(Cursor::new(file)).map_err(damaged)?;
        let (width, height) = decoder.dimensions();
        let (width, height) = (width as usize, height as usize);
        check_size([width, height])?;
        let color = decoder.color_type();
        let bytes = usize::try_from(decoder.total_bytes()).map_err(|_| "it is too large")?;
        let mut pixels = vec![0; bytes];
        decoder.read_image(&mut pixels).map_err(damaged)?;
        match color {
            ColorType::Rgb8 => Ok(Image {
                width,
                height,
                rgb: pixels,
            }),
            ColorType::Rgba8 => Ok(Image::on_white(width, height, &pixels)),
            other => Err(format!("its colors are of the kind {other:?}")),
        }
    }
}
