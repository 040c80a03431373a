//! The registered models and their states (specification 13). Does not load anything.

use std::cell::RefCell;
use std::rc::Rc;

use futures_channel::oneshot;
use serde::Serialize;

use super::constraint::LazyCompiler;
use super::error::fault;
use super::switches::{Switches, WhenModelNotReady};
use crate::engine::EngineHandle;
use crate::engine::generation::SamplingDefaults;
use crate::grammar::CallFormat;
use crate::text::Tokenizer;
use crate::{RequestFault, Result};

/// The name that stands for whichever model is there.
const ALIAS: &str = "default";

/// What a registered model is doing.
#[derive(Debug, Clone)]
pub enum ModelState {
    /// Known, but not loaded.
    Unloaded,
    /// On its way.
    Loading,
    /// It answers.
    Ready(ReadyModel),
    /// It could not be loaded; the text says why.
    Failed(String),
}

/// What it takes to answer with a model.
#[derive(Debug, Clone)]
pub struct ReadyModel {
    /// Runs it.
    pub engine: EngineHandle,
    /// Its tokenizer.
    pub tokenizer: Rc<Tokenizer>,
    /// Of all that its answers depend on.
    pub fingerprint: Fingerprint,
    /// Its own sampling defaults, for the switch `useModelGenerationDefaults`.
    pub sampling_defaults: SamplingDefaults,
    /// How it writes tool calls.
    pub call_format: CallFormat,
    /// For constrained completions; starts empty.
    pub compiler: LazyCompiler,
}

impl ReadyModel {
    /// Every token id is below it: a matrix may be padded beyond the vocabulary, or end before it.
    pub(super) fn vocab_size(&self) -> usize {
        self.tokenizer.vocab_size().min(self.engine.vocab_size())
    }
}

/// `system_fingerprint`: `fp_` and 10 hex digits (FNV-1a) of what the output depends on: version of the
/// runtime, weights, quantisation, adapters, class of device, version of the sampler. Clones change
/// together.
#[derive(Debug, Clone)]
pub struct Fingerprint(Rc<RefCell<String>>);

impl Fingerprint {
    /// Of these parts.
    pub fn of(parts: &[impl AsRef<str>]) -> Fingerprint {
        Fingerprint(Rc::new(RefCell::new(digest(parts))))
    }

    /// From now on that of other parts.
    pub fn set(&self, parts: &[impl AsRef<str>]) {
        self.0.replace(digest(parts));
    }

    pub(super) fn text(&self) -> String {
        self.0.borrow().clone()
    }
}

fn digest(parts: &[impl AsRef<str>]) -> String {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut mix = |byte: u8| hash = (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    for part in parts {
        part.as_ref().bytes().for_each(&mut mix);
        // A byte that UTF-8 never has: parts must not run together.
        mix(0xff);
    }
    format!("fp_{:010x}", hash >> 24)
}

/// The registry, in order of registration.
#[derive(Default)]
pub(super) struct Models {
    entries: RefCell<Vec<Entry>>,
    /// Requests that wait for a change of state.
    waiting: RefCell<Vec<oneshot::Sender<()>>>,
}

struct Entry {
    id: String,
    created_s: u64,
    state: ModelState,
}

impl Models {
    /// Registers `id` or changes its state.
    pub(super) fn set(&self, id: &str, state: ModelState, now_s: u64) {
        let mut entries = self.entries.borrow_mut();
        match entries.iter_mut().find(|entry| entry.id == id) {
            Some(entry) => entry.state = state,
            None => entries.push(Entry {
                id: id.to_owned(),
                created_s: now_s,
                state,
            }),
        }
        drop(entries);
        self.wake();
    }

    /// Forgets `id`.
    pub(super) fn remove(&self, id: &str) {
        self.entries.borrow_mut().retain(|entry| entry.id != id);
        self.wake();
    }

    fn wake(&self) {
        for waiting in self.waiting.take() {
            // Nobody listens: the request was aborted.
            let _ = waiting.send(());
        }
    }

    /// The canonical id and what answers for it; waits while it loads if the switches say so.
    pub(super) async fn ready(
        &self,
        name: &str,
        switches: &Switches,
    ) -> Result<(String, ReadyModel)> {
        loop {
            let changed = {
                let entries = self.entries.borrow();
                let entry = find(&entries, name, switches).ok_or_else(|| not_found(name))?;
                let id = &entry.id;
                match &entry.state {
                    ModelState::Ready(ready) => return Ok((id.clone(), ready.clone())),
                    ModelState::Loading => match switches.when_model_not_ready {
                        WhenModelNotReady::Wait => self.next_change(),
                        WhenModelNotReady::Error => {
                            return Err(fault(
                                RequestFault::ModelLoading,
                                "model",
                                format!("the model \"{id}\" is still loading"),
                            ));
                        }
                    },
                    ModelState::Unloaded => {
                        return Err(fault(
                            RequestFault::ModelNotLoaded,
                            "model",
                            format!("the model \"{id}\" is not loaded: the page has to load it"),
                        ));
                    }
                    ModelState::Failed(reason) => {
                        return Err(fault(
                            RequestFault::ModelNotLoaded,
                            "model",
                            format!("the model \"{id}\" could not be loaded: {reason}"),
                        ));
                    }
                }
            };
            // An error means that the registry is gone; the next look will tell.
            let _ = changed.await;
        }
    }

    fn next_change(&self) -> oneshot::Receiver<()> {
        let (sender, receiver) = oneshot::channel();
        let mut waiting = self.waiting.borrow_mut();
        waiting.retain(|sender| !sender.is_canceled());
        waiting.push(sender);
        receiver
    }

    /// The body of `GET /models`.
    pub(super) fn list(&self) -> Vec<u8> {
        let entries = self.entries.borrow();
        super::response::to_json(&ModelList {
            object: "list",
            data: entries.iter().map(ModelCard::new).collect(),
        })
    }

    /// The body of `GET /models/{name}`.
    pub(super) fn get(&self, name: &str, switches: &Switches) -> Result<Vec<u8>> {
        let entries = self.entries.borrow();
        let entry = find(&entries, name, switches).ok_or_else(|| not_found(name))?;
        Ok(super::response::to_json(&ModelCard::new(entry)))
    }
}

fn not_found(name: &str) -> crate::Error {
    let shown: String = name.chars().take(64).collect();
    fault(
        RequestFault::ModelNotFound,
        "model",
        format!("the model \"{shown}\" does not exist"),
    )
}

/// The entry that `name` means. The alias is the one ready model, among several the configured
/// default or else the first; with none ready, the one that comes nearest to it.
fn find<'a>(entries: &'a [Entry], name: &str, switches: &Switches) -> Option<&'a Entry> {
    if let Some(entry) = entries.iter().find(|entry| entry.id == name) {
        return Some(entry);
    }
    if name != ALIAS {
        return None;
    }
    let is_default = |entry: &&Entry| switches.default_model.as_deref() == Some(&entry.id);
    let is_ready = |entry: &&Entry| matches!(entry.state, ModelState::Ready(_));
    let is_loading = |entry: &&Entry| matches!(entry.state, ModelState::Loading);
    let first = |wanted: &dyn Fn(&&Entry) -> bool| entries.iter().find(wanted);
    first(&|entry| is_default(entry) && is_ready(entry))
        .or_else(|| first(&is_ready))
        .or_else(|| first(&is_default))
        .or_else(|| first(&is_loading))
        .or_else(|| entries.first())
}

