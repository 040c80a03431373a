//! What replaying a decode step costs the CPU in this browser, for benchmarks. Loads a model of its
//! own beside any engine; answers no requests.

use serde::Serialize;
use wasm_bindgen::prelude::*;

use super::errors::{message_of, to_js};
use super::host::now_ms;
use super::load::gpu_options;
use super::source::PageFiles;
use crate::device::{Gpu, GpuReport};
use crate::engine::{CausalModel, SequenceMemory};
use crate::model::{self, Checkpoint, LoadOptions};
use crate::ops::{kv_memory::KvFormat, launches};
use crate::{Error, Result};

#[derive(Serialize)]
struct ReplayReport {
    #[serde(flatten)]
    gpu: GpuReport,
    variant: String,
    layers: usize,
    /// Counted, not computed.
    dispatches_per_step: u64,
    steps: usize,
    /// CPU time of each round of `steps` steps: replaying, encoding and submitting, no waiting.
    round_ms: Vec<f64>,
}

/// Replays `steps` greedy decode steps in each of `rounds` rounds, with the device idle at the
/// start of each, and reports what they took until everything was submitted.
///
/// # Errors
/// When the model cannot be loaded, or `steps` exceeds its context.
#[wasm_bindgen(js_name = measureReplay)]
pub async fn measure_replay(
    files: PageFiles,
    steps: usize,
    rounds: usize,
) -> std::result::Result<JsValue, JsValue> {
    let report = measure(&files, steps, rounds)
        .await
        .map_err(|error| to_js(&error))?;
    let serializer = serde_wasm_bindgen::Serializer::json_compatible();
    report
        .serialize(&serializer)
        .map_err(|error| JsValue::from(message_of(&error.into())))
}

async fn measure(files: &PageFiles, steps: usize, rounds: usize) -> Result<ReplayReport> {
    let gpu = Gpu::request(gpu_options()).await?;
    let report = gpu.report().clone();
    let options = LoadOptions {
        context_tokens: Some(steps.max(1)),
        kv_format: KvFormat::default(),
        kv_pool_tokens: Some(steps.max(1)),
        ..LoadOptions::default()
    };
    let Checkpoint { gguf, source } = Checkpoint::open(files, &options).await?;
    let (mut model, _) = model::start(gpu, &gguf, &source, options, |_, _| ()).await?;
    if steps == 0 || steps > model.limits().context_tokens {
        return Err(Error::Internal(format!(
            "{steps} steps do not fit a context of {} tokens",
            model.limits().context_tokens
        )));
    }
    let mut kv = SequenceMemory::new((0..model.limits().page_count as u32).collect());
    let before = launches();
    // Not from a graph: each of its launches counts. The choice of the token is one more.
    model.feed_all(&mut kv, &[0]).await?;
    let dispatches_per_step = launches() - before + 1;
    let mut round_ms = Vec::new();
    for _ in 0..rounds {
        kv.len_tokens = 0;
        model.compute().sync().await?;
        let start = now_ms();
        model.enqueue_greedy(&mut kv, 0, steps).await?;
        model.compute().flush()?;
        round_ms.push(now_ms() - start);
    }
    model.compute().sync().await?;
    Ok(ReplayReport {
        gpu: report,
        variant: model.compute().variant().name(),
        layers: model.config().layers.len(),
        dispatches_per_step,
        steps,
        round_ms,
    })
}
