//! The endpoint under the control of a test. Each command is a request to `/_hooks` whose body is a JSON
//! object with one member.

use std::cell::RefCell;
use std::rc::Rc;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::sampler::Question;
use super::{Controls, HookedModel};
use crate::api::{
    Body, Failure, Handler, Host, ModelState, ReadyEmbedder, ReadyModel, Request, Response,
    Switches, ToolPrompts,
};
use crate::{Error, Result};

/// One command; the member's name is the variant's in camelCase.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Command {
    /// Fail the step that would generate more tokens, or embed more inputs, than this; null: never.
    FailAfterTokens(Option<usize>),
    /// Wait before each step that reads a prompt or embeds inputs; 0: do not.
    DelayPrefillMs(u32),
    /// Wait before each other step; 0: do not.
    DelayStepMs(u32),
    /// The number of choices, or of requests for embeddings, that wait or run.
    ActiveGenerations(bool),
    /// The state of the model that requests see.
    ModelState(State),
    /// A new endpoint with these switches around the same engine.
    Switches(Map<String, Value>),
    /// Runs the sampler on given logits.
    Sampler(Question),
    /// Sizes and names of the model.
    ModelInfo(bool),
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum State {
    Loading,
    Unloaded,
    Failed,
    Ready,
}

/// An endpoint with one model that accepts the commands of a test. Has the methods of [`Handler`] that
/// its callers use.
pub struct HookedHandler {
    host: Rc<dyn Host>,
    /// Exchanged when a test changes the switches.
    current: RefCell<Rc<Handler>>,
    /// The controls of the loaded model.
    controls: RefCell<Option<Rc<Controls>>>,
    model: RefCell<Option<LoadedModel>>,
}

/// The model that commands refer to.
#[derive(Clone)]
struct LoadedModel {
    id: String,
    ready: Ready,
    controls: Rc<Controls>,
}

/// A loaded model of either kind.
#[derive(Clone)]
#[expect(
    clippy::large_enum_variant,
    reason = "An endpoint under test has one model."
)]
enum Ready {
    Text(ReadyModel),
    Embeddings(ReadyEmbedder),
}

impl HookedHandler {
    /// An endpoint without models.
    pub fn new(switches: Switches, host: Rc<dyn Host>) -> HookedHandler {
        let handler = Handler::new(switches, Rc::clone(&host));
        HookedHandler {
            host,
            current: RefCell::new(Rc::new(handler)),
            controls: RefCell::default(),
            model: RefCell::default(),
        }
    }

    /// Puts `model` under the control of this endpoint.
    pub fn attach<M>(&self, model: M) -> HookedModel<M> {
        let (model, controls) = HookedModel::new(model, Rc::clone(&self.host));
        self.controls.replace(Some(controls));
        model
    }

    /// Time and log.
    pub fn host(&self) -> Rc<dyn Host> {
        self.host.clone()
    }

    /// The switches after the last command.
    pub fn switches(&self) -> Switches {
        self.current().switches().clone()
    }

    /// Registers a model or changes its state.
    pub fn set_model(&self, id: &str, state: ModelState) {
        let ready = match &state {
            ModelState::Ready(ready) => Some(Ready::Text(ready.clone())),
            ModelState::ReadyToEmbed(ready) => Some(Ready::Embeddings(ready.clone())),
            _ => None,
        };
        match (ready, &*self.controls.borrow()) {
            (Some(ready), Some(controls)) => {
                let (id, controls) = (id.to_owned(), Rc::clone(controls));
                self.model.replace(Some(LoadedModel {
                    id,
                    ready,
                    controls,
                }));
            }
            // The engine ends when its last reference is dropped.
            _ if matches!(state, ModelState::Loading) => drop(self.model.take()),
            _ => {}
        }
        self.current().set_model(id, state);
    }

    /// The share (0 to 1) of a loading model that was read.
    pub fn set_load_progress(&self, id: &str, share: f64) {
        self.current().set_load_progress(id, share);
    }

    /// The same as [`Handler::answer_before_body`]. Commands are never answered before their bodies, which they need.
    pub fn answer_before_body(&self, request: &Request, body_bytes: u64) -> Option<Response> {
        match request.url.ends_with("/_hooks") {
            true => None,
            false => self.current().answer_before_body(request, body_bytes),
        }
    }

    /// The same as [`Handler::refuse`].
    pub fn refuse(&self, request: &Request, failure: &Failure) -> Response {
        self.current().refuse(request, failure)
    }

