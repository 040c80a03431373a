//! From a model's file to a model that answers on a GPU, with nothing waiting for what it does not
//! need: kernels are compiled and proven while the weights stream in.

use futures_util::future::try_join;
use serde::Serialize;

use super::{
    Compute, LoadOptions, Transformer, formats,
    load::{outline, plan, weights},
};
use crate::{
    Result,
    device::Gpu,
    ops::self_test::best_variant_with,
    weights::{ByteSource, Gguf},
};

/// How long the parts of a start took, in milliseconds. The first two run side by side.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct StartTimes {
    /// Compiling the kernels and proving them.
    pub kernels: f64,
    /// Reading the weights and handing them to the device.
    pub weights: f64,
    /// Recording the steps.
    pub recording: f64,
}

/// Loads the model that `gguf` describes from `source` onto `gpu`, by the best kernels that prove to
/// compute rightly there, ready for its first request. `progress` is told the number of tensor bytes
/// read so far and in all.
///
/// # Errors
/// As [`super::load()`], and [`crate::Error::NoDevice`] if no kernels compute rightly.
pub async fn start<S: ByteSource>(
    gpu: Gpu,
    gguf: &Gguf,
    source: &S,
    options: LoadOptions,
    progress: impl FnMut(u64, u64),
) -> Result<(Transformer, StartTimes)> {
    let plan = plan(gguf, options, gpu.report().max_binding_bytes)?;
    let outline = outline(gpu.device(), gguf, &plan).await?;
    let begun_ms = gpu.now_ms();
    let proven = async {
        let formats = formats(gguf);
        let own = |variant| {
            let mut outline = outline.clone();
            outline.set_variant(variant);
            Transformer::first_kernels(&outline, &plan, &gpu, variant)
        };
        let variant = best_variant_with(&gpu, options.needs(gguf, &formats), own).await?;
        Ok((variant, gpu.now_ms() - begun_ms))
    };
    let loaded = async {
        let decoder = weights(gpu.device(), gguf, source, &plan, progress).await?;
        gpu.sync().await?;
        Ok((decoder, gpu.now_ms() - begun_ms))
    };
    let ((variant, kernels), (mut decoder, weights)) = try_join(proven, loaded).await?;
    decoder.set_variant(variant);
    let compute = Compute::Gpu {
        gpu: gpu.clone(),
        variant,
    };
    let mut model = Transformer::new(compute, decoder, plan);
    let begun_ms = gpu.now_ms();
    model.warm_up().await?;
    let times = StartTimes {
        kernels,
        weights,
        recording: gpu.now_ms() - begun_ms,
    };
    Ok((model, times))
}
