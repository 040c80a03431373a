//! The object that the worker passes to `InpageEngine.create`.

use std::rc::Rc;

use js_sys::{Function, Promise};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;
use web_sys::AbortSignal;

use super::{clock::now_ms, json_value, webgpu::PageWebGpu};
use crate::api::Switches;
use crate::device::CpuOptions;
use crate::model::LoadOptions;
use crate::runtime::DeviceChoice;
use crate::{Error, Result};

#[wasm_bindgen]
extern "C" {
    /// `EngineStart` of `www/src/wasm/inpage.d.ts`.
    pub type EngineStart;

    #[wasm_bindgen(method, getter, js_name = modelId)]
    pub(super) fn model_id(this: &EngineStart) -> String;

    #[wasm_bindgen(method, getter, js_name = switches)]
    fn given_switches(this: &EngineStart) -> JsValue;

    #[wasm_bindgen(method, getter, js_name = load)]
    fn given_load(this: &EngineStart) -> JsValue;

    #[wasm_bindgen(method, getter)]
    fn device(this: &EngineStart) -> JsValue;

    #[wasm_bindgen(method, getter, js_name = pageHasWebGpu)]
    pub(super) fn page_has_webgpu(this: &EngineStart) -> Option<bool>;

    #[wasm_bindgen(method, catch, js_name = nextTurn)]
    fn next_turn(this: &EngineStart) -> std::result::Result<Promise, JsValue>;

    #[wasm_bindgen(method, getter)]
    fn webgpu(this: &EngineStart) -> Option<PageWebGpu>;

    #[wasm_bindgen(method, getter)]
    pub(super) fn kernels(this: &EngineStart) -> Option<String>;

    #[wasm_bindgen(method, getter, js_name = keptKernels)]
    pub(super) fn kept_kernels(this: &EngineStart) -> Option<String>;

    /// Decodes the file of an image, where the program has no `createImageBitmap`:
    /// `(file) => Promise<{ width, height, channels, data }>` of 8 bits per channel, turned as Exif says.
    #[wasm_bindgen(method, getter, js_name = decodeImage)]
    pub(super) fn decode_image(this: &EngineStart) -> Option<Function>;

    /// Fetches the file of an image: `(url, maxBytes, signal) => Promise<Uint8Array>`.
    #[wasm_bindgen(method, catch, js_name = fetchImage)]
    pub(super) fn fetch_image(
        this: &EngineStart,
        url: &str,
        max_bytes: f64,
        signal: &AbortSignal,
    ) -> std::result::Result<Promise, JsValue>;

    /// Called with a message when the module panics.
    #[wasm_bindgen(method, js_name = onPanic)]
    pub(super) fn on_panic(this: &EngineStart, message: &str);
}

impl EngineStart {
    /// The same object.
    pub(super) fn again(&self) -> EngineStart {
        EngineStart::from(JsValue::from(self))
    }

    /// The endpoint's switches.
    pub(super) fn switches(&self) -> Result<Switches> {
        Switches::from_value(json_value::object(&self.given_switches(), "switches")?)
    }

    /// The options of the load.
    pub(super) fn load_options(&self) -> Result<LoadOptions> {
        json_value::options(&self.given_load(), "load options")
    }

    /// The device on which the model computes.
    pub(super) fn device_choice(&self) -> Result<DeviceChoice> {
        let given = self.device();
        if given.is_undefined() {
            return Ok(DeviceChoice::default());
        }
        let name = given.as_string().unwrap_or_default();
        let choice = serde_json::from_value(serde_json::Value::String(name));
        choice.map_err(|error| Error::Internal(format!("invalid device: {error}")))
    }

    /// The options of the CPU device: this thread alone.
    pub(super) fn cpu_options(&self) -> CpuOptions {
        let options = self.again();
        CpuOptions {
            threads: 1,
            now_ms,
            next_turn: Some(Rc::new(move || {
                let turn = options.next_turn();
                Box::pin(async move {
                    if let Ok(turn) = turn {
                        // It never rejects; if it did, the computation would go on at once.
                        let _ = JsFuture::from(turn).await;
                    }
                })
            })),
        }
    }

    /// The functions that JavaScript adds to wgpu; `None` if the worker passed nothing.
    pub(super) fn page_webgpu(&self) -> Option<Rc<PageWebGpu>> {
        self.webgpu().map(Rc::new)
    }
}
