//! The exported engine: the endpoint with one model. Joins promises and futures; decides nothing.

use std::cell::RefCell;
use std::rc::Rc;

use futures_util::future::{AbortHandle, Abortable};
use js_sys::Function;
use serde::Serialize;
use wasm_bindgen::prelude::*;
use web_sys::AbortSignal;

use super::errors::{message_of, to_js};
use super::host::BrowserHost;
use super::load::{LoadReport, LoadedModel, load};
use super::lora::{Lora, PageAdapter};
use super::response::InpageResponse;
use super::source::PageFiles;
use super::start::set_on_panic;
use crate::Error;
use crate::api::{Handler, ModelState, Request, Switches};
use crate::model::LoadOptions;

/// The endpoint, and the model once it is loaded.
#[wasm_bindgen]
pub struct InpageEngine {
    model_id: String,
    load_options: LoadOptions,
    handler: Rc<Handler>,
    loaded: Rc<RefCell<Option<Loaded>>>,
}

struct Loaded {
    model: LoadedModel,
    #[cfg(feature = "test-hooks")]
    hooks: crate::test_hooks::Hooks,
}

#[derive(Serialize)]
struct Info<'a> {
    version: &'static str,
    model: &'a str,
    active_generations: usize,
    #[serde(flatten)]
    report: Option<&'a LoadReport>,
}

#[wasm_bindgen]
impl InpageEngine {
    /// The endpoint, with the model registered as loading, to be loaded as `load_options_json` says
    /// (an object of [`LoadOptions`]). `on_panic(message)` is called when the
    /// module panics; nothing of it may be called afterwards.
    pub fn create(
        model_id: String,
        switches_json: &str,
        load_options_json: &str,
        on_panic: Function,
    ) -> Result<InpageEngine, JsValue> {
        set_on_panic(on_panic);
        let switches = Switches::from_json(switches_json).map_err(|error| to_js(&error))?;
        let load_options = serde_json::from_str(load_options_json)
            .map_err(|error| to_js(&Error::Internal(format!("invalid load options: {error}"))))?;
        let handler = Rc::new(Handler::new(switches, Rc::new(BrowserHost)));
        handler.set_model(&model_id, ModelState::Loading);
        Ok(InpageEngine {
            model_id,
            load_options,
            handler,
            loaded: Rc::default(),
        })
    }

    /// Asks for the GPU device, reads the model from `files` and the adapters, makes it ready.
    /// `on_progress(loadedBytes, totalBytes)` is told how far that is.
    pub async fn load(
        &self,
        files: PageFiles,
        lora: Vec<PageAdapter>,
        on_progress: Function,
    ) -> Result<(), JsValue> {
        self.loaded.borrow_mut().take();
        self.handler.set_model(&self.model_id, ModelState::Loading);
        let progress = move |loaded_bytes: u64, total_bytes: u64| {
            let (loaded_bytes, total_bytes) = (loaded_bytes as f64, total_bytes as f64);
            // What the page does with it is its own business, and so is its failure.
            let _ = on_progress.call2(
                &JsValue::UNDEFINED,
                &loaded_bytes.into(),
                &total_bytes.into(),
            );
        };
        let (handler, id) = (self.handler.clone(), self.model_id.clone());
        let on_end =
            move |error: Error| handler.set_model(&id, ModelState::Failed(error.to_string()));
        let max_queue = self.handler.switches().max_queue;
        let options = self.load_options;
        match load(&files, &lora, options, max_queue, progress, on_end).await {
            Ok(model) => {
                let ready = model.ready.clone();
                *self.loaded.borrow_mut() = Some(Loaded {
                    #[cfg(feature = "test-hooks")]
                    hooks: crate::test_hooks::Hooks::new(
                        self.handler.switches().clone(),
                        Rc::new(BrowserHost),
                        &self.model_id,
                        ready.clone(),
                        model.controls.clone(),
                    ),
                    model,
                });
                self.handler
                    .set_model(&self.model_id, ModelState::Ready(ready));
                Ok(())
            }
            Err(error) => {
                self.handler
                    .set_model(&self.model_id, ModelState::Failed(error.to_string()));
                Err(to_js(&error))
            }
        }
    }

