//! The loader's native side: local files, the device, and messages on standard error.

use std::sync::OnceLock;
use std::time::Instant;

use inpage::runtime::{LoadRequest, Served, ServedHandler, load, serve};
use inpage::weights::LocalFiles;

use crate::Outcome;
use crate::adapters::adapter_files;
use crate::options::Options;

/// Loads the model, reports it and its device on standard error, and registers it with `handler`.
pub async fn load_and_serve(options: &Options, handler: &ServedHandler) -> Outcome<Served> {
    let projector = options.projector.as_ref().map(LocalFiles::at).transpose()?;
    let draft = options.draft.as_ref().map(LocalFiles::at).transpose()?;
    let request = LoadRequest {
        projector: projector.as_ref(),
        draft_model: draft.as_ref(),
        files: &LocalFiles::at(&options.model)?,
        adapters: &adapter_files(&options.lora)?,
        options: options.load,
        now_ms,
    };
    let loaded = load(request, options.device.request(options.threads), |_, _| ()).await?;
    let report = &loaded.report;
    if let Some(reason) = &report.device_reason {
        eprintln!("the CPU computes: {reason}");
    }
    eprintln!(
        "{} on {}, KV cache as {}: {} bytes",
        options.model,
        report.device.adapter,
        report.kv_format.name(),
        report.kv_bytes
    );
    if let Some(draft) = &report.draft_model {
        eprintln!(
            "{} drafts: {} layers",
            options.draft.as_deref().unwrap_or(""),
            draft.layers
        );
    }
    Ok(serve(loaded, handler, &options.model_id))
}

fn now_ms() -> f64 {
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed().as_secs_f64() * 1e3
}