    /// Answers a request. Once a model is loaded, a request to `/_hooks` is a command.
    pub async fn handle(&self, request: Request) -> Response {
        match self.command(&request) {
            Some(response) => response,
            None => self.current().handle(request).await,
        }
    }

    fn current(&self) -> Rc<Handler> {
        Rc::clone(&self.current.borrow())
    }

    /// Runs a command such as `{"delayPrefillMs":500}`. Its result is JSON, `null` for commands that
    /// return nothing. An invalid command gets status 400 and a text that says what is wrong.
    fn command(&self, request: &Request) -> Option<Response> {
        if !request.url.ends_with("/_hooks") {
            return None;
        }
        let model = self.model.borrow().clone()?;
        let command = serde_json::from_slice(&request.body)
            .map_err(|error| Error::Internal(format!("unknown command: {error}")));
        let (status, body) = match command.and_then(|command| self.run(command, &model)) {
            Ok(result) => (200, result.to_string()),
            Err(error) => (400, error.to_string()),
        };
        Some(Response {
            status,
            headers: vec![("content-type".to_owned(), "application/json".to_owned())],
            body: Body::Full(body.into_bytes()),
            progress: Rc::default(),
            failure: None,
        })
    }

    fn run(&self, command: Command, model: &LoadedModel) -> Result<Value> {
        match command {
            Command::FailAfterTokens(tokens) => model.controls.tokens_until_failure.set(tokens),
            Command::DelayPrefillMs(ms) => model.controls.prefill_delay_ms.set(ms),
            Command::DelayStepMs(ms) => model.controls.step_delay_ms.set(ms),
            Command::ModelState(state) => self.set_state(state, model),
            Command::Switches(switches) => {
                let switches = Switches::from_value(Value::Object(switches))?;
                let mut model = model.clone();
                model.ready.follow(&switches);
                let handler = Handler::new(switches, Rc::clone(&self.host));
                self.current.replace(Rc::new(handler));
                self.set_state(State::Ready, &model);
                self.model.replace(Some(model));
            }
            Command::ActiveGenerations(true) => {
                return Ok(json!(model.ready.active()));
            }
            Command::ModelInfo(true) => return Ok(model.info()),
            Command::ActiveGenerations(false) | Command::ModelInfo(false) => {}
            Command::Sampler(question) => return question.answer(),
        }
        Ok(Value::Null)
    }

    fn set_state(&self, state: State, model: &LoadedModel) {
        let state = match state {
            State::Loading => ModelState::Loading,
            State::Unloaded => ModelState::Unloaded,
            State::Failed => ModelState::Failed("a test asked for it".into()),
            State::Ready => match model.ready.clone() {
                Ready::Text(ready) => ModelState::Ready(ready),
                Ready::Embeddings(ready) => ModelState::ReadyToEmbed(ready),
            },
        };
        self.current().set_model(&model.id, state);
    }
}

impl Ready {
    /// Does what a load with these switches does.
    fn follow(&mut self, switches: &Switches) {
        match self {
            Ready::Text(ReadyModel {
                engine,
                tokenizer,
                output_form,
                tools,
                ..
            }) => {
                engine.set_max_queue(switches.max_queue);
                let template = switches.chat_template.as_deref();
                *output_form = ReadyModel::form_of(tokenizer, template);
                *tools = ToolPrompts::of(tokenizer, template);
            }
            Ready::Embeddings(ready) => ready.engine.set_max_queue(switches.max_queue),
        }
    }

    fn active(&self) -> usize {
        match self {
            Ready::Text(ready) => ready.engine.active_generations(),
            Ready::Embeddings(ready) => ready.engine.active_requests(),
        }
    }
}

impl LoadedModel {
    fn info(&self) -> Value {
        match &self.ready {
            Ready::Text(ReadyModel {
                engine, tokenizer, ..
            }) => {
                let eos_ids = tokenizer.eos_ids();
                json!({
                    "modelId": self.id,
                    "vocabSize": tokenizer.vocab_size().min(engine.vocab_size()),
                    "contextTokens": engine.context_tokens(),
                    "eosIds": eos_ids,
                    "eosText": eos_ids.first().map(|id| tokenizer.token_label(*id)),
                    "documentStartId": tokenizer.document_start_id(),
                })
            }
            Ready::Embeddings(ReadyEmbedder {
                engine, tokenizer, ..
            }) => json!({
                "modelId": self.id,
                "vocabSize": tokenizer.vocab_size().min(engine.vocab_size()),
                "contextTokens": engine.context_tokens(),
                "embeddingWidth": engine.width(),
            }),
        }
    }
}
