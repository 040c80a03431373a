//! From a model's file to an endpoint that answers with it.

use std::rc::Rc;

use inpage::api::{CallFormat, Fingerprint, Handler, LazyCompiler, ReadyModel, SystemHost};
use inpage::device::{Gpu, GpuOptions};
use inpage::engine::{Engine, EngineLimits};
use inpage::model::{self, Adapter, Checkpoint, Compute, Transformer};
use inpage::ops::self_test;
use inpage::text::Tokenizer;
use inpage::weights::{Gguf, LocalFiles};

use crate::Outcome;
use crate::options::Options;

#[cfg(not(feature = "test-hooks"))]
type ServedModel = Transformer;
#[cfg(feature = "test-hooks")]
type ServedModel = inpage::test_hooks::HookedModel<Transformer>;

/// What a load gives.
pub struct Loaded {
    /// Answers nothing until it is run.
    pub engine: Engine<ServedModel>,
    pub endpoint: Endpoint,
}

/// The handler, or what tests exchange it with.
pub struct Endpoint {
    #[cfg(not(feature = "test-hooks"))]
    handler: Rc<Handler>,
    #[cfg(feature = "test-hooks")]
    pub hooks: inpage::test_hooks::Hooks,
}

impl Endpoint {
    /// Who answers the next request.
    pub fn handler(&self) -> Rc<Handler> {
        #[cfg(not(feature = "test-hooks"))]
        return Rc::clone(&self.handler);
        #[cfg(feature = "test-hooks")]
        self.hooks.handler()
    }
}

/// Loads the model and says on standard error what it is and where it computes.
pub async fn load(options: &Options) -> Outcome<Loaded> {
    let files = LocalFiles::at(&options.model)?;
    let mut checkpoint = Checkpoint::open(&files, &options.load).await?;
    let tokenizer = Rc::new(Tokenizer::of(&files, &checkpoint.gguf.metadata).await?);
    checkpoint.set_token_count(tokenizer.vocab_size());
    let Checkpoint { gguf, source } = checkpoint;
    let (compute, place) = compute(options, &gguf).await?;
    let mut model = model::load(compute, &gguf, &source, options.load, |_, _| ()).await?;
    model.warm_up().await?;
    set_lora(&mut model, &options.lora).await?;
    eprintln!(
        "{} on {place}, keys and values as {}: {} bytes",
        options.model,
        model.kv_format().name(),
        model.kv_bytes()
    );

    let tensors = gguf.tensors.iter().map(|t| (t.ty, t.size_bytes));
    let fingerprint = Fingerprint::of(&[
        env!("CARGO_PKG_VERSION"),
        gguf.metadata.str("general.name")?.unwrap_or_default(),
        &model.config().architecture,
        &format!("{:?}", tensors.collect::<Vec<_>>()),
        &place,
        model.kv_format().name(),
        &format!("{:?}", options.lora),
    ]);
    let host = Rc::new(SystemHost);
    #[cfg(feature = "test-hooks")]
    let (model, controls) = inpage::test_hooks::HookedModel::new(model, host.clone());
    let limits = EngineLimits {
        max_queue: options.switches.max_queue,
        ..EngineLimits::default()
    };
    let (engine, handle) = Engine::new(model, limits);
    let ready = ReadyModel {
        engine: handle,
        call_format: CallFormat::of(&tokenizer),
        compiler: LazyCompiler::default(),
        tokenizer,
        fingerprint,
        sampling_defaults: model::sampling_defaults(&gguf.metadata),
    };
    let (switches, id) = (options.switches.clone(), &*options.model_id);
    #[cfg(not(feature = "test-hooks"))]
    let endpoint = {
        let handler = Handler::new(switches, host);
        handler.set_model(id, inpage::api::ModelState::Ready(ready));
        Endpoint {
            handler: Rc::new(handler),
        }
    };
    #[cfg(feature = "test-hooks")]
    let endpoint = Endpoint {
        hooks: inpage::test_hooks::Hooks::new(switches, host, id, ready, controls),
    };
    Ok(Loaded { engine, endpoint })
}

async fn set_lora(model: &mut Transformer, lora: &[(String, f32)]) -> Outcome<()> {
    let mut adapters = Vec::new();
    for (path, scale) in lora {
        let adapter = Adapter::open(&LocalFiles::at(path)?).await;
        let adapter = adapter.map_err(|error| format!("{path}: {error}"))?;
        adapters.push((adapter.called(path), *scale));
    }
    let adapters = adapters.iter().map(|(adapter, scale)| (adapter, *scale));
    Ok(model.set_adapters(&adapters.collect::<Vec<_>>()).await?)
}

/// Where to compute, and its name.
async fn compute(options: &Options, gguf: &Gguf) -> Outcome<(Compute, String)> {
    if options.cpu {
        return Ok((Compute::cpu(), "the CPU".to_owned()));
    }
    let gpu = Gpu::request(GpuOptions::default())
        .await
        .map_err(|error| format!("{error}\n--cpu needs none"))?;
    let formats = model::formats(gguf);
    let variant = self_test::best_variant(&gpu, options.load.needs(gguf, &formats)).await?;
    let place = gpu.report().adapter.clone();
    Ok((Compute::Gpu { gpu, variant }, place))
}
