//! A registered model: its state, and the answer to requests while it is not ready.

use super::{ReadyEmbedder, ReadyModel};
use crate::api::error::fault;
use crate::api::expected_wait::LoadPace;
use crate::{RequestFault, Result};

/// The state of a registered model.
#[derive(Debug, Clone)]
pub enum ModelState {
    /// The model is registered and not loaded.
    Unloaded,
    /// The model is being loaded.
    Loading,
    /// The model is loaded and generates text.
    Ready(ReadyModel),
    /// The model is loaded, and makes embeddings or compares texts.
    ReadyToEmbed(ReadyEmbedder),
    /// The model could not be loaded; the string is the reason.
    Failed(String),
    /// The model could not be loaded, and the first request after a pause starts another attempt.
    WillRetry {
        /// The reason of the failure.
        reason: String,
        /// The end of the pause, in milliseconds since 1970.
        retry_at_ms: u64,
    },
}

/// The purpose that a request needs a model for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(test, derive(ts_rs::TS, serde::Serialize))]
#[cfg_attr(test, ts(rename = "Capability"))]
#[cfg_attr(test, serde(rename_all = "lowercase"))]
pub(in crate::api) enum Purpose {
    #[cfg_attr(test, serde(rename = "completions"))]
    Text,
    Embeddings,
    Rerank,
}

impl ModelState {
    /// The purpose that it is ready for.
    pub(super) fn purpose(&self) -> Option<Purpose> {
        match self {
            ModelState::Ready(_) => Some(Purpose::Text),
            ModelState::ReadyToEmbed(ready) if ready.ranks => Some(Purpose::Rerank),
            ModelState::ReadyToEmbed(_) => Some(Purpose::Embeddings),
            _ => None,
        }
    }
}

/// A registered model.
pub(in crate::api) struct Entry {
    pub id: String,
    /// Unix seconds of the registration.
    pub created_s: u64,
    pub state: ModelState,
    /// The speed of the load that runs, or else of the last one.
    pub(super) load: LoadPace,
}

impl Entry {
    /// Fails unless the model is ready.
    pub(super) fn check_ready(&self, now_ms: u64) -> Result<()> {
        let id = &self.id;
        let (kind, message) = match &self.state {
            ModelState::Ready(_) | ModelState::ReadyToEmbed(_) => return Ok(()),
            ModelState::Loading => (
                RequestFault::ModelLoading {
                    retry_after_s: self.load.retry_after_s(now_ms),
                },
                format!("the model \"{id}\" is still loading"),
            ),
            ModelState::Unloaded => (
                RequestFault::ModelNotLoaded,
                format!("the model \"{id}\" is not loaded: the page has to load it"),
            ),
            ModelState::WillRetry {
                reason,
                retry_at_ms,
            } => {
                let pause_ms = retry_at_ms.saturating_sub(now_ms);
                let retry_after_s = u32::try_from(pause_ms.div_ceil(1000))
                    .unwrap_or(u32::MAX)
                    .max(1);
                let message = format!(
                    "the model \"{id}\" could not be loaded ({reason}); the next attempt is in {retry_after_s} s"
                );
                (RequestFault::ModelLoadFailed { retry_after_s }, message)
            }
            ModelState::Failed(reason) => (
                RequestFault::ModelNotLoaded,
                format!("the model \"{id}\" could not be loaded: {reason}"),
            ),
        };
        Err(fault(kind, "model", message))
    }
}
