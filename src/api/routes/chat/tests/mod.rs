//! The rules of specification 18.1 to 18.3 that need no model.

mod arbitrary;

use serde_json::{Value, json};

use super::parse::{ChatOwnFields, known_fields, parse};
use crate::api::fields::conversation::ConversationFields;
use crate::api::fields::functions::FunctionFields;
use crate::api::fields::reasoning::ReasoningFields;
use crate::api::fields::{Constraint, Conversation};
use crate::api::plan::Plan;
use crate::api::reference::assert_specified;
use crate::api::routes::test_requests::{only_conversation, refusal, with_members};
use crate::api::switches::Switches;
use crate::text::LocalTime;
use crate::{RequestFault, Result};
use RequestFault::{
    ConflictingParameters, InvalidType, InvalidValue, MissingRequiredParameter, OutOfRange,
    UnsupportedParameter,
};

fn parse_body(body: &[u8], switches: &Switches) -> Result<Plan> {
    Ok(parse(body, switches, LocalTime::new(0, 0), |_| {})?.0)
}

#[test]
fn the_specification_has_the_fields() {
    let own = [
        ChatOwnFields::NAMES,
        ConversationFields::NAMES,
        ReasoningFields::NAMES,
        FunctionFields::NAMES,
    ];
    assert_specified("18.1", &own, known_fields());
}

/// The plan of the base request with `members` added or replaced.
fn plan(members: Value) -> Result<Plan> {
    let base = json!({"model": "m", "messages": [{"role": "user", "content": "q"}]});
    parse_body(with_members(base, members).as_bytes(), &Switches::default())
}

#[track_caller]
fn conversation(members: Value) -> Conversation {
    only_conversation(&plan(members).unwrap())
}

/// The only message of a conversation of `message`.
#[track_caller]
fn message(message: Value) -> Value {
    conversation(json!({"messages": [message]}))
        .messages
        .remove(0)
}

#[track_caller]
fn refused(members: Value) -> (RequestFault, String) {
    refusal(plan(members))
}

#[test]
fn messages_of_all_roles() {
    for role in ["system", "developer", "user", "assistant", "tool"] {
        let expected = json!({"role": role, "content": "a"});
        assert_eq!(message(expected.clone()), expected);
    }
    let function = json!({"role": "function", "name": "f", "content": "a"});
    let expected = json!({"role": "tool", "content": "a", "name": "f"});
    assert_eq!(message(function), expected);
    let tool =
        json!({"role": "tool", "tool_call_id": "c", "content": [{"type": "text", "text": "a"}]});
    assert_eq!(message(tool)["tool_call_id"], "c");
}

#[test]
fn content_is_one_text() {
    let parts = json!([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]);
    assert_eq!(
        message(json!({"role": "user", "content": parts}))["content"],
        "a\nb"
    );
    let refusal = json!([{"type": "refusal", "refusal": "no"}]);
    assert_eq!(
        message(json!({"role": "assistant", "content": refusal}))["content"],
        "no"
    );
    assert_eq!(
        message(json!({"role": "assistant", "refusal": "no"}))["content"],
        "no"
    );
    assert_eq!(
        message(json!({"role": "assistant", "content": null}))["content"],
        ""
    );
}

#[test]
fn reasoning_is_known_by_every_name() {
    for name in ["reasoning_content", "reasoning", "thinking"] {
        let message = message(json!({"role": "assistant", "content": "a", name: "r"}));
        for alias in ["reasoning_content", "reasoning", "thinking"] {
            assert_eq!(message[alias], "r", "{name}");
        }
    }
    let user = message(json!({"role": "user", "content": "a", "reasoning": "r"}));
    assert_eq!(user, json!({"role": "user", "content": "a"}));
}

