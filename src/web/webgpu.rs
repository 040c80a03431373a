//! Requests the GPU device in a browser, with what the worker's JavaScript adds to wgpu.

use std::rc::Rc;

use js_sys::{Array, Promise};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;

use super::clock::now_ms;
use crate::device::{BrowserDevice, BrowserWebGpu, GpuOptions};

#[wasm_bindgen]
extern "C" {
    /// `GivenWebGpu` of `wasm/hosted_engine.ts`.
    pub type PageWebGpu;

    /// The device that was created last; `None` before the first.
    #[wasm_bindgen(method, getter)]
    fn device(this: &PageWebGpu) -> Option<PageDevice>;

    /// A device as JavaScript knows it.
    pub type PageDevice;

    #[wasm_bindgen(method, getter)]
    fn adapter(this: &PageDevice) -> String;

    #[wasm_bindgen(method, getter)]
    fn subgroups(this: &PageDevice) -> bool;

    #[wasm_bindgen(method, getter, js_name = packedDot)]
    fn packed_dot(this: &PageDevice) -> bool;

    #[wasm_bindgen(method, catch, js_name = compileAhead)]
    fn compile_ahead(this: &PageDevice, sources: &Array) -> Result<Promise, JsValue>;
}

/// The options of the request for the device.
pub(super) fn gpu_options(page: Option<Rc<PageWebGpu>>) -> GpuOptions {
    let page = page.map(|page| {
        let described = page.clone();
        BrowserWebGpu {
            describe: Rc::new(move || described.device().map(described_by).unwrap_or_default()),
            compile_ahead: Rc::new(move |sources| {
                let sources = Array::from_iter(sources.iter().map(JsValue::from));
                let started = page.device().map(|device| device.compile_ahead(&sources));
                Box::pin(async move {
                    if let Some(Ok(compiling)) = started {
                        // A refused kernel is requested again, and fails then.
                        let _ = JsFuture::from(compiling).await;
                    }
                })
            }),
        }
    });
    GpuOptions {
        hardware_only: false,
        browser: Some(page.unwrap_or_else(nothing)),
        now_ms,
    }
}

/// Whether `navigator.gpu` exists in this worker.
pub(super) fn worker_has_webgpu() -> bool {
    let property = |of: &JsValue, name: &str| js_sys::Reflect::get(of, &name.into());
    property(&js_sys::global(), "navigator")
        .and_then(|navigator| property(&navigator, "gpu"))
        .is_ok_and(|gpu| !gpu.is_undefined())
}

fn described_by(device: PageDevice) -> BrowserDevice {
    BrowserDevice {
        adapter: device.adapter(),
        subgroups: device.subgroups(),
        packed_dot: device.packed_dot(),
    }
}

/// A browser for which JavaScript provides no information.
fn nothing() -> BrowserWebGpu {
    BrowserWebGpu {
        describe: Rc::new(BrowserDevice::default),
        compile_ahead: Rc::new(|_| Box::pin(std::future::ready(()))),
    }
}
