//! Decodes a picture's file with the browser's decoder.

use js_sys::{Array, Uint8Array};
use wasm_bindgen::prelude::*;
use web_sys::{
    Blob, ColorSpaceConversion, ImageBitmap, ImageBitmapOptions, OffscreenCanvas,
    OffscreenCanvasRenderingContext2d,
};

use super::errors::message_of;
use crate::pictures::Picture;

#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(catch, js_name = createImageBitmap)]
    async fn create_image_bitmap(
        file: &Blob,
        options: &ImageBitmapOptions,
    ) -> Result<JsValue, JsValue>;
}

/// The first frame, in the orientation that the file names, on white. Its colors are those of the file: without
/// conversion to another color space.
pub(super) async fn decode(file: &[u8]) -> Result<Picture, String> {
    let failed = |thrown: JsValue| format!("it cannot be decoded: {}", message_of(&thrown));
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