#[test]
fn arguments_of_calls_become_objects() {
    let arguments = |given: Value| {
        let call =
            json!({"id": "c", "type": "function", "function": {"name": "f", "arguments": given}});
        let mut message = message(json!({"role": "assistant", "tool_calls": [call]}));
        message["tool_calls"][0]["function"]["arguments"].take()
    };
    assert_eq!(
        arguments(json!("{\"z\": 1, \"a\": 2}")).to_string(),
        r#"{"z":1,"a":2}"#
    );
    assert_eq!(arguments(json!("")), json!({}));
    assert_eq!(arguments(json!("[1]")), json!("[1]"));
    assert_eq!(arguments(json!("{")), json!("{"));
    assert_eq!(arguments(json!({"a": 1})), json!({"a": 1}));
    let old = json!({"role": "assistant", "function_call": {"name": "f", "arguments": "{}"}});
    assert_eq!(message(old)["tool_calls"][0]["function"]["name"], "f");
}

#[test]
fn wrong_messages_are_refused() {
    let messages = |messages: Value| refused(json!({"messages": messages}));
    let one = |message: Value| messages(json!([message]));
    let is = |fault| (fault, "messages".to_owned());
    assert_eq!(messages(Value::Null), is(MissingRequiredParameter));
    assert_eq!(messages(json!("a")), is(InvalidType));
    assert_eq!(messages(json!([])), is(InvalidValue));
    assert_eq!(one(json!("a")), is(InvalidType));
    assert_eq!(one(json!({"content": "a"})), is(MissingRequiredParameter));
    assert_eq!(one(json!({"role": 1, "content": "a"})), is(InvalidType));
    assert_eq!(
        one(json!({"role": "bot", "content": "a"})),
        is(InvalidValue)
    );
    assert_eq!(one(json!({"role": "user"})), is(MissingRequiredParameter));
    assert_eq!(one(json!({"role": "user", "content": 1})), is(InvalidType));
    assert_eq!(
        one(json!({"role": "user", "content": "a", "name": 1})),
        is(InvalidType)
    );
    let parts = |part: Value| one(json!({"role": "user", "content": [part]}));
    let image = json!({"type": "image_url", "image_url": {"url": "data:"}});
    assert_eq!(parts(image), is(InvalidValue));
    assert_eq!(parts(json!({"type": "image_url"})), is(InvalidValue));
    assert_eq!(
        parts(json!({"type": "image_url", "image_url": 1})),
        is(InvalidType)
    );
    assert_eq!(
        parts(json!({"type": "input_image", "file_id": "file-1"})),
        is(UnsupportedParameter)
    );
    for kind in ["input_audio", "video_url", "file"] {
        assert_eq!(parts(json!({"type": kind})), is(UnsupportedParameter));
    }
    let image = json!({"type": "image_url", "image_url": "data:image/png;base64,AAAA"});
    assert_eq!(
        one(json!({"role": "assistant", "content": [image]})),
        is(UnsupportedParameter)
    );
    assert_eq!(parts(json!({"type": "poem"})), is(InvalidValue));
    assert_eq!(parts(json!({"text": "a"})), is(InvalidValue));
    assert_eq!(parts(json!({"type": "text"})), is(InvalidValue));
    assert_eq!(parts(json!({"type": "text", "text": 1})), is(InvalidType));
    let calls = |calls: Value| one(json!({"role": "assistant", "tool_calls": calls}));
    assert_eq!(calls(json!(1)), is(InvalidType));
    assert_eq!(calls(json!([{}])), is(InvalidValue));
    assert_eq!(calls(json!([{"function": {}}])), is(InvalidValue));
    let numbered = json!([{"function": {"name": "f", "arguments": 1}}]);
    assert_eq!(calls(numbered), is(InvalidType));
}

