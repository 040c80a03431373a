//! The registered models and their states (specification 13). The caller loads the models.

mod entry;
mod fingerprint;
mod ready;

use std::cell::{Ref, RefCell};

use futures_channel::oneshot;

use super::error::{fault, fault_without_param};
use super::expected_wait::LoadPace;
use super::switches::{Switches, WhenModelNotReady};
use crate::{Error, RequestFault, Result};
pub use entry::ModelState;
pub(super) use entry::{Entry, Purpose};
pub use fingerprint::Fingerprint;
pub(super) use ready::PromptTokenizer;
pub use ready::{ImageReader, ReadyEmbedder, ReadyModel, ToolPrompts, VocabularyTables};

/// The name that stands for the registered model, or for one of several.
const ALIAS: &str = "default";

/// The registry, in order of registration.
#[derive(Default)]
pub(super) struct Models {
    entries: RefCell<Vec<Entry>>,
    /// Requests that wait for a change of state.
    waiting: RefCell<Vec<oneshot::Sender<()>>>,
}

impl Models {
    /// Registers `id` or changes its state.
    pub(super) fn set(&self, id: &str, state: ModelState, now_ms: u64) {
        let load = LoadPace {
            started_ms: now_ms,
            share: 0.0,
        };
        let mut entries = self.entries.borrow_mut();
        match entries.iter_mut().find(|entry| entry.id == id) {
            Some(entry) => {
                let was_loading = matches!(entry.state, ModelState::Loading);
                if matches!(state, ModelState::Loading) && !was_loading {
                    entry.load = load;
                }
                entry.state = state;
            }
            None => entries.push(Entry {
                id: id.to_owned(),
                created_s: now_ms / 1000,
                state,
                load,
            }),
        }
        drop(entries);
        self.wake();
    }

    /// Sets the share of `id` that was read, from 0 to 1.
    pub(super) fn set_load_progress(&self, id: &str, share: f64) {
        let mut entries = self.entries.borrow_mut();
        if let Some(entry) = entries.iter_mut().find(|entry| entry.id == id) {
            entry.load.share = share.clamp(0.0, 1.0);
        }
    }

    /// Removes `id`.
    pub(super) fn remove(&self, id: &str) {
        self.entries.borrow_mut().retain(|entry| entry.id != id);
        self.wake();
    }

    fn wake(&self) {
        for waiting in self.waiting.take() {
            // An error means that the request was aborted.
            let _ = waiting.send(());
        }
    }

    /// The canonical id and the loaded model that generates text. Waits while it loads if the switches say
    /// so.
    ///
    /// # Errors
    /// `unsupported_parameter` for a model that generates no text, and those of the model's state.
    pub(super) async fn ready(
        &self,
        name: &str,
        switches: &Switches,
        now_ms: impl Fn() -> u64,
    ) -> Result<(String, ReadyModel)> {
        let state = self.loaded(name, Purpose::Text, switches, now_ms).await?;
        match state {
            (id, ModelState::Ready(ready)) => Ok((id, ready)),
            (id, state) => {
                let reason = match state.purpose() {
                    Some(Purpose::Rerank) => "ranks documents",
                    _ => "makes embeddings",
                };
                let message = format!("the model \"{id}\" {reason} and generates no text");
                Err(fault(RequestFault::UnsupportedParameter, "model", message))
            }
        }
    }

    /// Same as [`Models::ready`], for a model that makes embeddings.
    ///
    /// # Errors
    /// `unsupported_parameter` for a model that generates text, and those of the model's state.
    pub(super) async fn ready_to_embed(
        &self,
        name: &str,
        switches: &Switches,
        now_ms: impl Fn() -> u64,
    ) -> Result<(String, ReadyEmbedder)> {
        let wanted = Purpose::Embeddings;
        self.ready_for_texts(name, wanted, switches, now_ms).await
    }

    /// Same as [`Models::ready`], for a reranker.
    ///
    /// # Errors
    /// `unsupported_parameter` for another model, and those of the model's state.
    pub(super) async fn ready_to_rerank(
        &self,
        name: &str,
        switches: &Switches,
        now_ms: impl Fn() -> u64,
    ) -> Result<(String, ReadyEmbedder)> {
        let wanted = Purpose::Rerank;
        self.ready_for_texts(name, wanted, switches, now_ms).await
    }

