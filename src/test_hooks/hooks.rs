//! The commands of a test, each one JSON object with one member. Knows the endpoint and its model,
//! not how commands arrive.

use std::cell::RefCell;
use std::rc::Rc;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::Controls;
use super::sampler::Question;
use crate::api::{Handler, Host, ModelState, ReadyModel, Switches};
use crate::{Error, Result};

/// One command; the member's name is the variant's in camelCase.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Command {
    /// Fail the step that would generate one token more than so many; null: never.
    FailAfterTokens(Option<usize>),
    /// Wait before each step that reads a prompt; 0: do not.
    DelayPrefillMs(u32),
    /// Wait before each other step; 0: do not.
    DelayStepMs(u32),
    /// How many choices wait or run.
    ActiveGenerations(bool),
    /// What requests find the model doing.
    ModelState(State),
    /// A new endpoint with these switches around the same engine.
    Switches(Map<String, Value>),
    /// What the sampler makes of given logits.
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

/// An endpoint with one model, open to the commands of a test.
pub struct Hooks {
    host: Rc<dyn Host>,
    model_id: String,
    model: ReadyModel,
    controls: Rc<Controls>,
    handler: RefCell<Rc<Handler>>,
}

impl Hooks {
    /// An endpoint with `model` under `model_id`, which runs on a [`super::HookedModel`] under
    /// `controls`.
    pub fn new(
        switches: Switches,
        host: Rc<dyn Host>,
        model_id: &str,
        model: ReadyModel,
        controls: Rc<Controls>,
    ) -> Hooks {
        let handler = Rc::new(Handler::new(switches, Rc::clone(&host)));
        let hooks = Hooks {
            host,
            model_id: model_id.to_owned(),
            model,
            controls,
            handler: RefCell::new(handler),
        };
        hooks.set_state(State::Ready);
        hooks
    }

    /// The endpoint as the last command left it.
    pub fn handler(&self) -> Rc<Handler> {
        Rc::clone(&self.handler.borrow())
    }

    /// Obeys a command such as `{"delayPrefillMs":500}` and returns its answer as JSON; `null` for
    /// those that only do something.
    ///
    /// # Errors
    /// [`Error::Internal`] naming what is wrong with the command.
    pub fn command(&self, json: &str) -> Result<String> {
        let command = serde_json::from_str(json)
            .map_err(|error| Error::Internal(format!("unknown command: {error}")))?;
        self.obey(command).map(|answer| answer.to_string())
    }

    fn obey(&self, command: Command) -> Result<Value> {
        match command {
            Command::FailAfterTokens(tokens) => self.controls.tokens_until_failure.set(tokens),
            Command::DelayPrefillMs(ms) => self.controls.prefill_delay_ms.set(ms),
            Command::DelayStepMs(ms) => self.controls.step_delay_ms.set(ms),
            Command::ModelState(state) => self.set_state(state),
            Command::Switches(switches) => {
                let switches = Switches::from_json(&Value::Object(switches).to_string())?;
                self.model.engine.set_max_queue(switches.max_queue);
                let handler = Handler::new(switches, Rc::clone(&self.host));
                *self.handler.borrow_mut() = Rc::new(handler);
                self.set_state(State::Ready);
            }
            Command::ActiveGenerations(true) => {
                return Ok(json!(self.model.engine.active_generations()));
            }
            Command::ModelInfo(true) => return Ok(self.model_info()),
            Command::ActiveGenerations(false) | Command::ModelInfo(false) => {}
            Command::Sampler(question) => return question.answer(),
        }
        Ok(Value::Null)
    }

    fn set_state(&self, state: State) {
        let state = match state {
            State::Loading => ModelState::Loading,
            State::Unloaded => ModelState::Unloaded,
            State::Failed => ModelState::Failed("a test asked for it".into()),
            State::Ready => ModelState::Ready(self.model.clone()),
        };
        self.handler().set_model(&self.model_id, state);
    }

    fn model_info(&self) -> Value {
        let ReadyModel {
            engine, tokenizer, ..
        } = &self.model;
        let eos_ids = tokenizer.eos_ids();
        json!({
            "modelId": self.model_id,
            "vocabSize": tokenizer.vocab_size().min(engine.vocab_size()),
            "contextTokens": engine.context_tokens(),
            "eosIds": eos_ids,
            "eosText": eos_ids.first().map(|id| tokenizer.token_label(*id)),
            "documentStartId": tokenizer.document_start_id(),
        })
    }
}
