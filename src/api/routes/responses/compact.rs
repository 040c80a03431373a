//! `POST /responses/compact` (specification 20.6): the messages of the user, and an item with a summary of the conversation,
//! which the model writes. Nothing is stored: the item holds the summary. Its text is made and read in `fields::compaction`.

use serde::Serialize;
use serde_json::{Value, json};

use super::RENAMED;
use super::object::{ResponseUsage, Status};
use super::parse::STORED;
use super::request::{ResponseFields, UnusedResponseFields};
use crate::api::endpoint::Endpoint;
use crate::api::error::{fault, rename_param};
use crate::api::fields::kinds::{Shape, unused};
use crate::api::fields::{
    Body, Constraint, Field, Fields, UnknownFieldPolicy, compaction, drafting, fields, input,
    length, model, refused, request, restrictions, sampling, vendors,
};
use crate::api::http::{Request, Response};
use crate::api::json::to_json;
use crate::api::models::Purpose;
use crate::api::plan::{MessageRequest, Plan};
use crate::api::routes::attempt::Attempt;
use crate::api::routes::route::{Route, Upstream};
use crate::api::run::{Piece, Run};
use crate::api::switches::Switches;
use crate::grammar::OutputPart;
use crate::text::LocalTime;
use crate::{RequestFault, Result};

pub(in crate::api) static ROUTE: Route = Route {
    path: "responses/compact",
    method: "POST",
    purpose: Some(Purpose::Text),
    // Another server cannot read the item, nor this endpoint that of another server.
    upstream: Upstream::Chosen,
    answer: |endpoint, request, _| Box::pin(answer(endpoint, request)),
    #[cfg(test)]
    response: "a conversation with its answers summarized: [Compaction](#compaction)",
    #[cfg(test)]
    fields: CompactFields::listed,
};

fields! {
    /// Accepted and not used: clients send the fields of a turn along.
    #[allow(dead_code)]
    UnusedCompactFields {
        /// Not used: a summary has one part.
        include: Field<Shape> = unused(),
        /// Not used: no reasoning is asked for.
        reasoning: Field<Shape> = unused(),
        /// Not used: the summary is plain text.
        text: Field<Shape> = unused(),
        /// Not used: a summary calls no tools.
        tool_choice: Field<Shape> = unused(),
        /// Not used: a summary calls no tools.
        tools: Field<Shape> = unused(),
    }
}

request! {
    /// A request to compact a conversation; `docs/api.md` says what each field means.
    CompactFields:
        model::ModelFields,
        input::InputFields,
        vendors::VendorFields,
        UnusedResponseFields,
        UnusedCompactFields,
}

/// The maximum number of tokens that the model may write, reasoning included.
const MAX_TOKENS: usize = 2048;

/// A compacted conversation.
#[derive(Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[cfg_attr(test, ts(rename = "ResponseCompaction"))]
pub(super) struct Compaction {
    id: String,
    #[cfg_attr(test, ts(type = "\"response.compaction\""))]
    object: &'static str,
    /// Unix seconds.
    created_at: u64,
    /// The messages of the user, and then the compaction.
    output: Vec<CompactedItem>,
    usage: ResponseUsage,
}

/// An item of a compacted conversation.
#[derive(Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[cfg_attr(test, ts(rename = "ResponseCompactedItem"))]
#[serde(tag = "type", rename_all = "snake_case")]
enum CompactedItem {
    Message {
        id: String,
        status: Status,
        #[cfg_attr(test, ts(type = "\"user\""))]
        role: &'static str,
        content: Vec<KeptPart>,
    },
    Compaction {
        id: String,
        /// The summary, for this endpoint to read.
        encrypted_content: String,
    },
}

/// A part of a message of the user.
#[derive(Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[cfg_attr(test, ts(rename = "ResponseKeptPart"))]
#[serde(tag = "type", rename_all = "snake_case")]
enum KeptPart {
    InputText {
        text: String,
    },
    InputImage {
        image_url: String,
        #[cfg_attr(test, ts(type = "\"low\" | \"high\" | \"auto\""))]
        detail: &'static str,
    },
}

/// Answers the request.
async fn answer(endpoint: &Endpoint, request: &Request) -> Result<Response> {
    let attempt = Attempt::read(endpoint, request)?;
    let now = attempt.local_time;
    let warn_unknown = |name: &str| endpoint.warn_unknown(name);
    let (mut plan, kept) = parse(&request.body, &endpoint.switches, now, warn_unknown)?;
    plan.images.attach(&request.attachments)?;
    let run = Run::start(endpoint, plan, attempt.earlier()).await;
    let mut run = run.map_err(|error| rename_param(error, RENAMED))?;
    run.skip_next_turn();
    let pieces = run.choices().await?;
    let id = attempt.id("resp_");
    let compaction = Compaction {
        output: output(&id, kept, &summary(&pieces)?),
        id,
        object: "response.compaction",
        created_at: attempt.created_s,
        usage: ResponseUsage::new(run.counts()),
    };
    Ok(Response::json(200, to_json(&compaction)))
}

