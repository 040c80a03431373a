//! The object that the worker passes to `InpageEngine.create`.

use std::rc::Rc;

use wasm_bindgen::prelude::*;

use super::{json_value, webgpu::PageWebGpu};
use crate::Result;
use crate::api::Switches;
use crate::model::LoadOptions;

#[wasm_bindgen]
extern "C" {
    /// `EngineOptions` of `www/src/wasm/inpage.d.ts`.
    pub type EngineOptions;

    #[wasm_bindgen(method, getter, js_name = modelId)]
    pub(super) fn model_id(this: &EngineOptions) -> String;

    #[wasm_bindgen(method, getter, js_name = switches)]
    fn given_switches(this: &EngineOptions) -> JsValue;

    #[wasm_bindgen(method, getter, js_name = load)]
    fn given_load(this: &EngineOptions) -> JsValue;

    #[wasm_bindgen(method, getter)]
    fn webgpu(this: &EngineOptions) -> Option<PageWebGpu>;

    #[wasm_bindgen(method, getter)]
    pub(super) fn kernels(this: &EngineOptions) -> Option<String>;

    #[wasm_bindgen(method, getter, js_name = keptKernels)]
    pub(super) fn kept_kernels(this: &EngineOptions) -> Option<String>;

    /// Called with a message when the module panics.
    #[wasm_bindgen(method, js_name = onPanic)]
    pub(super) fn on_panic(this: &EngineOptions, message: &str);
}

impl EngineOptions {
    /// The endpoint's switches.
    pub(super) fn switches(&self) -> Result<Switches> {
        Switches::from_value(json_value::object(&self.given_switches(), "switches")?)
    }

    /// How to load the model.
    pub(super) fn load_options(&self) -> Result<LoadOptions> {
        json_value::options(&self.given_load(), "load options")
    }

    /// What JavaScript adds to wgpu; `None` if the worker passed nothing.
    pub(super) fn page_webgpu(&self) -> Option<Rc<PageWebGpu>> {
        self.webgpu().map(Rc::new)
    }
}
