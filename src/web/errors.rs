//! Errors as JavaScript sees them: an `Error` with a `code`. Knows no cause.

use js_sys::Reflect;
use wasm_bindgen::{JsCast, JsValue};

use crate::Error;

/// One of API.md section 2.2, or why a model cannot be loaded.
pub(super) fn code_of(error: &Error) -> &'static str {
    match error {
        Error::NoDevice(_) => "no_webgpu_device",
        Error::InvalidModelFile(_) => "invalid_model_file",
        Error::UnsupportedModel(_) => "unsupported_model",
        Error::Read(_) => "model_not_readable",
        Error::OutOfMemory(_) => "out_of_memory",
        Error::DeviceLost(_) => "device_lost",
        Error::Aborted => "aborted",
        _ => "internal_error",
    }
}

/// An `Error` whose `code` is that of [`code_of`].
pub(super) fn to_js(error: &Error) -> JsValue {
    let js = js_sys::Error::new(&error.to_string());
    // Setting a member of a fresh object cannot fail.
    let _ = Reflect::set(&js, &"code".into(), &code_of(error).into());
    js.into()
}

/// The text of anything JavaScript threw.
pub(super) fn message_of(thrown: &JsValue) -> String {
    match thrown.dyn_ref::<js_sys::Error>() {
        Some(error) => String::from(error.message()),
        None => thrown.as_string().unwrap_or_else(|| format!("{thrown:?}")),
    }
}