/// Parses and validates a body: the plan of the summary, and the messages that are kept. `now` is what the chat template's
/// clock shows; `warn_unknown` is called with the name of each ignored field.
fn parse(
    body: &[u8],
    switches: &Switches,
    now: LocalTime,
    mut warn_unknown: impl FnMut(&str),
) -> Result<(Plan, Vec<Vec<KeptPart>>)> {
    let fields = Body::parse_fields(body)?;
    UnknownFieldPolicy::new(switches, &mut warn_unknown).check(fields.names(), known_fields)?;
    refused::check(&fields, CompactFields::names)?;
    refused::check_each(&fields, &STORED)?;
    check_settings(&fields)?;
    let model = model::read(&fields, switches)?;
    let mut conversation = input::read(&fields, Vec::new(), switches, now)?;
    compaction::ask(&mut conversation.messages);
    // The tokens are for the summary, as far as the template can prevent reasoning.
    let variables = &mut conversation.variables;
    variables.entry("enable_thinking").or_insert(false.into());
    model::check_user(&fields)?;
    let settings = settings();
    let plan = Plan::of_message(MessageRequest {
        model,
        conversation,
        length: length::read_of_message(&settings, switches, None)?,
        restrictions: restrictions::read(&settings, switches)?,
        drafting: drafting::read(&settings, switches)?,
        sampling: sampling::read(&settings, switches)?,
        constraint: Constraint::None,
    });
    Ok((plan, kept(&fields)))
}

/// The names of all fields of the route.
fn known_fields() -> impl Iterator<Item = &'static str> {
    ResponseFields::names()
        .chain(CompactFields::names())
        .chain(refused::names())
}

/// Refuses the fields that set how a response is written: a summary has settings of its own.
fn check_settings(fields: &Fields) -> Result<()> {
    let is_own = |name: &str| CompactFields::names().any(|own| own == name);
    for name in ResponseFields::names().filter(|name| !is_own(name)) {
        if fields.get(name).is_some_and(|value| *value != false) {
            let message =
                format!("{name} is not supported: every summary is written in the same way");
            return Err(fault(RequestFault::UnsupportedParameter, name, message));
        }
    }
    Ok(())
}

/// The settings of every summary: the same conversation has the same one, and what the context leaves may be short. Small models
/// would repeat a line until the limit, so repetitions of more than 6 tokens are penalized.
fn settings() -> Fields {
    let settings = [
        ("temperature", json!(0)),
        ("dry_multiplier", json!(0.8)),
        ("dry_allowed_length", json!(6)),
        ("dry_sequence_breakers", json!([])),
        ("max_tokens", json!(MAX_TOKENS)),
        ("context_length_exceeded_behavior", json!("truncate")),
    ];
    let members = settings.map(|(name, value)| (name.to_owned(), value));
    Fields::new(members.into_iter().collect())
}

/// The contents of the user's messages. The input was checked.
fn kept(fields: &Fields) -> Vec<Vec<KeptPart>> {
    let items = match fields.get("input") {
        Some(Value::Array(items)) => &items[..],
        Some(Value::String(text)) => return vec![vec![KeptPart::text(text)]],
        _ => &[],
    };
    let is_message = |item: &&Value| matches!(item["type"].as_str(), None | Some("message"));
    let of_user = items.iter().filter(is_message);
    let of_user = of_user.filter(|item| item["role"] == "user");
    let contents = of_user.map(|item| match &item["content"] {
        Value::Array(parts) => parts.iter().map(KeptPart::of).collect(),
        content => vec![KeptPart::text(content.as_str().unwrap_or_default())],
    });
    contents.collect()
}

impl KeptPart {
    fn text(text: &str) -> KeptPart {
        KeptPart::InputText {
            text: text.to_owned(),
        }
    }

    /// A part that was given.
    fn of(part: &Value) -> KeptPart {
        let string = |member: &Value| member.as_str().map(str::to_owned);
        // It has no effect, and others do not exist.
        let detail = |member: &Value| {
            let mut known = ["low", "high", "auto"].into_iter();
            known.find(|known| member == known)
        };
        let image = &part["image_url"];
        match string(&part["text"]).or(string(&part["refusal"])) {
            Some(text) => KeptPart::InputText { text },
            None => KeptPart::InputImage {
                image_url: string(image).or(string(&image["url"])).unwrap_or_default(),
                detail: detail(&part["detail"])
                    .or(detail(&image["detail"]))
                    .unwrap_or("auto"),
            },
        }
    }
}

