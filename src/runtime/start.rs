//! Starts a model on a device. Kernels are compiled and validated while the weights are read.
//!
//! Start-up work runs in parallel. wgpu creates pipelines one at a time, at first launch. On the web, the kernels'
//! sources go to `createComputePipelineAsync` all at once instead (`www/src/worker/compile_ahead.ts`). A browser test
//! counts pipelines that are created later.

use futures_util::future::try_join;

use crate::{
    Result,
    device::ComputeDevice,
    model::{
        LoadOptions, Plan, TowerPlan, Transformer, Vision, check_budget, load_weights,
        matrix_types, outline, plan,
    },
    ops::Variant,
    tuner::best_variant_with,
    weights::{ByteSource, Gguf},
};

/// The form of the kernels that a model runs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Tuning {
    /// The best that computes correctly on the device.
    Best,
    /// This one if it computes correctly on the device, else the best.
    Prefer(Variant),
    /// This one, which an earlier load validated under the same conditions. Only the kernels of a single token are
    /// compiled: [`Transformer::warm_up_kept`] records no others.
    Kept(Variant),
    /// This one, without validation: for tests, which choose it once for many models.
    Fixed(Variant),
}

/// The times of the parts of a start, in milliseconds of the device's clock. They run concurrently.
#[derive(Debug, Clone, Copy, Default)]
pub struct StartTimes {
    /// Compiling and validating the kernels.
    pub kernels: f64,
    /// Reading the weights and uploading them to the device.
    pub weights: f64,
}

/// Starts the model that `gguf` describes, with the weights of `source`, on `device`. `progress` is
/// called with the number of tensor bytes read so far and in total.
///
/// # Errors
/// [`crate::Error::UnsupportedModel`], [`crate::Error::InvalidModelFile`] and, if a layer's KV cache
/// exceeds what a kernel can see or the model exceeds its memory budget, [`crate::Error::OutOfMemory`]
/// before any tensor is read;
/// [`crate::Error::Read`] from `source`; [`crate::Error::OutOfMemory`] if the device cannot hold the
/// model; [`crate::Error::NoDevice`] if no kernels compute correctly.
pub async fn start<S: ByteSource>(
    device: &ComputeDevice,
    tuning: Tuning,
    gguf: &Gguf,
    source: &S,
    options: LoadOptions,
    progress: impl FnMut(u64, u64),
) -> Result<(Transformer, StartTimes)> {
    let plan = plan(gguf, options, device.max_binding_bytes())?;
    check_budget(gguf, options, device.memory_bytes())?;
    let begun_ms = device.now_ms();
    let tuned = async {
        let variant = match tuning {
            Tuning::Best => tune(device, gguf, options, &plan, None).await?,
            Tuning::Prefer(variant) => tune(device, gguf, options, &plan, Some(variant)).await?,
            Tuning::Kept(variant) => {
                compile_decode(device, gguf, &plan, variant).await?;
                variant
            }
            Tuning::Fixed(variant) => variant,
        };
        Ok((variant, device.now_ms() - begun_ms))
    };
    let loaded = async {
        let decoder = load_weights(device, gguf, source, &plan, progress).await?;
        device.sync().await?;
        Ok((decoder, device.now_ms() - begun_ms))
    };
    let ((variant, kernels), (mut decoder, weights)) = try_join(tuned, loaded).await?;
    decoder.set_variant(variant);
    let model = Transformer::new(device.clone(), variant, decoder, plan);
    Ok((model, StartTimes { kernels, weights }))
}

/// Starts the vision tower that `gguf` describes beside a text model.
///
/// # Errors
/// [`crate::Error::UnsupportedModel`] and [`crate::Error::InvalidModelFile`] for the file, also if it belongs to another
/// model; [`crate::Error::Read`] from `source`; [`crate::Error::OutOfMemory`].
pub async fn start_vision<S: ByteSource>(
    model: &mut Transformer,
    gguf: &Gguf,
    source: &S,
    progress: impl FnMut(u64),
) -> Result<()> {
    let max_binding_bytes = model.device().max_binding_bytes();
    let plan = TowerPlan::new(gguf, model.config(), max_binding_bytes)?;
    start_tower(model, &plan, source, progress).await
}

/// Starts a vision tower beside its text model. `progress` is called with the tensor bytes read so far.
pub(super) async fn start_tower<S: ByteSource>(
    model: &mut Transformer,
    plan: &TowerPlan,
    source: &S,
    mut progress: impl FnMut(u64),
) -> Result<()> {
    let device = model.device().clone();
    model.check_vision(plan)?;
    let tower = plan.load(&device, source, &mut progress).await?;
    device.sync().await?;
    model.set_vision(Vision::new(device, model.variant(), tower, plan));
    Ok(())
}

/// The preferred variant or the best; compiles the kernels of the first request meanwhile.
async fn tune(
    device: &ComputeDevice,
    gguf: &Gguf,
    options: LoadOptions,
    plan: &Plan,
    preferred: Option<Variant>,
) -> Result<Variant> {
    let types = matrix_types(gguf);
    let outline = outline(device, gguf, plan).await?;
    let own = |variant| {
        let mut outline = outline.clone();
        outline.set_variant(variant);
        Transformer::first_kernels(&outline, plan, device, variant)
    };
    best_variant_with(device, options.needs(gguf, &types), preferred, own).await
}

/// Compiles the kernels of a single token.
async fn compile_decode(
    device: &ComputeDevice,
    gguf: &Gguf,
    plan: &Plan,
    variant: Variant,
) -> Result<()> {
    // Elsewhere ops run when they are called, and an outline has no data.
    if device.recorder().is_none() {
        return Ok(());
    }
    let mut outline = outline(device, gguf, plan).await?;
    outline.set_variant(variant);
    let kernels = Transformer::decode_kernels(&outline, plan, device, variant);
    device
        .compile_ahead(kernels.iter().map(|kernel| kernel.wgsl()).collect())
        .await;
    Ok(())
}