    /// Tells the endpoint that the model's bytes could not even be opened.
    #[wasm_bindgen(js_name = loadFailed)]
    pub fn load_failed(&self, message: String) {
        self.handler
            .set_model(&self.model_id, ModelState::Failed(message));
    }

    /// Answers by these adapters and no others from now on, once what runs has ended. If one does not
    /// fit, the old ones stay.
    #[wasm_bindgen(js_name = setLora)]
    pub async fn set_lora(&self, lora: Vec<PageAdapter>) -> Result<(), JsValue> {
        let lora = Lora::open(&lora).await.map_err(|error| to_js(&error))?;
        let set = self
            .loaded
            .borrow()
            .as_ref()
            .map(|it| it.model.set_lora(lora));
        let set = set.ok_or_else(|| to_js(&Error::Internal("no model is loaded".into())))?;
        let report = set.await.map_err(|error| to_js(&error))?;
        if let Some(loaded) = &mut *self.loaded.borrow_mut() {
            loaded.model.report = report;
        }
        Ok(())
    }

    /// Answers one request. `headers` is `[name, value][]`; `signal` cancels it until the answer's
    /// head is there, the response's own `cancel()` afterwards.
    pub async fn handle(
        &self,
        method: String,
        url: String,
        headers: JsValue,
        body: Vec<u8>,
        signal: AbortSignal,
    ) -> Result<InpageResponse, JsValue> {
        let request = Request {
            method,
            url,
            headers: serde_wasm_bindgen::from_value(headers)?,
            body,
        };
        #[cfg(feature = "test-hooks")]
        if let Some(answer) = self.command(&request) {
            return Ok(InpageResponse::new(answer));
        }
        let handler = self.handler();
        let (abort, registration) = AbortHandle::new_pair();
        let on_abort = Closure::<dyn Fn()>::new(move || abort.abort());
        if signal.aborted() {
            return Err(to_js(&Error::Aborted));
        }
        signal.set_onabort(Some(on_abort.as_ref().unchecked_ref()));
        // Aborting drops the handler's future, and with it what it generates.
        let response = Abortable::new(handler.handle(request), registration).await;
        signal.set_onabort(None);
        match response {
            Ok(response) => Ok(InpageResponse::new(response)),
            Err(_) => Err(to_js(&Error::Aborted)),
        }
    }

    /// Adapter, kernel variant, model.
    pub fn info(&self) -> Result<JsValue, JsValue> {
        let loaded = self.loaded.borrow();
        let info = Info {
            version: env!("CARGO_PKG_VERSION"),
            model: &self.model_id,
            active_generations: self.active_generations(),
            report: loaded.as_ref().map(|loaded| &loaded.model.report),
        };
        // Flattened members come as a map, which JavaScript wants as an object.
        let serializer = serde_wasm_bindgen::Serializer::json_compatible();
        info.serialize(&serializer)
            .map_err(|error| JsValue::from(message_of(&error.into())))
    }

    /// Choices that wait or run.
    #[wasm_bindgen(js_name = activeGenerations)]
    pub fn active_generations(&self) -> usize {
        self.loaded
            .borrow()
            .as_ref()
            .map_or(0, |it| it.model.ready.engine.active_generations())
    }
}

impl InpageEngine {
    #[cfg(not(feature = "test-hooks"))]
    fn handler(&self) -> Rc<Handler> {
        self.handler.clone()
    }

    /// The endpoint as the last command of a test left it.
    #[cfg(feature = "test-hooks")]
    fn handler(&self) -> Rc<Handler> {
        let loaded = self.loaded.borrow();
        loaded
            .as_ref()
            .map_or_else(|| self.handler.clone(), |loaded| loaded.hooks.handler())
    }

    /// Obeys a request to `_hooks`, through whichever door it came.
    #[cfg(feature = "test-hooks")]
    fn command(&self, request: &Request) -> Option<crate::api::Response> {
        if !request.url.ends_with("/_hooks") {
            return None;
        }
        let loaded = self.loaded.borrow();
        let command = String::from_utf8_lossy(&request.body);
        let (status, body) = match loaded.as_ref()?.hooks.command(&command) {
            Ok(answer) => (200, answer),
            Err(error) => (400, error.to_string()),
        };
        Some(crate::api::Response {
            status,
            headers: vec![("content-type".to_owned(), "application/json".to_owned())],
            body: crate::api::Body::Full(body.into_bytes()),
        })
    }
}