#[test]
fn other_fields() {
    let is = |fault, param: &str| (fault, param.to_owned());
    for (members, expected) in [
        (json!({"top_logprobs": 1}), is(InvalidValue, "top_logprobs")),
        (
            json!({"logprobs": true, "top_logprobs": 21}),
            is(OutOfRange, "top_logprobs"),
        ),
        (json!({"logprobs": 1}), is(InvalidType, "logprobs")),
        (
            json!({"reasoning_effort": "huge"}),
            is(InvalidValue, "reasoning_effort"),
        ),
        (
            json!({"chat_template_kwargs": []}),
            is(InvalidType, "chat_template_kwargs"),
        ),
        (
            json!({"parallel_tool_calls": 1}),
            is(InvalidType, "parallel_tool_calls"),
        ),
        (
            json!({"continue_final_message": true, "add_generation_prompt": true}),
            is(ConflictingParameters, "continue_final_message"),
        ),
        (json!({"n": 129}), is(OutOfRange, "n")),
        (
            json!({"stream_options": {}}),
            is(InvalidValue, "stream_options"),
        ),
        (json!({"temperature": 3}), is(OutOfRange, "temperature")),
        (
            json!({"tool_choice": "required"}),
            is(InvalidValue, "tool_choice"),
        ),
    ] {
        let shown = members.to_string();
        assert_eq!(refused(members), expected, "{shown}");
    }
    let logprobs = |members: Value| plan(members).unwrap().logprobs.top;
    assert_eq!(
        logprobs(json!({"logprobs": true, "top_logprobs": 20})),
        Some(20)
    );
    assert_eq!(logprobs(json!({"logprobs": true})), Some(0));
    assert_eq!(logprobs(json!({"logprobs": false})), None);
    let continued = conversation(json!({"continue_final_message": true}));
    assert!(continued.continues_final_message && !continued.add_generation_prompt);
    assert!(conversation(json!({})).add_generation_prompt);
    assert_eq!(
        plan(json!({"response_format": {"type": "text"}}))
            .unwrap()
            .constraint,
        Constraint::None
    );
}

#[test]
fn fields_of_vendors() {
    let vendors = json!({
        "stop_token_ids": [7], "min_tokens": 50, "allowed_token_ids": [1, 7], "bad_words": ["b"],
        "guided_choice": ["a", "b"], "metadata": {}, "xtc_probability": 0
    });
    let vendors = plan(vendors).unwrap();
    assert_eq!(vendors.length.stop_token_ids, [7]);
    // No limit of 16 tokens: without `max_tokens` a message may fill the context.
    assert_eq!(vendors.length.min_tokens, 50);
    assert_eq!(vendors.restrictions.allowed_token_ids, Some(vec![1, 7]));
    assert_eq!(vendors.restrictions.bad_words, ["b"]);
    assert!(matches!(vendors.constraint, Constraint::Grammar { .. }));
    let is = |fault, param: &str| (fault, param.to_owned());
    assert_eq!(
        refused(json!({"xtc_probability": 0.5})),
        is(UnsupportedParameter, "xtc_probability")
    );
    assert_eq!(
        refused(json!({"min_tokens": 5, "max_tokens": 4})),
        is(OutOfRange, "min_tokens")
    );
    assert_eq!(
        refused(json!({"guided_regex": "a", "response_format": {"type": "json_object"}})),
        is(ConflictingParameters, "guided_regex")
    );
    let tool = json!({"type": "function", "function": {"name": "get weather", "x": 1}});
    let body = json!({
        "model": "m", "messages": [{"role": "user", "content": "q"}], "tools": [tool]
    });
    let body = body.to_string();
    let is_refused = parse_body(body.as_bytes(), &Switches::default()).is_err();
    let profile = Switches::profile("mistralrs").unwrap();
    assert!(is_refused && parse_body(body.as_bytes(), &profile).is_ok());
}

#[test]
fn the_template_is_given_the_tools_that_may_be_called() {
    let tool = |name: &str| json!({"type": "function", "function": {"name": name, "x": 1}});
    let tools = |choice: Value| {
        let members = json!({"tools": [tool("f"), tool("g")], "tool_choice": choice});
        conversation(members).tools
    };
    assert_eq!(tools(json!("auto")), [tool("f"), tool("g")]);
    assert_eq!(tools(json!("none")), Vec::<Value>::new());
    assert_eq!(
        tools(json!({"type": "function", "function": {"name": "g"}})),
        [tool("g")]
    );
}

#[test]
fn unknown_fields_are_reported() {
    let body =
        br#"{"model":"m","prompt":null,"zebra":1,"messages":[{"role":"user","content":"q"}]}"#;
    let mut warned = Vec::new();
    let warn = |name: &str| warned.push(name.to_owned());
    parse(body, &Switches::default(), LocalTime::new(0, 0), warn).unwrap();
    assert_eq!(warned, ["zebra"]);
    let strict = Switches::profile("openai").unwrap();
    assert!(parse_body(body, &strict).is_err());
    assert!(known_fields().any(|name| name == "messages"));
}
