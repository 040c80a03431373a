//! The model's files, read through the worker's `ModelFiles` and `ModelSource`. Downloads and caches
//! belong to the worker.

use js_sys::{Promise, Uint8Array};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;

use super::errors::message_of;
use crate::weights::source::check_range;
use crate::weights::{ByteSource, ModelFiles};
use crate::{Error, Result};

#[wasm_bindgen]
extern "C" {
    /// `{ ggufName?, open(name): Promise<ModelSource | undefined> }` of `www/src/model_source`.
    pub type PageFiles;

    #[wasm_bindgen(method, getter, js_name = ggufName)]
    fn gguf_file_name(this: &PageFiles) -> Option<String>;

    #[wasm_bindgen(method, catch, js_name = open)]
    fn open_file(this: &PageFiles, name: &str) -> std::result::Result<Promise, JsValue>;

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

impl ModelFiles for PageFiles {
    type Source = ModelSource;

    fn gguf_name(&self) -> Option<String> {
        self.gguf_file_name()
    }

    async fn open(&self, name: &str) -> Result<Option<ModelSource>> {
        let failed = |thrown: JsValue| Error::Read(message_of(&thrown));
        let opened = self.open_file(name).map_err(failed)?;
        let source = JsFuture::from(opened).await.map_err(failed)?;
        // An interface, not a class: there is nothing to check.
        Ok((!source.is_undefined()).then(|| source.unchecked_into()))
    }
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
            .map_err(|_| Error::Read("the source returned no bytes".into()))?;
        if bytes.length() as usize != buf.len() {
            return Err(Error::Read(format!(
                "the source returned {} bytes instead of {}",
                bytes.length(),
                buf.len()
            )));
        }
        bytes.copy_to(buf);
        Ok(())
    }
}
