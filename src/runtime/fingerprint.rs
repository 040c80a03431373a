//! Everything that a model's answers depend on: the parts of `system_fingerprint`.

use super::{LoadReport, LoraReport};
use crate::{Result, weights::Gguf};

/// The parts of a loaded model, without its adapters.
#[derive(Debug, Clone)]
pub(super) struct FingerprintParts(Vec<String>);

impl FingerprintParts {
    /// The version of the runtime, the weights with their quantization, the device and its kernels.
    ///
    /// # Errors
    /// The model's name in its file is no string.
    pub(super) fn of(
        gguf: &Gguf,
        projector: Option<&Gguf>,
        report: &LoadReport,
    ) -> Result<FingerprintParts> {
        let tensors = |gguf: &Gguf| {
            let tensors = gguf.tensors.iter().map(|it| (it.ty, it.size_bytes));
            format!("{:?}", tensors.collect::<Vec<_>>())
        };
        let mut parts = vec![
            env!("CARGO_PKG_VERSION").to_owned(),
            gguf.metadata
                .str("general.name")?
                .unwrap_or_default()
                .to_owned(),
            report.architecture.clone(),
            tensors(gguf),
            report.file_bytes.to_string(),
            report.device.adapter.clone(),
            report.variant.clone(),
            report.kv_format.name().to_owned(),
        ];
        parts.extend(projector.map(tensors));
        Ok(FingerprintParts(parts))
    }

    /// All parts of the model with these adapters.
    pub(super) fn with(&self, lora: &[LoraReport]) -> Vec<String> {
        let adapters = lora.iter().map(|adapter| format!("{adapter:?}"));
        self.0.iter().cloned().chain(adapters).collect()
    }
}