/// The registered models.
#[derive(Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(super) struct ModelList<'a> {
    #[cfg_attr(test, ts(type = "\"list\""))]
    object: &'a str,
    data: Vec<ModelCard<'a>>,
}

/// One model as the endpoint lists it.
#[derive(Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
struct ModelCard<'a> {
    id: &'a str,
    #[cfg_attr(test, ts(type = "\"model\""))]
    object: &'a str,
    /// Unix seconds of the registration.
    created: u64,
    owned_by: &'a str,
    #[cfg_attr(test, ts(type = "\"unloaded\" | \"loading\" | \"ready\" | \"failed\""))]
    status: &'a str,
    /// In tokens; only of a ready model.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    context_length: Option<usize>,
    capabilities: &'a [&'a str],
}

impl ModelCard<'_> {
    fn new(entry: &Entry) -> ModelCard<'_> {
        let (status, context_length) = match &entry.state {
            ModelState::Unloaded => ("unloaded", None),
            ModelState::Loading => ("loading", None),
            ModelState::Ready(ready) => ("ready", Some(ready.engine.context_tokens())),
            ModelState::Failed(_) => ("failed", None),
        };
        ModelCard {
            id: &entry.id,
            object: "model",
            created: entry.created_s,
            owned_by: "inpage",
            status,
            context_length,
            capabilities: &["completions"],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(models: &Models, name: &str, switches: &Switches) -> Option<String> {
        let entries = models.entries.borrow();
        find(&entries, name, switches).map(|entry| entry.id.clone())
    }

    #[test]
    fn the_alias_means_what_comes_nearest_to_ready() {
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
    fn listed_in_order_without_the_alias() {
        let models = Models::default();
        models.set("org/b", ModelState::Loading, 7);
        models.set("a", ModelState::Failed("no memory".into()), 8);
        models.set("org/b", ModelState::Unloaded, 9);
        let list = String::from_utf8(models.list()).unwrap();
        assert_eq!(
            list,
            r#"{"object":"list","data":[{"id":"org/b","object":"model","created":7,"owned_by":"inpage","status":"unloaded","capabilities":["completions"]},{"id":"a","object":"model","created":8,"owned_by":"inpage","status":"failed","capabilities":["completions"]}]}"#
        );
    }

    #[test]
    fn fingerprints_differ_by_part() {
        let fingerprint = Fingerprint::of(&["ab", "c"]);
        let first = fingerprint.text();
        assert!(first.len() == 13 && first.starts_with("fp_"));
        assert!(first[3..].bytes().all(|b| b.is_ascii_hexdigit()));
        assert_eq!(first, Fingerprint::of(&["ab", "c"]).text());
        let clone = fingerprint.clone();
        fingerprint.set(&["a", "bc"]);
        assert_ne!(first, fingerprint.text());
        assert_eq!(clone.text(), fingerprint.text());
    }
}