    /// The loaded model that makes embeddings or ranks documents, as `wanted` says.
    async fn ready_for_texts(
        &self,
        name: &str,
        wanted: Purpose,
        switches: &Switches,
        now_ms: impl Fn() -> u64,
    ) -> Result<(String, ReadyEmbedder)> {
        let (id, state) = self.loaded(name, wanted, switches, now_ms).await?;
        let found = state.purpose();
        match state {
            ModelState::ReadyToEmbed(ready) if found == Some(wanted) => Ok((id, ready)),
            _ => {
                let reason = match found {
                    Some(Purpose::Embeddings) => "makes embeddings",
                    Some(Purpose::Rerank) => "ranks documents",
                    _ => "generates text",
                };
                let missing = match wanted {
                    Purpose::Rerank => "is not a reranker: its files have no classifier",
                    _ => "makes no embeddings: its files declare no pooling for them",
                };
                let others = self.ready_for(wanted);
                let message = format!("the model \"{id}\" {reason} and {missing}; {others}");
                Err(fault(RequestFault::UnsupportedParameter, "model", message))
            }
        }
    }

    /// The part of a loaded model that reads prompts. The alias means the model that it means for completions; a model
    /// that makes embeddings will do.
    ///
    /// # Errors
    /// The errors of the model's state.
    pub(super) async fn ready_tokenizer(
        &self,
        name: &str,
        switches: &Switches,
        now_ms: impl Fn() -> u64,
    ) -> Result<PromptTokenizer> {
        match self.loaded(name, Purpose::Text, switches, now_ms).await? {
            (_, ModelState::Ready(ready)) => Ok(ready.prompt_tokenizer()),
            (_, ModelState::ReadyToEmbed(ready)) => Ok(ready.prompt_tokenizer()),
            _ => Err(Error::Internal("a model that is not ready".into())),
        }
    }

    /// Says which models are for this purpose.
    fn ready_for(&self, purpose: Purpose) -> String {
        let entries = self.entries.borrow();
        let found = entries
            .iter()
            .filter(|entry| entry.state.purpose() == Some(purpose));
        let names: Vec<String> = found.map(|entry| format!("\"{}\"", entry.id)).collect();
        match names.is_empty() {
            true => "no loaded model does".to_owned(),
            false => format!("these do: {}", names.join(", ")),
        }
    }

    /// The canonical id of a loaded model and its state, which is one of the ready ones.
    async fn loaded(
        &self,
        name: &str,
        wanted: Purpose,
        switches: &Switches,
        now_ms: impl Fn() -> u64,
    ) -> Result<(String, ModelState)> {
        loop {
            let changed = {
                let entries = self.entries.borrow();
                let found = find(
                    &entries,
                    name,
                    Some(wanted),
                    switches.default_model.as_deref(),
                );
                let entry = found.ok_or_else(|| not_found(name, &entries))?;
                match (&entry.state, switches.when_model_not_ready) {
                    (ModelState::Loading, WhenModelNotReady::Wait) => self.next_change(),
                    (state, _) => {
                        entry.check_ready(now_ms())?;
                        return Ok((entry.id.clone(), state.clone()));
                    }
                }
            };
            // An error means that the sender was dropped; the loop checks again.
            let _ = changed.await;
        }
    }

    /// Fails unless a model is ready.
    ///
    /// # Errors
    /// The errors of the state of the model that is closest to being ready.
    pub(super) fn check_health(&self, now_ms: u64) -> Result<()> {
        match find(&self.entries.borrow(), ALIAS, None, None) {
            Some(entry) => entry.check_ready(now_ms),
            None => Err(fault_without_param(
                RequestFault::ModelNotLoaded,
                "there is no model",
            )),
        }
    }

    fn next_change(&self) -> oneshot::Receiver<()> {
        let (sender, receiver) = oneshot::channel();
        let mut waiting = self.waiting.borrow_mut();
        waiting.retain(|sender| !sender.is_canceled());
        waiting.push(sender);
        receiver
    }

    /// All entries, in order of registration.
    pub(super) fn entries(&self) -> Ref<'_, [Entry]> {
        Ref::map(self.entries.borrow(), Vec::as_slice)
    }

    /// The entry that `name` refers to.
    ///
    /// # Errors
    /// `model_not_found`.
    pub(super) fn find(&self, name: &str, switches: &Switches) -> Result<Ref<'_, Entry>> {
        let found = Ref::filter_map(self.entries.borrow(), |entries| {
            find(entries, name, None, switches.default_model.as_deref())
        });
        found.map_err(|entries| not_found(name, &entries))
    }
}

