//! Decodes an image's file natively. In a page the browser does it.

use std::io::Cursor;

use image::{DynamicImage, ImageDecoder, ImageFormat, ImageReader, Limits};

use super::webp_frames::check_webp_frames;
use super::{FileFormat, FileHeader, Image, check_size};

/// Memory that a decoder may take besides the image, for formats whose decoder counts it.
const BASE_DECODER_BYTES: u64 = 16 << 20;
const DECODER_BYTES_PER_PIXEL: u64 = 8;

impl Image {
    /// Decodes a file with this header: the first frame, in the orientation that it names, on white. The error says what
    /// is wrong with the file.
    pub fn decode(file: &[u8], header: FileHeader) -> Result<Image, String> {
        let format = match header.format {
            FileFormat::Png => ImageFormat::Png,
            FileFormat::Jpeg => ImageFormat::Jpeg,
            FileFormat::WebP => ImageFormat::WebP,
            FileFormat::Gif => ImageFormat::Gif,
            FileFormat::Bmp => return Image::decode_bmp(file),
        };
        if format == ImageFormat::WebP {
            check_webp_frames(file, [header.width, header.height])?;
        }
        let damaged = |error| format!("it cannot be decoded: {error}");
        let mut reader = ImageReader::with_format(Cursor::new(file), format);
        // The frame of a GIF file may be larger than the image.
        let mut limits = Limits::default();
        let pixels = header.width as u64 * header.height as u64;
        limits.max_alloc = Some(BASE_DECODER_BYTES + DECODER_BYTES_PER_PIXEL * pixels);
        reader.limits(limits);
        let mut decoder = reader.into_decoder().map_err(damaged)?;
        // The decoder may find another size than the header's reader.
        let (width, height) = decoder.dimensions();
        check_size([width as usize, height as usize])?;
        // A browser leaves out what it cannot read of the metadata.
        let orientation = decoder.orientation().ok();
        let mut image = DynamicImage::from_decoder(decoder).map_err(damaged)?;
        if let Some(orientation) = orientation {
            image.apply_orientation(orientation);
        }
        let (width, height) = (image.width() as usize, image.height() as usize);
        Ok(match image.color().has_alpha() {
            false => Image {
                width,
                height,
                rgb: image.into_rgb8().into_raw(),
            },
            true => Image::on_white(width, height, image.into_rgba8().as_raw()),
        })
    }
}
