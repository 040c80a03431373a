//! The model's bytes, read through the worker's `ModelSource`. Knows neither files nor HTTP.

use js_sys::Uint8Array;
use wasm_bindgen::prelude::*;

use super::errors::message_of;
use crate::weights::ByteSource;
use crate::weights::source::check_range;
use crate::{Error, Result};

#[wasm_bindgen]
extern "C" {
    /// `{ size, read(offset, length): Promise<Uint8Array> }` of `www/src/model_source`.
    pub type ModelSource;

    #[wasm_bindgen(method, getter)]
    fn size(this: &ModelSource) -> f64;

    #[wasm_bindgen(method, catch)]
    async fn read(
        this: &ModelSource,
        offset_bytes: f64,
        len_bytes: f64,
    ) -> std::result::Result<JsValue, JsValue>;
}

impl ByteSource for ModelSource {
    fn size_bytes(&self) -> u64 {
        // A file's size: far below 2^53.
        self.size() as u64
    }

    async fn read_at(&self, offset_bytes: u64, buf: &mut [u8]) -> Result<()> {
        check_range(offset_bytes, buf.len(), self.size_bytes())?;
        if buf.is_empty() {
            return Ok(());
        }
        let bytes = self
            .read(offset_bytes as f64, buf.len() as f64)
            .await
            .map_err(|thrown| Error::Read(message_of(&thrown)))?;
        let bytes: Uint8Array = bytes
            .dyn_into()
            .map_err(|_| Error::Read("the source gave no bytes".into()))?;
        if bytes.length() as usize != buf.len() {
            return Err(Error::Read(format!(
                "the source gave {} bytes instead of {}",
                bytes.length(),
                buf.len()
            )));
        }
        bytes.copy_to(buf);
        Ok(())
    }
}
