//! Validates a model's file, and reserves its KV cache, before any tensor is read.

use std::collections::BTreeMap;

use super::tensors::check_tensors;
use crate::{
    Result,
    model::{
        architectures, config::ModelConfig, kv_reservation::KvReservation,
        load_options::LoadOptions,
    },
    weights::Gguf,
};

/// A model whose file was validated, and the memory that is reserved for it.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    /// The hyperparameters.
    pub(in crate::model) config: ModelConfig,
    /// The same with the block of the head as a layer.
    pub(in crate::model) with_mtp_block: ModelConfig,
    /// Columns and rows of its matrices, by the file's names.
    pub(in crate::model) matrices: BTreeMap<String, [usize; 2]>,
    /// Its KV cache.
    pub(in crate::model) reservation: KvReservation,
    /// Largest part of a buffer that kernels see.
    pub(in crate::model) max_binding_bytes: u64,
    /// Whether prompts may hold rows in place of embeddings.
    pub(in crate::model) takes_embeddings: bool,
}

impl Plan {
    /// The hyperparameters.
    pub(crate) fn config(&self) -> &ModelConfig {
        &self.config
    }
}

/// Validates the file for a device whose kernels see `max_binding_bytes` of a buffer: every tensor is
/// present in the right shape, and the KV cache of a layer is small enough.
pub(crate) fn plan(gguf: &Gguf, options: LoadOptions, max_binding_bytes: u64) -> Result<Plan> {
    let config = architectures::read_config(gguf)?;
    check_tensors(gguf, &config, max_binding_bytes)?;
    let reservation = KvReservation::new(options, &config, max_binding_bytes)?;
    let matrices = gguf.tensors.iter().filter_map(|tensor| {
        let shape: [u64; 2] = tensor.shape[..].try_into().ok()?;
        Some((tensor.name.clone(), shape.map(|n| n as usize)))
    });
    Ok(Plan {
        matrices: matrices.collect(),
        with_mtp_block: config.with_mtp_block(),
        config,
        reservation,
        max_binding_bytes,
        takes_embeddings: options.takes_embeddings,
    })
}
