//! Measures the CPU time that replaying a decode step takes in this browser, for benchmarks. Loads a
//! model of its own; answers no requests.

use std::rc::Rc;

use serde::Serialize;
use wasm_bindgen::prelude::*;

use super::clock::now_ms;
use super::errors::to_js;
use super::json_value::to_object;
use super::source::PageFiles;
use super::webgpu::{PageWebGpu, gpu_options};
use crate::device::{ComputeDevice, DeviceReport};
use crate::engine::{CausalModel, SequenceMemory};
use crate::model::{Checkpoint, LoadOptions};
use crate::ops::launches;
use crate::runtime::{Tuning, start};
use crate::{Error, Result};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ReplayReport {
    #[serde(flatten)]
    device: DeviceReport,
    variant: String,
    layers: usize,
    /// Dispatches that the launch of a step makes.
    dispatches_per_step: u64,
    steps: usize,
    /// CPU time of each round of `steps` steps: replaying, encoding and submitting, no waiting.
    round_ms: Vec<f64>,
}

/// Replays `steps` greedy decode steps in each of `rounds` rounds, with the device idle at the
/// start of each, and reports the time until everything was submitted.
///
/// # Errors
/// Fails when the model cannot be loaded, or `steps` exceeds its context.
#[wasm_bindgen(js_name = measureReplay)]
pub async fn measure_replay(
    files: PageFiles,
    webgpu: PageWebGpu,
    steps: usize,
    rounds: usize,
) -> std::result::Result<JsValue, JsValue> {
    let report = measure(&files, webgpu, steps, rounds).await;
    to_object(&report.map_err(|error| to_js(&error))?)
}

async fn measure(
    files: &PageFiles,
    webgpu: PageWebGpu,
    steps: usize,
    rounds: usize,
) -> Result<ReplayReport> {
    let options = LoadOptions {
        context_tokens: Some(steps.max(1)),
        kv_pool_tokens: Some(steps.max(1)),
        ..LoadOptions::default()
    };
    let Checkpoint { gguf, source } = Checkpoint::open(files, &options).await?;
    let device = ComputeDevice::gpu(gpu_options(Some(Rc::new(webgpu)))).await?;
    let (mut model, _) = start(&device, Tuning::Best, &gguf, &source, options, |_, _| ()).await?;
    model.warm_up().await?;
    if steps == 0 || steps > model.limits().context_tokens {
        return Err(Error::Internal(format!(
            "{steps} steps do not fit a context of {} tokens",
            model.limits().context_tokens
        )));
    }
    let mut kv = SequenceMemory::new((0..model.limits().page_count as u32).collect());
    let before = launches();
    // Without a graph, so that each launch counts. Choosing the token is one more.
    model.feed_all(&mut kv, &[0]).await?;
    let dispatches_per_step = launches() - before + 1;
    let mut round_ms = Vec::new();
    for _ in 0..rounds {
        kv.len_tokens = 0;
        device.sync().await?;
        let start = now_ms();
        model.enqueue_greedy(&mut kv, 0, steps).await?;
        device.flush()?;
        round_ms.push(now_ms() - start);
    }
    device.sync().await?;
    Ok(ReplayReport {
        device: device.report().clone(),
        variant: model.variant().name(),
        layers: model.config().layers.len(),
        dispatches_per_step,
        steps,
        round_ms,
    })
}
