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
    Error, Result,
    api::{
        Fingerprint, ModelState, ReadyEmbedder, ReadyModel, SpeculationMode, ToolPrompts,
        VocabularyTables,
    },
    device::ComputeDevice,
    engine::{
        Engine, EngineHandle, EngineLimits, ModelAccess, Speculation,
        embed::{EmbeddingEngine, EmbeddingHandle},
    },
    weights::ByteSource,
};

/// A model behind the endpoint.
pub struct Served {
    /// Requests are answered while it is run.
    pub engine: ServedEngine,
    /// Access to the model while it runs.
    pub running: RunningModel,
}

/// The engine of a model: which one depends on whether its files name a pooling of token vectors.
#[allow(clippy::large_enum_variant)] // One per model; a box would save nothing.
pub enum ServedEngine {
    /// Generates text.
    Text(Engine<ServedModel>),
    /// Makes embeddings, or compares texts.
    Embeddings(EmbeddingEngine<ServedModel>),
}

impl ServedEngine {
    /// Runs until all handles are dropped and all requests have ended.
    ///
    /// # Errors
    /// [`Error::DeviceLost`]: the device is gone, everything has failed.
    pub async fn run(self) -> Result<()> {
        match self {
            ServedEngine::Text(engine) => engine.run().await,
            ServedEngine::Embeddings(engine) => engine.run().await,
        }
    }
}

/// A reference to a running engine.
enum Handle {
    Text(EngineHandle, ModelAccess<ServedModel>),
    Embeddings(EmbeddingHandle),
}

/// A model whose engine runs.
pub struct RunningModel {
    handle: Handle,
    report: Rc<RefCell<LoadReport>>,
    fingerprint: Fingerprint,
    fingerprint_parts: FingerprintParts,
    kernels: KernelChoice,
}

/// Registers the model with `handler` as `model_id`, ready to answer.
pub fn serve(mut loaded: Loaded, handler: &ServedHandler, model_id: &str) -> Served {
    let max_queue = handler.switches().max_queue;
    let fingerprint = Fingerprint::of(&loaded.fingerprint_parts.with(&loaded.report.lora));
    let (engine, handle, state) = if let Some(embedding) = &loaded.model.config().embedding {
        let ranks = embedding.classes.is_some();
        let (engine, handle) = EmbeddingEngine::new(attach(handler, loaded.model), max_queue);
        let ready = ReadyEmbedder {
            engine: handle.clone(),
            tokenizer: loaded.tokenizer,
            ranks,
        };
        let state = ModelState::ReadyToEmbed(ready);
        let engine = ServedEngine::Embeddings(engine);
        (engine, Handle::Embeddings(handle), state)
    } else {
        let speculation = speculation(handler.switches().speculation, loaded.model.device());
        let drafts = matches!(speculation, Speculation::Model | Speculation::All);
        loaded.model.set_drafts(drafts);
        let limits = EngineLimits {
            max_queue,
            speculation,
            ..EngineLimits::default()
        };
        let clock = handler.host();
        let (engine, handle) = Engine::new(attach(handler, loaded.model), limits, clock);
        let tools = ToolPrompts::of(
            &loaded.tokenizer,
            handler.switches().chat_template.as_deref(),
        );
        loaded.report.tools = tools;
        let ready = ReadyModel {
            tools,
            engine: handle.clone(),
            output_form: ReadyModel::form_of(
                &loaded.tokenizer,
                handler.switches().chat_template.as_deref(),
            ),
            tokenizer: loaded.tokenizer,
            fingerprint: fingerprint.clone(),
            images: loaded.images,
            sampling_defaults: loaded.sampling_defaults,
            vocabulary: VocabularyTables::default(),
        };
        let handle = Handle::Text(handle, engine.model_access());
        (ServedEngine::Text(engine), handle, ModelState::Ready(ready))
    };
    handler.set_model(model_id, state);
    let running = RunningModel {
        handle,
        report: Rc::new(RefCell::new(loaded.report)),
        fingerprint,
        fingerprint_parts: loaded.fingerprint_parts,
        kernels: loaded.kernels,
    };
    Served { engine, running }
}

/// The tokens that are guessed on this device. Where a GPU runs ahead, steps that verify guesses wait for a read each: what
/// a text repeats is not likely enough there.
fn speculation(mode: SpeculationMode, device: &ComputeDevice) -> Speculation {
    match mode {
        SpeculationMode::Off => Speculation::Off,
        SpeculationMode::Predictions => Speculation::Predictions,
        SpeculationMode::All => Speculation::All,
        SpeculationMode::Auto if device.is_cpu() => Speculation::All,
        SpeculationMode::Auto => Speculation::Model,
    }
}

impl RunningModel {
    /// The report of the load, with the adapters that are in use now.
    pub fn report(&self) -> Ref<'_, LoadReport> {
        self.report.borrow()
    }

    /// The results about its kernels as an opaque string, for [`super::reload`].
    pub fn kernels(&self) -> String {
        self.kernels.text()
    }

    /// Candidates or, of a model that makes embeddings, requests that are queued or running.
    pub fn active_generations(&self) -> usize {
        match &self.handle {
            Handle::Text(handle, _) => handle.active_generations(),
            Handle::Embeddings(handle) => handle.active_requests(),
        }
    }

    /// Makes the model use these adapters and no others, once in-flight requests have finished.
    ///
    /// # Errors
    /// Same as [`Adapters::set_on`] and [`ModelAccess::change`]; the old adapters stay in use.
    /// [`Error::UnsupportedModel`] for a model that makes embeddings: its adapters are those it was loaded with.
    pub fn set_lora<S: ByteSource + 'static>(
        &self,
        adapters: Adapters<S>,
    ) -> impl Future<Output = Result<()>> + use<S> {
        let report = self.report.clone();
        let access = match &self.handle {
            Handle::Text(_, access) => Some(access.clone()),
            Handle::Embeddings(_) => None,
        };
        let (fingerprint, parts) = (self.fingerprint.clone(), self.fingerprint_parts.clone());
        async move {
            let change = async move |model: &mut ServedModel| {
                let model = transformer(model);
                adapters.set_on(model).await?;
                // The fingerprint is set before the next request, whose response names the model that gave it.
                fingerprint.set(&parts.with(&adapters.reports));
                let mut report = report.borrow_mut();
                report.decode_dispatches = model.decode_dispatches();
                report.lora = adapters.reports;
                Ok(())
            };
            let access = access.ok_or_else(|| {
                let what = "adapters of a running embedding model: load it with them";
                Error::UnsupportedModel(what.into())
            })?;
            access.change(change).await
        }
    }
}
