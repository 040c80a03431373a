//! Errors as JavaScript sees them: an `Error` with a `code`.

use js_sys::Reflect;
use wasm_bindgen::{JsCast, JsValue};

use crate::{Error, runtime::error_code};

/// An `Error` whose `code` is that of [`error_code`].
pub(super) fn to_js(error: &Error) -> JsValue {
    let js = js_sys::Error::new(&error.to_string());
    // Setting a member of a fresh object cannot fail.
    let _ = Reflect::set(&js, &"code".into(), &error_code(error).into());
    js.into()
}

/// The text of anything JavaScript threw.
pub(super) fn message_of(thrown: &JsValue) -> String {
    match thrown.dyn_ref::<js_sys::Error>() {
        Some(error) => String::from(error.message()),
        None => thrown.as_string().unwrap_or_else(|| format!("{thrown:?}")),
    }
}

/// The `code` of anything JavaScript threw.
pub(super) fn code_of(thrown: &JsValue) -> Option<String> {
    Reflect::get(thrown, &"code".into()).ok()?.as_string()
}
