//! `POST /tokenize`, `POST /detokenize` and `POST /apply-template` (specification 21): what a model's tokenizer and chat
//! template make of strings, ids and messages. Nothing is computed on the device.

pub(super) mod apply_template;
pub(super) mod detokenize;
pub(super) mod tokenize;

use crate::Result;
use crate::api::endpoint::Endpoint;
use crate::api::fields::{
    Conversation, Fields, Form, UnknownFieldPolicy, conversation, functions, reasoning, refused,
    tools,
};
use crate::api::models::PromptTokenizer;
use crate::api::run::Deadline;
use crate::text::LocalTime;

/// Visits the types of requests and answers.
#[cfg(test)]
pub(super) fn visit_types(visitor: &mut impl ts_rs::TypeVisitor) {
    visitor.visit::<tokenize::TokenizeFields>();
    visitor.visit::<tokenize::TokenList>();
    visitor.visit::<tokenize::TokenPieceList>();
    visitor.visit::<detokenize::DetokenizeFields>();
    visitor.visit::<detokenize::TokenText<'static>>();
    visitor.visit::<apply_template::TemplateFields>();
    visitor.visit::<apply_template::RenderedTemplate>();
}

/// The tokenizer of the model called `name`. Waits while it loads if the switches say so.
pub(super) async fn ready(endpoint: &Endpoint, name: &str) -> Result<PromptTokenizer> {
    let switches = &endpoint.switches;
    let mut deadline = Deadline::new(&*endpoint.host, switches.request_timeout_ms);
    let now_ms = || endpoint.host.now_ms();
    let ready = endpoint.models.ready_tokenizer(name, switches, now_ms);
    deadline.limit(ready).await
}

/// The messages as `/chat/completions` reads them. Tools in their older form become `tools`.
fn conversation(endpoint: &Endpoint, fields: &mut Fields) -> Result<Conversation> {
    let has_functions = functions::to_tools(fields)?;
    let declared = tools::read(fields, endpoint.switches.tool_names, Form::Nested);
    let declared = declared.map_err(|error| match has_functions {
        true => functions::rename(error),
        false => error,
    })?;
    let usable = declared.iter().flat_map(|calls| &calls.tools);
    let usable: Vec<&str> = usable.map(|tool| &*tool.name).collect();
    let now_s = endpoint.host.now_ms() / 1000;
    let now = LocalTime::new(now_s, endpoint.host.utc_offset_minutes());
    let mut chat = conversation::read(fields, &usable, &endpoint.switches, now)?;
    if has_functions {
        chat.parallel_tool_calls = Some(false);
    }
    Ok(chat)
}

/// Refuses fields that would change the prompt, and reports those that the route does not know: `own` are the names of its own.
fn check_fields<Own: Iterator<Item = &'static str>>(
    endpoint: &Endpoint,
    fields: &Fields,
    own: fn() -> Own,
) -> Result<()> {
    refused::check_prompt(fields, own)?;
    let mut warn = |name: &str| endpoint.warn_unknown(name);
    reasoning::check_unknown(
        fields,
        &mut UnknownFieldPolicy::new(&endpoint.switches, &mut warn),
    )?;
    let is_refused = |name: &&str| refused::prompt_names().any(|refused| refused == *name);
    report_unknown(
        endpoint,
        fields.names().filter(|name| !is_refused(name)),
        own,
    )
}

/// Reports the members of a body, `names`, that are not `known`.
fn report_unknown<'a, Known: Iterator<Item = &'static str>>(
    endpoint: &Endpoint,
    names: impl Iterator<Item = &'a str>,
    known: fn() -> Known,
) -> Result<()> {
    let mut warn = |name: &str| endpoint.warn_unknown(name);
    UnknownFieldPolicy::new(&endpoint.switches, &mut warn).check(names, known)
}