fn not_found(name: &str, entries: &[Entry]) -> Error {
    let shown: String = name.chars().take(64).collect();
    let known = entries.iter().map(|entry| entry.id.as_str());
    let known = known.chain((!entries.is_empty()).then_some(ALIAS));
    let known: Vec<String> = known.map(|id| format!("\"{id}\"")).collect();
    let message = match known.is_empty() {
        true => format!("the model \"{shown}\" does not exist: there is none"),
        false => format!(
            "the model \"{shown}\" does not exist; these do: {}",
            known.join(", ")
        ),
    };
    fault(RequestFault::ModelNotFound, "model", message)
}

/// The entry that `name` refers to. The alias refers to the model that is ready for what is wanted; among
/// several, to the configured default or else the first; if none is, to the one that is closest to it.
fn find<'a>(
    entries: &'a [Entry],
    name: &str,
    wanted: Option<Purpose>,
    default_model: Option<&str>,
) -> Option<&'a Entry> {
    if let Some(entry) = entries.iter().find(|entry| entry.id == name) {
        return Some(entry);
    }
    if name != ALIAS {
        return None;
    }
    let is_default = |entry: &&Entry| default_model == Some(&entry.id);
    let is_ready = |entry: &&Entry| match wanted {
        Some(wanted) => entry.state.purpose() == Some(wanted),
        None => entry.state.purpose().is_some(),
    };
    let is_loading = |entry: &&Entry| matches!(entry.state, ModelState::Loading);
    let first = |wanted: &dyn Fn(&&Entry) -> bool| entries.iter().find(wanted);
    first(&|entry| is_default(entry) && is_ready(entry))
        .or_else(|| first(&is_ready))
        .or_else(|| first(&is_default))
        .or_else(|| first(&is_loading))
        .or_else(|| first(&|entry| entry.state.purpose().is_some()))
        .or_else(|| entries.first())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(models: &Models, name: &str, switches: &Switches) -> Option<String> {
        let entries = models.entries.borrow();
        let default_model = switches.default_model.as_deref();
        find(&entries, name, None, default_model).map(|entry| entry.id.clone())
    }

    #[test]
    fn the_alias_refers_to_the_model_closest_to_ready() {
        let models = Models::default();
        let switches = Switches::default();
        assert_eq!(found(&models, "default", &switches), None);
        models.set("a", ModelState::Unloaded, 1);
        assert_eq!(found(&models, "default", &switches), Some("a".into()));
        models.set("b", ModelState::Loading, 2);
        assert_eq!(found(&models, "default", &switches), Some("b".into()));
        let configured = Switches {
            default_model: Some("a".into()),
            ..Switches::default()
        };
        assert_eq!(found(&models, "default", &configured), Some("a".into()));
        assert_eq!(found(&models, "c", &switches), None);
        models.remove("b");
        assert_eq!(found(&models, "b", &switches), None);
    }

    #[test]
    fn an_unknown_model_lists_the_known_ones() {
        let models = Models::default();
        let message = |models: &Models| match models.find("x", &Switches::default()) {
            Ok(_) => panic!("found"),
            Err(error) => error.to_string(),
        };
        assert!(message(&models).ends_with("does not exist: there is none"));
        models.set("a", ModelState::Unloaded, 1);
        models.set("org/b", ModelState::Loading, 2);
        let expected = "these do: \"a\", \"org/b\", \"default\"";
        assert!(message(&models).ends_with(expected));
    }

    /// `Retry-After` of a request for the model "a".
    fn wait_s(models: &Models, now_ms: u64) -> Option<u32> {
        use futures_util::FutureExt;
        let switches = Switches::default();
        let ready = models.ready("a", &switches, || now_ms).now_or_never();
        match ready.expect("no wait") {
            Ok(_) => None,
            Err(error) => crate::api::Failure::from(&error).retry_after_s,
        }
    }

    #[test]
    fn requests_for_a_loading_model_are_told_its_expected_wait() {
        let models = Models::default();
        models.set("a", ModelState::Loading, 10_000);
        assert_eq!(wait_s(&models, 10_000), Some(5));
        models.set_load_progress("a", 0.5);
        // The state is set again where the load begins to read.
        models.set("a", ModelState::Loading, 20_000);
        assert_eq!(wait_s(&models, 30_000), Some(25));
        models.set("a", ModelState::Failed("x".into()), 40_000);
        models.set("a", ModelState::Loading, 90_000);
        assert_eq!(wait_s(&models, 90_000), Some(5), "another load");
    }
}
