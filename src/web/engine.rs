//! The exported engine: the endpoint with one model. Adapts the loader's and the endpoint's futures to
//! promises.

use std::cell::RefCell;
use std::rc::Rc;

use futures_util::future::{AbortHandle, Abortable};
use js_sys::Function;
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::spawn_local;
use web_sys::AbortSignal;

use super::adapters::{PageAdapter, adapter_files};
use super::attachments::{PageAttachment, attachment};
use super::clock::now_ms;
use super::errors::to_js;
use super::host::BrowserHost;
use super::json_value::to_object;
use super::options::EngineStart;
use super::response::InpageResponse;
use super::sha256::FileHasher;
use super::source::PageFiles;
use super::start::set_on_panic;
use super::webgpu::{PageWebGpu, gpu_options, worker_has_webgpu};
use crate::api::{ModelState, Request};
use crate::device::CpuOptions;
use crate::model::LoadOptions;
use crate::runtime::{
    Adapters, ChosenDevice, DeviceChoice, EngineInfo, KnownKernels, LoadRequest, RunningModel,
    ServedHandler, reload, serve,
};
use crate::{Error, Result};

/// The endpoint, and the model once it is loaded.
#[wasm_bindgen]
pub struct InpageEngine {
    model_id: String,
    load_options: LoadOptions,
    device: DeviceChoice,
    /// Whether the page has WebGPU; this worker may have none.
    page_has_webgpu: bool,
    cpu: CpuOptions,
    webgpu: Option<Rc<PageWebGpu>>,
    /// The kernels of a lost engine that this one takes over from.
    kernels: Option<String>,
    /// The kernels that an earlier visit validated.
    kept_kernels: Option<String>,
    handler: Rc<ServedHandler>,
    running: RefCell<Option<RunningModel>>,
}

#[wasm_bindgen]
impl InpageEngine {
    /// The endpoint, with the model registered as loading. `options.onPanic(message)` is called when
    /// the module panics; nothing of the module may be called afterwards.
    pub fn create(options: EngineStart) -> std::result::Result<InpageEngine, JsValue> {
        let switches = options.switches().map_err(|error| to_js(&error))?;
        let load_options = options.load_options().map_err(|error| to_js(&error))?;
        let device = options.device_choice().map_err(|error| to_js(&error))?;
        let (model_id, webgpu) = (options.model_id(), options.page_webgpu());
        let page_has_webgpu = options.page_has_webgpu().unwrap_or(false);
        let cpu = options.cpu_options();
        let (kernels, kept_kernels) = (options.kernels(), options.kept_kernels());
        let host = Rc::new(BrowserHost::new(options.again()));
        set_on_panic(options);
        let handler = Rc::new(ServedHandler::new(switches, host));
        handler.set_model(&model_id, ModelState::Loading);
        Ok(InpageEngine {
            model_id,
            load_options,
            device,
            page_has_webgpu,
            cpu,
            webgpu,
            kernels,
            kept_kernels,
            handler,
            running: RefCell::default(),
        })
    }

    /// Requests the device, reads the model from `files`, the projector, the draft model and the adapters, and makes it
    /// ready.
    /// `on_progress(loadedBytes, totalBytes)` is called while tensors are read.
    pub async fn load(
        &self,
        files: PageFiles,
        projector: Option<PageFiles>,
        draft_model: Option<PageFiles>,
        lora: Vec<PageAdapter>,
        on_progress: Function,
    ) -> std::result::Result<(), JsValue> {
        self.running.borrow_mut().take();
        self.set_state(ModelState::Loading);
        let beside = [projector.as_ref(), draft_model.as_ref()];
        let loaded = self
            .load_and_serve(&files, beside, &lora, &on_progress)
            .await;
        loaded.map_err(|error| {
            self.set_state(ModelState::Failed(error.to_string()));
            to_js(&error)
        })
    }

    /// Tells the endpoint why the model could not be loaded, and when a request starts another attempt: in
    /// milliseconds since 1970, or never.
    #[wasm_bindgen(js_name = loadFailed)]
    pub fn load_failed(&self, reason: String, retry_at_ms: Option<f64>) {
        self.set_state(match retry_at_ms {
            Some(retry_at_ms) => ModelState::WillRetry {
                reason,
                retry_at_ms: retry_at_ms as u64,
            },
            None => ModelState::Failed(reason),
        });
    }

    /// A new hash of a file that is downloaded.
    #[wasm_bindgen(js_name = createHasher)]
    pub fn create_hasher(&self) -> FileHasher {
        FileHasher::default()
    }

