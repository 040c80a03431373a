//! Puts a loaded model behind the endpoint, and changes its adapters while it answers.

use std::cell::{Ref, RefCell};
use std::future::Future;
use std::rc::Rc;

use super::{
    Adapters, LoadReport, Loaded, ServedHandler, ServedModel,
    fingerprint::FingerprintParts,
    kernel_choice::KernelChoice,
    seam::{attach, transformer},
};
use crate::{
    Result,
    api::{Fingerprint, LazyCompiler, ModelState, OutputForm, ReadyModel},
    engine::{Engine, EngineHandle, EngineLimits, ModelAccess},
    weights::ByteSource,
};

/// A model behind the endpoint.
pub struct Served {
    /// Requests are answered while it is run.
    pub engine: Engine<ServedModel>,
    /// Access to the model while it runs.
    pub running: RunningModel,
}

/// A model whose engine runs.
pub struct RunningModel {
    handle: EngineHandle,
    report: Rc<RefCell<LoadReport>>,
    access: ModelAccess<ServedModel>,
    fingerprint: Fingerprint,
    fingerprint_parts: FingerprintParts,
    kernels: KernelChoice,
}

/// Registers the model with `handler` as `model_id`, ready to answer.
pub fn serve(loaded: Loaded, handler: &ServedHandler, model_id: &str) -> Served {
    let limits = EngineLimits {
        max_queue: handler.switches().max_queue,
        ..EngineLimits::default()
    };
    let (engine, handle) = Engine::new(attach(handler, loaded.model), limits);
    let fingerprint = Fingerprint::of(&loaded.fingerprint_parts.with(&loaded.report.lora));
    let ready = ReadyModel {
        engine: handle.clone(),
        output_form: match &handler.switches().chat_template {
            Some(template) => OutputForm::with_template(template, &loaded.tokenizer),
            None => OutputForm::of(&loaded.tokenizer),
        },
        tokenizer: loaded.tokenizer,
        fingerprint: fingerprint.clone(),
        sampling_defaults: loaded.sampling_defaults,
        compiler: LazyCompiler::default(),
    };
    handler.set_model(model_id, ModelState::Ready(ready));
    let running = RunningModel {
        handle,
        report: Rc::new(RefCell::new(loaded.report)),
        access: engine.model_access(),
        fingerprint,
        fingerprint_parts: loaded.fingerprint_parts,
        kernels: loaded.kernels,
    };
    Served { engine, running }
}

impl RunningModel {
    /// What was loaded, with the adapters that are in use now.
    pub fn report(&self) -> Ref<'_, LoadReport> {
        self.report.borrow()
    }

    /// What was found out about its kernels, for [`super::reload`]. Opaque.
    pub fn kernels(&self) -> String {
        self.kernels.text()
    }

    /// Candidates that are queued or running.
    pub fn active_generations(&self) -> usize {
        self.handle.active_generations()
    }

    /// Makes the model use these adapters and no others, once in-flight requests have finished.
    ///
    /// # Errors
    /// As [`Adapters::set_on`] and [`ModelAccess::change`]; the old adapters stay in use.
    pub fn set_lora<S: ByteSource + 'static>(
        &self,
        adapters: Adapters<S>,
    ) -> impl Future<Output = Result<()>> + use<S> {
        let (access, report) = (self.access.clone(), self.report.clone());
        let (fingerprint, parts) = (self.fingerprint.clone(), self.fingerprint_parts.clone());
        async move {
            let change = async move |model: &mut ServedModel| {
                let model = transformer(model);
                adapters.set_on(model).await?;
                // Before the next request: its response names the model that gave it.
                fingerprint.set(&parts.with(&adapters.reports));
                let mut report = report.borrow_mut();
                report.decode_dispatches = model.decode_dispatches();
                report.lora = adapters.reports;
                Ok(())
            };
            access.change(change).await
        }
    }
}