/// The text that the model wrote, without its reasoning.
///
/// # Errors
/// `unsupported_parameter` for a model that wrote none.
fn summary(pieces: &[Piece]) -> Result<String> {
    let parts = pieces.iter().flat_map(|piece| &piece.parts);
    let texts = parts.filter_map(|part| match part {
        OutputPart::Content(text) => Some(&**text),
        _ => None,
    });
    let text: String = texts.collect();
    match text.trim() {
        "" => {
            let message = format!("model: it wrote no summary within {MAX_TOKENS} tokens");
            let kind = RequestFault::UnsupportedParameter;
            Err(fault(kind, "model", message))
        }
        text => Ok(text.to_owned()),
    }
}

/// The items of the answer with this id.
fn output(id: &str, kept: Vec<Vec<KeptPart>>, summary: &str) -> Vec<CompactedItem> {
    let random = id.strip_prefix("resp_").unwrap_or(id);
    let compaction = CompactedItem::Compaction {
        id: format!("cmp_{random}{}", kept.len()),
        encrypted_content: compaction::encode(summary),
    };
    let messages = kept.into_iter().enumerate();
    let messages = messages.map(|(index, content)| CompactedItem::Message {
        id: format!("msg_{random}{index}"),
        status: Status::Completed,
        role: "user",
        content,
    });
    messages.chain([compaction]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::reference::assert_specified;
    use crate::api::routes::test_requests::{only_conversation, refusal, with_members};

    fn parsed(members: Value) -> Result<(Plan, Vec<Vec<KeptPart>>)> {
        let body = with_members(json!({"model": "m", "input": "q"}), members);
        let (switches, now) = (Switches::default(), LocalTime::new(0, 0));
        parse(body.as_bytes(), &switches, now, |_| {})
    }

    #[track_caller]
    fn refused(members: Value) -> (RequestFault, String) {
        refusal(parsed(members))
    }

    #[test]
    fn the_specification_has_the_fields() {
        assert_specified("20.6", &[], known_fields());
    }

    #[test]
    fn the_summary_is_the_likeliest_of_a_bounded_length() {
        let (plan, _) = parsed(json!({"instructions": "i"})).unwrap();
        assert_eq!(plan.length.max_tokens.unwrap().tokens, MAX_TOKENS);
        let sampling = format!("{:?}", plan.sampling);
        assert!(sampling.contains("multiplier: 0.8"), "{sampling}");
        let conversation = only_conversation(&plan);
        assert!(conversation.tools.is_empty());
        assert_eq!(conversation.variables["enable_thinking"], false);
        let [system, user] = &conversation.messages[..] else {
            panic!("{conversation:?}");
        };
        assert_eq!(*system, json!({"role": "system", "content": "i"}));
        let content = user["content"].as_str().unwrap();
        assert!(content.starts_with("q\n\nWrite a summary"), "{content}");
        let variables = json!({"chat_template_kwargs": {"enable_thinking": true}});
        let (plan, _) = parsed(variables).unwrap();
        assert_eq!(only_conversation(&plan).variables["enable_thinking"], true);
    }

    #[test]
    fn messages_of_the_user_are_kept() {
        let text = |text: &str| KeptPart::text(text);
        assert_eq!(parsed(json!({})).unwrap().1, [[text("q")]]);
        let url = "data:image/png;base64,AAAA";
        let input = json!([
            {"role": "system", "content": "s"},
            {"role": "user", "content": "a"},
            {"role": "assistant", "content": "b"},
            {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c", "output": "d", "role": "user"},
            {"type": "message", "role": "user", "content": [
                {"type": "input_text", "text": "e"},
                {"type": "input_image", "image_url": url, "detail": "low"},
                {"type": "image_url", "image_url": {"url": url}}]},
            {"type": "compaction", "encrypted_content": compaction::encode("g")},
        ]);
        let image = |detail: &'static str| KeptPart::InputImage {
            image_url: url.to_owned(),
            detail,
        };
        let (plan, kept) = parsed(json!({"input": input})).unwrap();
        assert_eq!(
            kept,
            [
                vec![text("a")],
                vec![text("e"), image("low"), image("auto")]
            ]
        );
        assert_eq!(plan.images.files.len(), 2);
    }

    #[test]
    fn fields_that_need_a_server_are_refused() {
        use RequestFault::{InvalidValue, MissingRequiredParameter, UnsupportedParameter};
        let is = |fault, param: &str| (fault, param.to_owned());
        for (name, value) in [
            ("previous_response_id", json!("resp_1")),
            ("conversation", json!("conv_1")),
            ("stream", json!(true)),
        ] {
            let refusal = refused(json!({name: value}));
            assert_eq!(refusal, is(UnsupportedParameter, name));
            assert!(parsed(json!({name: null})).is_ok());
        }
        for name in ["model", "input"] {
            let missing = refused(json!({name: null}));
            assert_eq!(missing, is(MissingRequiredParameter, name));
        }
        assert_eq!(refused(json!({"input": []})), is(InvalidValue, "input"));
    }
}