    /// Uses these adapters and no others from now on, once in-flight requests have finished. If one
    /// does not fit, the old ones stay.
    #[wasm_bindgen(js_name = setLora)]
    pub async fn set_lora(&self, lora: Vec<PageAdapter>) -> std::result::Result<(), JsValue> {
        let adapters = Adapters::open(&adapter_files(&lora)).await;
        let adapters = adapters.map_err(|error| to_js(&error))?;
        let set = self
            .running
            .borrow()
            .as_ref()
            .map(|running| running.set_lora(adapters));
        let set = set.ok_or_else(|| to_js(&Error::Internal("no model is loaded".into())))?;
        set.await.map_err(|error| to_js(&error))
    }

    /// Answers one request. `headers` is `[name, value][]`; `signal` cancels it until the response's
    /// head is there, the response's own `cancel()` afterwards. With the `position` of the same request's
    /// response from another engine, a stream continues there. `attachments` are images that the body names.
    #[allow(clippy::too_many_arguments)] // The form in which requests come from JavaScript.
    pub async fn handle(
        &self,
        method: String,
        url: String,
        headers: JsValue,
        body: Vec<u8>,
        signal: AbortSignal,
        position: Option<String>,
        attachments: Vec<PageAttachment>,
    ) -> std::result::Result<InpageResponse, JsValue> {
        let request = Request {
            method,
            url,
            headers: serde_wasm_bindgen::from_value(headers)?,
            body,
            position,
            attachments: attachments.iter().map(attachment).collect(),
        };
        let handler = self.handler.clone();
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

    /// The results about the kernels, as an opaque string for an engine that takes over and for the next visit;
    /// `undefined` until the model is loaded.
    pub fn kernels(&self) -> Option<String> {
        self.running.borrow().as_ref().map(RunningModel::kernels)
    }

    /// Adapter, kernel variant, model.
    pub fn info(&self) -> std::result::Result<JsValue, JsValue> {
        let running = self.running.borrow();
        let report = running.as_ref().map(RunningModel::report);
        to_object(&EngineInfo {
            version: env!("CARGO_PKG_VERSION"),
            model: &self.model_id,
            active_generations: self.active_generations(),
            report: report.as_deref(),
        })
    }

    /// Candidates that are queued or running.
    #[wasm_bindgen(js_name = activeGenerations)]
    pub fn active_generations(&self) -> usize {
        let running = self.running.borrow();
        running.as_ref().map_or(0, RunningModel::active_generations)
    }
}

impl InpageEngine {
    async fn request_device(&self) -> Result<ChosenDevice> {
        let gpu = gpu_options(self.webgpu.clone());
        let chosen = ChosenDevice::request(self.device, gpu, self.cpu.clone()).await?;
        Ok(match self.page_has_webgpu && !worker_has_webgpu() {
            true => chosen.because("this browser has WebGPU in pages, but not in workers"),
            false => chosen,
        })
    }

    fn set_state(&self, state: ModelState) {
        self.handler.set_model(&self.model_id, state);
    }

    async fn load_and_serve(
        &self,
        files: &PageFiles,
        [projector, draft_model]: [Option<&PageFiles>; 2],
        lora: &[PageAdapter],
        on_progress: &Function,
    ) -> Result<()> {
        let request = LoadRequest {
            files,
            projector,
            draft_model,
            adapters: &adapter_files(lora),
            options: self.load_options,
            now_ms,
        };
        let device = self.request_device();
        let progress = |loaded_bytes: u64, total_bytes: u64| {
            let (loaded_bytes, total_bytes) = (loaded_bytes as f64, total_bytes as f64);
            self.handler
                .set_load_progress(&self.model_id, loaded_bytes / total_bytes.max(1.0));
            let (loaded_bytes, total_bytes) = (loaded_bytes.into(), total_bytes.into());
            // An exception in the page's callback does not stop the load.
            let _ = on_progress.call2(&JsValue::UNDEFINED, &loaded_bytes, &total_bytes);
        };
        let known = match (&self.kernels, &self.kept_kernels) {
            (Some(kernels), _) => KnownKernels::OfLostEngine(kernels),
            (None, Some(kept)) => KnownKernels::Kept(kept),
            (None, None) => KnownKernels::None,
        };
        let loaded = reload(request, known, device, progress).await?;
        let served = serve(loaded, &self.handler, &self.model_id);
        *self.running.borrow_mut() = Some(served.running);
        let (handler, id) = (self.handler.clone(), self.model_id.clone());
        spawn_local(async move {
            if let Err(error) = served.engine.run().await {
                handler.set_model(&id, ModelState::Failed(error.to_string()));
            }
        });
        Ok(())
    }
}
