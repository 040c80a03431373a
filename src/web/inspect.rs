//! Exports `inspectModel`: whether a model runs, without a GPU.

use wasm_bindgen::prelude::*;

use super::errors::to_js;
use super::json_value;
use super::source::PageFiles;
use crate::runtime::{InspectionOptions, inspect};

/// Reads the headers of the model that `files` make up and reports what it is, how much GPU memory it
/// needs and whether this build runs it. `options` is an object of [`InspectionOptions`].
///
/// # Errors
/// Fails when the bytes cannot be read, or an option is wrong. Files that are no model, or one that does not
/// run, are reported in `refusal`.
#[wasm_bindgen(js_name = inspectModel)]
pub async fn inspect_model(files: PageFiles, options: JsValue) -> Result<JsValue, JsValue> {
    let options: InspectionOptions =
        json_value::options(&options, "options").map_err(|error| to_js(&error))?;
    let report = inspect(&files, options).await;
    json_value::to_object(&report.map_err(|error| to_js(&error))?)
}
