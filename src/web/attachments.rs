//! Images beside the body of a request, as the worker passes them.

use std::rc::Rc;

use wasm_bindgen::prelude::*;

use crate::api::Attachment;
use crate::images::Image;

#[wasm_bindgen]
extern "C" {
    /// `{ file }` or `{ width, height, rgba }` of `exchange/protocol.ts`.
    pub type PageAttachment;

    #[wasm_bindgen(method, getter)]
    fn file(this: &PageAttachment) -> Option<Vec<u8>>;

    #[wasm_bindgen(method, getter)]
    fn width(this: &PageAttachment) -> Option<u32>;

    #[wasm_bindgen(method, getter)]
    fn rgba(this: &PageAttachment) -> Option<Vec<u8>>;
}

/// The image. Its pixels are opaque. An incomplete row at their end is left out.
pub(super) fn attachment(given: &PageAttachment) -> Attachment {
    if let Some(file) = given.file() {
        return Attachment::File(file.into());
    }
    let width = given.width().unwrap_or_default() as usize;
    let rgba = given.rgba().unwrap_or_default();
    let height = rgba.len().checked_div(4 * width).unwrap_or_default();
    let rgb = rgba.chunks_exact(4).take(width * height);
    let rgb = rgb.flat_map(|pixel| &pixel[..3]).copied().collect();
    Attachment::Pixels(Rc::new(Image { width, height, rgb }))
}
