//! Decodes a picture's file with the browser's decoder, or with that of the program around the package.

use js_sys::{Array, Function, Promise, Uint8Array};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;
use web_sys::{
    Blob, ColorSpaceConversion, ImageBitmap, ImageBitmapOptions, OffscreenCanvas,
    OffscreenCanvasRenderingContext2d,
};

use super::errors::{code_of, message_of};
use crate::api::PictureError;
use crate::pictures::{FileFormat, FileHeader, Picture};

#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(catch, js_name = createImageBitmap)]
    async fn create_image_bitmap(
        file: &Blob,
        options: &ImageBitmapOptions,
    ) -> Result<JsValue, JsValue>;

    /// What `EngineOptions.decodePicture` resolves with.
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
pub(super) async fn decode(file: &[u8]) -> Result<Picture, PictureError> {
    let bitmap = bitmap(file).await.map_err(failed)?;
    let (width, height) = (bitmap.width(), bitmap.height());
    let rgba = pixels(&bitmap);
    bitmap.close();
    let rgba = rgba.map_err(failed)?;
    let rgb = rgba.chunks_exact(4).flat_map(|pixel| &pixel[..3]);
    Ok(Picture {
        width: width as usize,
        height: height as usize,
        rgb: rgb.copied().collect(),
    })
}

/// The same with a decoder of the program, which knows all formats but BMP.
pub(super) async fn decode_with(
    decoder: Function,
    file: &[u8],
    header: FileHeader,
) -> Result<Picture, PictureError> {
    if header.format == FileFormat::Bmp {
        return Ok(Picture::decode_bmp(file)?);
    }
    let bytes = Uint8Array::from(file);
    let decoding = decoder.call1(&JsValue::UNDEFINED, &bytes).map_err(failed)?;
    let decoded = JsFuture::from(Promise::resolve(&decoding)).await;
    let decoded: DecodedFile = decoded.map_err(failed)?.unchecked_into();
    let (width, height) = (decoded.width() as usize, decoded.height() as usize);
    let data = decoded.data();
    Ok(match decoded.channels() {
        4 => Picture::on_white(width, height, &data),
        _ => Picture {
            width,
            height,
            rgb: data,
        },
    })
}

fn failed(thrown: JsValue) -> PictureError {
    let reason = message_of(&thrown);
    match code_of(&thrown).as_deref() {
        Some("unsupported_parameter") => PictureError::Unsupported(reason),
        _ => PictureError::Invalid(format!("it cannot be decoded: {reason}")),
    }
}

async fn bitmap(file: &[u8]) -> Result<ImageBitmap, JsValue> {
    let parts = Array::of1(&Uint8Array::from(file));
    let blob = Blob::new_with_u8_array_sequence(&parts)?;
    let options = ImageBitmapOptions::new();
    options.set_color_space_conversion(ColorSpaceConversion::None);
    create_image_bitmap(&blob, &options).await?.dyn_into()
}

/// Red, green, blue and opacity, which is 255, of each pixel.
fn pixels(bitmap: &ImageBitmap) -> Result<Vec<u8>, JsValue> {
    let (width, height) = (bitmap.width(), bitmap.height());
    let context = OffscreenCanvas::new(width, height)?.get_context("2d")?;
    let context = context.ok_or_else(|| JsValue::from_str("no 2D canvas"))?;
    let context: OffscreenCanvasRenderingContext2d = context.dyn_into()?;
    context.set_fill_style_str("#fff");
    context.fill_rect(0.0, 0.0, width.into(), height.into());
    context.draw_image_with_image_bitmap(bitmap, 0.0, 0.0)?;
    let data = context.get_image_data(0.0, 0.0, width.into(), height.into())?;
    Ok(data.data().0)
}
