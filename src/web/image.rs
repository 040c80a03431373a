//! Decodes an image's file with the browser's decoder, or with that of the program around the package.

use js_sys::{Array, Function, Promise, Uint8Array};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;
use web_sys::{
    Blob, ColorSpaceConversion, ImageBitmap, ImageBitmapOptions, OffscreenCanvas,
    OffscreenCanvasRenderingContext2d,
};

use super::errors::{code_of, message_of};
use crate::api::ImageError;
use crate::images::{FileFormat, FileHeader, Image};

/// Pixels that are read from a canvas at once.
const BAND_PIXELS: u32 = 4 << 20;

#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(catch, js_name = createImageBitmap)]
    async fn create_image_bitmap(
        file: &Blob,
        options: &ImageBitmapOptions,
    ) -> Result<JsValue, JsValue>;

    /// The result of `EngineStart.decodeImage`.
    type DecodedFile;

    #[wasm_bindgen(method, getter)]
    fn width(this: &DecodedFile) -> u32;

    #[wasm_bindgen(method, getter)]
    fn height(this: &DecodedFile) -> u32;

    #[wasm_bindgen(method, getter)]
    fn channels(this: &DecodedFile) -> u32;

    #[wasm_bindgen(method, getter)]
    fn data(this: &DecodedFile) -> Vec<u8>;
}

/// The first frame, in the orientation that the file names, on white. Its colors are those of the file: without
/// conversion to another color space.
/// The pixels are not read if the request for them was dropped by then.
pub(super) async fn decode(
    file: &[u8],
    is_unwanted: impl Fn() -> bool,
) -> Result<Image, ImageError> {
    let bitmap = bitmap(file).await.map_err(failed)?;
    let rgb = match is_unwanted() {
        true => Ok(Vec::new()),
        false => pixels(&bitmap),
    };
    let (width, height) = (bitmap.width() as usize, bitmap.height() as usize);
    bitmap.close();
    let rgb = rgb.map_err(failed)?;
    Ok(Image { width, height, rgb })
}

/// The same with a decoder of the program, which knows all formats but BMP.
pub(super) async fn decode_with(
    decoder: Function,
    file: &[u8],
    header: FileHeader,
) -> Result<Image, ImageError> {
    if header.format == FileFormat::Bmp {
        return Ok(Image::decode_bmp(file)?);
    }
    let bytes = Uint8Array::from(file);
    let decoding = decoder.call1(&JsValue::UNDEFINED, &bytes).map_err(failed)?;
    let decoded = JsFuture::from(Promise::resolve(&decoding)).await;
    let decoded: DecodedFile = decoded.map_err(failed)?.unchecked_into();
    let (width, height) = (decoded.width() as usize, decoded.height() as usize);
    let data = decoded.data();
    Ok(match decoded.channels() {
        4 => Image::on_white(width, height, &data),
        _ => Image {
            width,
            height,
            rgb: data,
        },
    })
}

fn failed(thrown: JsValue) -> ImageError {
    let reason = message_of(&thrown);
    match code_of(&thrown).as_deref() {
        Some("unsupported_parameter") => ImageError::Unsupported(reason),
        _ => ImageError::Invalid(format!("it cannot be decoded: {reason}")),
    }
}

async fn bitmap(file: &[u8]) -> Result<ImageBitmap, JsValue> {
    let parts = Array::of1(&Uint8Array::from(file));
    let blob = Blob::new_with_u8_array_sequence(&parts)?;
    let options = ImageBitmapOptions::new();
    options.set_color_space_conversion(ColorSpaceConversion::None);
    create_image_bitmap(&blob, &options).await?.dyn_into()
}

/// Red, green and blue of each pixel, on white. They are read in bands of rows, because a canvas and its data take four bytes per
/// pixel each.
fn pixels(bitmap: &ImageBitmap) -> Result<Vec<u8>, JsValue> {
    let (width, height) = (bitmap.width(), bitmap.height());
    let band = (BAND_PIXELS / width.max(1)).clamp(1, height.max(1));
    let context = OffscreenCanvas::new(width, band)?.get_context("2d")?;
    let context = context.ok_or_else(|| JsValue::from_str("no 2D canvas"))?;
    let context: OffscreenCanvasRenderingContext2d = context.dyn_into()?;
    context.set_fill_style_str("#fff");
    let mut rgb = Vec::with_capacity(3 * width as usize * height as usize);
    for top in (0..height).step_by(band as usize) {
        context.fill_rect(0.0, 0.0, width.into(), band.into());
        context.draw_image_with_image_bitmap(bitmap, 0.0, -f64::from(top))?;
        let rows = band.min(height - top);
        let rgba = context.get_image_data(0.0, 0.0, width.into(), rows.into())?;
        let rgba = rgba.data().0;
        rgb.extend(rgba.chunks_exact(4).flat_map(|pixel| &pixel[..3]));
    }
    Ok(rgb)
}
