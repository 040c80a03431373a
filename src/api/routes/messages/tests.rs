//! The rules of specification 22.1 and 22.2 that need no model.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::parse::{Use, parse};
use super::request::{MessageOwnFields, UnusedMessageFields, known_fields};
use crate::api::fields::blocks::TurnFields;
use crate::api::fields::{Constraint, Conversation, Prompt};
use crate::api::plan::Plan;
use crate::api::reference::assert_specified;
use crate::api::routes::arbitrary;
use crate::api::routes::test_requests::{only_conversation, refusal, with_members};
use crate::api::switches::Switches;
use crate::text::LocalTime;
use crate::{RequestFault, Result};
use RequestFault::{
    ConflictingParameters, InvalidSchema, InvalidType, InvalidValue, MissingRequiredParameter,
    OutOfRange, UnsupportedParameter,
};

fn parse_body(body: &[u8], switches: &Switches) -> Result<Plan> {
    let now = LocalTime::new(0, 0);
    Ok(parse(body, switches, now, Use::Answer, |_| {})?.0)
}

#[test]
fn the_specification_has_the_fields() {
    let own = [
        MessageOwnFields::NAMES,
        UnusedMessageFields::NAMES,
        TurnFields::NAMES,
    ];
    assert_specified("22.1", &own, known_fields());
}

/// The base request with `members` added or replaced.
fn body(members: Value) -> String {
    let messages = json!([{"role": "user", "content": "q"}]);
    let base = json!({"model": "m", "max_tokens": 8, "messages": messages});
    with_members(base, members)
}

fn plan(members: Value) -> Result<Plan> {
    parse_body(body(members).as_bytes(), &Switches::default())
}

#[track_caller]
fn conversation(members: Value) -> Conversation {
    only_conversation(&plan(members).unwrap())
}

/// The messages of these turns.
#[track_caller]
fn messages(turns: Value) -> Vec<Value> {
    let mut messages = conversation(json!({"messages": turns})).messages;
    for message in &mut messages {
        for alias in ["reasoning", "thinking"] {
            message.as_object_mut().unwrap().remove(alias);
        }
    }
    messages
}

#[track_caller]
fn refused(members: Value) -> (RequestFault, String) {
    refusal(plan(members))
}

fn is(fault: RequestFault, param: &str) -> (RequestFault, String) {
    (fault, param.to_owned())
}

const PNG: &str = "iVBORw0KGgo=";

fn image() -> Value {
    json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}})
}

fn tool(name: &str) -> Value {
    json!({"name": name, "description": "d", "input_schema": {"type": "object"}, "cache_control": {"type": "ephemeral"}})
}

#[test]
fn turns_become_messages() {
    let turns = json!([
        {"role": "user", "content": "a"},
        {"role": "user", "content": [{"type": "text", "text": "b"}, image()]},
        {"role": "assistant", "content": [
            {"type": "thinking", "thinking": "t", "signature": ""},
            {"type": "redacted_thinking", "data": "x"},
            {"type": "text", "text": "c", "citations": null},
            {"type": "tool_use", "id": "u1", "name": "f", "input": {"z": 1, "a": 2}},
            {"type": "tool_use", "id": "u2", "name": "g", "input": {}},
        ]},
        {"role": "system", "content": [{"type": "text", "text": "s"}]},
        {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "u2", "content": "r", "cache_control": {"type": "ephemeral"}},
            {"type": "tool_result", "tool_use_id": "u1", "is_error": true, "content": [{"type": "text", "text": "s"}]},
            {"type": "text", "text": "d"},
        ]},
    ]);
    let user =
        json!([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}, {"type": "image"}]);
    let call = |id: &str, name: &str, arguments: Value| json!({"type": "function", "function": {"name": name, "arguments": arguments}, "id": id});
    let calls = [
        call("u1", "f", json!({"z": 1, "a": 2})),
        call("u2", "g", json!({})),
    ];
    assert_eq!(
        messages(turns),
        [
            json!({"role": "user", "content": user}),
            json!({"role": "assistant", "content": "c", "reasoning_content": "t", "tool_calls": calls}),
            json!({"role": "system", "content": "s"}),
            json!({"role": "tool", "content": "r", "name": "g", "tool_call_id": "u2"}),
            json!({"role": "tool", "content": "Error: s", "name": "f", "tool_call_id": "u1"}),
            json!({"role": "user", "content": "d"}),
        ]
    );
}

#[test]
fn a_system_prompt_comes_first() {
    let first = |system: Value| conversation(json!({"system": system})).messages.remove(0);
    assert_eq!(first(json!("s")), json!({"role": "system", "content": "s"}));
    let blocks = json!([{"type": "text", "text": "s", "cache_control": {"type": "ephemeral"}}, {"type": "text", "text": "t"}]);
    assert_eq!(first(blocks)["content"], "s\nt");
    for nothing in [json!(null), json!(""), json!([])] {
        assert_eq!(first(nothing)["role"], "user");
    }
    assert_eq!(refused(json!({"system": 1})), is(InvalidType, "system"));
    let image = json!([image()]);
    assert_eq!(
        refused(json!({"system": image})),
        is(InvalidValue, "system")
    );
}

#[test]
fn results_may_be_empty_or_images() {
    let result = |result: Value| {
        let turns = json!([
            {"role": "assistant", "content": [{"type": "tool_use", "id": "u", "name": "f", "input": {}}]},
            {"role": "user", "content": [result]},
        ]);
        messages(turns).remove(1)["content"].take()
    };
    let of = |members: Value| {
        let mut block = json!({"type": "tool_result", "tool_use_id": "u"});
        let members = members.as_object().unwrap().clone();
        block.as_object_mut().unwrap().extend(members);
        result(block)
    };
    assert_eq!(of(json!({})), "");
    assert_eq!(of(json!({"is_error": true})), "Error");
    let parts = json!([{"type": "text", "text": "Error"}, {"type": "image"}]);
    assert_eq!(of(json!({"content": [image()], "is_error": true})), parts);
}

#[test]
fn a_text_of_the_assistant_at_the_end_is_continued() {
    let user = json!({"role": "user", "content": "q"});
    let continues =
        |last: Value| conversation(json!({"messages": [user, last]})).continues_final_message;
    assert!(continues(json!({"role": "assistant", "content": "a"})));
    assert!(!continues(json!({"role": "assistant", "content": " "})));
    assert!(!continues(json!({"role": "assistant", "content": []})));
    let call = json!({"type": "tool_use", "id": "u", "name": "f", "input": {}});
    assert!(!continues(
        json!({"role": "assistant", "content": [{"type": "text", "text": "a"}, call]})
    ));
    assert!(!continues(user.clone()));
    let switches = Switches::profile("vllm").unwrap();
    let body = body(json!({"messages": [user, {"role": "assistant", "content": "a"}]}));
    let plan = parse_body(body.as_bytes(), &switches).unwrap();
    assert!(matches!(&plan.prompts[..], [Prompt::Conversation(it)] if it.add_generation_prompt));
}

#[test]
fn wrong_turns_are_refused() {
    let turns = |turns: Value| refused(json!({"messages": turns}));
    let one = |turn: Value| turns(json!([turn]));
    let user = |block: Value| one(json!({"role": "user", "content": [block]}));
    let assistant = |block: Value| one(json!({"role": "assistant", "content": [block]}));
    let is = |fault| (fault, "messages".to_owned());
    assert_eq!(turns(Value::Null), is(MissingRequiredParameter));
    assert_eq!(turns(json!("a")), is(InvalidType));
    assert_eq!(turns(json!([])), is(InvalidValue));
    assert_eq!(one(json!("a")), is(InvalidType));
    assert_eq!(one(json!({"content": "a"})), is(MissingRequiredParameter));
    for role in ["tool", "bot"] {
        assert_eq!(one(json!({"role": role, "content": "a"})), is(InvalidValue));
    }
    assert_eq!(one(json!({"role": "user"})), is(MissingRequiredParameter));
    assert_eq!(one(json!({"role": "user", "content": 1})), is(InvalidType));
    assert_eq!(
        one(json!({"role": "user", "content": []})),
        is(InvalidValue)
    );
    assert_eq!(user(json!("a")), is(InvalidType));
    assert_eq!(user(json!({"text": "a"})), is(InvalidValue));
    assert_eq!(user(json!({"type": 1})), is(InvalidType));
    assert_eq!(user(json!({"type": "poem"})), is(InvalidValue));
    assert_eq!(user(json!({"type": "text"})), is(InvalidValue));
    assert_eq!(user(json!({"type": "text", "text": 1})), is(InvalidType));
    for kind in ["document", "search_result"] {
        assert_eq!(user(json!({"type": kind})), is(UnsupportedParameter));
    }
    assert_eq!(
        assistant(json!({"type": "server_tool_use"})),
        is(UnsupportedParameter)
    );
    assert_eq!(assistant(image()), is(UnsupportedParameter));
    assert_eq!(
        assistant(json!({"type": "tool_result", "tool_use_id": "u"})),
        is(InvalidValue)
    );
    let source = |source: Value| user(json!({"type": "image", "source": source}));
    assert_eq!(source(Value::Null), is(InvalidValue));
    assert_eq!(source(json!("data:")), is(InvalidType));
    assert_eq!(
        source(json!({"type": "base64", "data": PNG})),
        is(InvalidValue)
    );
    assert_eq!(
        source(json!({"type": "base64", "media_type": "image/tiff", "data": PNG})),
        is(InvalidValue)
    );
    assert_eq!(
        source(json!({"type": "url", "url": "https://a.example/a.png"})),
        is(InvalidValue)
    );
    assert_eq!(
        source(json!({"type": "file", "file_id": "f"})),
        is(UnsupportedParameter)
    );
    assert_eq!(source(json!({"type": "x"})), is(InvalidValue));
    let unknown = json!({"type": "tool_result", "tool_use_id": "u", "content": "r"});
    assert_eq!(user(unknown), is(InvalidValue));
    let call = |input: Value| {
        assistant(json!({"type": "tool_use", "id": "u", "name": "f", "input": input}))
    };
    assert_eq!(call(json!("{}")), is(InvalidType));
    assert_eq!(call(Value::Null), is(InvalidValue));
    assert_eq!(
        assistant(json!({"type": "tool_use", "name": "f", "input": {}})),
        is(InvalidValue)
    );
    let result = |members: Value| {
        let mut block = json!({"type": "tool_result", "tool_use_id": "u"});
        block
            .as_object_mut()
            .unwrap()
            .extend(members.as_object().unwrap().clone());
        turns(json!([
            {"role": "assistant", "content": [{"type": "tool_use", "id": "u", "name": "f", "input": {}}]},
            {"role": "user", "content": [block]},
        ]))
    };
    assert_eq!(result(json!({"content": 1})), is(InvalidType));
    assert_eq!(result(json!({"is_error": 1})), is(InvalidType));
    assert_eq!(
        result(json!({"content": [{"type": "thinking"}]})),
        is(InvalidValue)
    );
}

#[test]
fn tools_have_a_schema_beside_the_name() {
    let of = |choice: Value| {
        let plan = plan(json!({"tools": [tool("f"), tool("g")], "tool_choice": choice})).unwrap();
        let [Prompt::Conversation(chat)] = &plan.prompts[..] else {
            panic!("{:?}", plan.prompts);
        };
        let is_forced = matches!(&plan.constraint, Constraint::Tools(calls) if calls.is_forced);
        (
            chat.tools.clone(),
            is_forced,
            plan.message.unwrap().parallel_calls,
        )
    };
    let nested = |name: &str| json!({"type": "function", "function": {"parameters": {"type": "object"}, "name": name, "description": "d"}});
    let both = vec![nested("f"), nested("g")];
    assert_eq!(of(Value::Null), (both.clone(), false, None));
    assert_eq!(of(json!({"type": "auto"})), (both.clone(), false, None));
    assert_eq!(
        of(json!({"type": "any", "disable_parallel_tool_use": true})),
        (both, true, Some(false))
    );
    assert_eq!(
        of(json!({"type": "tool", "name": "g"})),
        (vec![nested("g")], true, None)
    );
    assert_eq!(of(json!({"type": "none"})), (Vec::new(), false, None));
    let strict = plan(
        json!({"tools": [{"type": "custom", "name": "f", "strict": true, "input_schema": {"type": "object"}}]}),
    );
    assert!(
        matches!(strict.unwrap().constraint, Constraint::Tools(calls) if calls.tools[0].strict)
    );
}

#[test]
fn wrong_tools_are_refused() {
    let tools = |tool: Value| refused(json!({"tools": [tool]}));
    for kind in [
        "web_search_20250305",
        "bash_20250124",
        "text_editor_20250728",
        "computer_20250124",
        "memory_20250818",
    ] {
        assert_eq!(
            tools(json!({"type": kind, "name": "x"})),
            is(UnsupportedParameter, "tools")
        );
    }
    assert_eq!(
        tools(json!({"type": "x", "name": "x"})),
        is(InvalidValue, "tools")
    );
    assert_eq!(
        tools(json!({"name": "f"})),
        is(MissingRequiredParameter, "tools")
    );
    assert_eq!(
        tools(json!({"name": "f", "input_schema": {"type": "array"}})),
        is(InvalidSchema, "tools")
    );
    assert_eq!(
        tools(json!({"name": "f", "input_schema": {"type": "int"}})),
        is(InvalidSchema, "tools")
    );
    assert_eq!(
        tools(json!({"input_schema": {"type": "object"}})),
        is(InvalidValue, "tools")
    );
    assert_eq!(tools(json!(1)), is(InvalidType, "tools"));
    assert_eq!(refused(json!({"tools": {}})), is(InvalidType, "tools"));
    assert_eq!(
        refused(json!({"tools": [tool("f"), tool("f")]})),
        is(InvalidValue, "tools")
    );
    let choice = |choice: Value| refused(json!({"tools": [tool("f")], "tool_choice": choice}));
    assert_eq!(choice(json!("auto")), is(InvalidType, "tool_choice"));
    assert_eq!(
        choice(json!({"type": "required"})),
        is(InvalidValue, "tool_choice")
    );
    assert_eq!(
        choice(json!({})),
        is(MissingRequiredParameter, "tool_choice")
    );
    assert_eq!(
        choice(json!({"type": "tool"})),
        is(InvalidValue, "tool_choice")
    );
    assert_eq!(
        choice(json!({"type": "tool", "name": "g"})),
        is(InvalidValue, "tool_choice")
    );
    let parallel = json!({"type": "auto", "disable_parallel_tool_use": 1});
    assert_eq!(choice(parallel), is(InvalidType, "tool_choice"));
    assert_eq!(
        refused(json!({"tool_choice": {"type": "any"}})),
        is(InvalidValue, "tool_choice")
    );
    let message = plan(json!({"tools": [{"name": "f", "input_schema": {"type": "array"}}]}));
    let message = message.unwrap_err().to_string();
    assert!(
        message.starts_with("tools: input_schema of \"f\""),
        "{message}"
    );
}

#[test]
fn thinking_is_off_unless_asked_for() {
    let thinking = |members: Value| {
        conversation(members)
            .variables
            .get("enable_thinking")
            .cloned()
    };
    let of = |value: Value| thinking(json!({"thinking": value}));
    assert_eq!(of(Value::Null), Some(json!(false)));
    assert_eq!(of(json!({"type": "disabled"})), Some(json!(false)));
    assert_eq!(
        of(json!({"type": "enabled", "budget_tokens": 1024})),
        Some(json!(true))
    );
    assert_eq!(
        of(json!({"type": "adaptive", "display": "summarized"})),
        None
    );
    let given = json!({"chat_template_kwargs": {"enable_thinking": true}});
    assert_eq!(thinking(given), Some(json!(true)));
    let effort = conversation(json!({"output_config": {"effort": "low"}}));
    assert_eq!(effort.reasoning_effort, Some("low"));
    let wrong = |value: Value| refused(json!({"thinking": value}));
    assert_eq!(wrong(json!(true)), is(InvalidType, "thinking"));
    assert_eq!(wrong(json!({"type": "x"})), is(InvalidValue, "thinking"));
    assert_eq!(wrong(json!({})), is(MissingRequiredParameter, "thinking"));
    assert_eq!(
        wrong(json!({"type": "enabled", "budget_tokens": "1"})),
        is(InvalidType, "thinking")
    );
    let effort = json!({"output_config": {"effort": "huge"}});
    assert_eq!(refused(effort), is(InvalidValue, "output_config"));
}

#[test]
fn a_format_constrains_the_text() {
    let format = json!({"type": "json_schema", "schema": {"type": "object"}});
    for (members, name) in [
        (
            json!({"output_config": {"format": format}}),
            "output_config",
        ),
        (json!({"output_format": format}), "output_format"),
    ] {
        let constraint = plan(members).unwrap().constraint;
        assert!(
            matches!(constraint, Constraint::Grammar { param, is_schema: true, .. } if param == name)
        );
    }
    // The call has its own schema.
    let forced =
        json!({"output_format": format, "tools": [tool("f")], "tool_choice": {"type": "any"}});
    assert!(matches!(
        plan(forced).unwrap().constraint,
        Constraint::Tools(_)
    ));
    let twice = json!({"output_config": {"format": format}, "output_format": format});
    assert_eq!(refused(twice), is(ConflictingParameters, "output_format"));
    let config = |format: Value| refused(json!({"output_config": {"format": format}}));
    assert_eq!(config(json!("json")), is(InvalidType, "output_config"));
    assert_eq!(
        config(json!({"type": "x"})),
        is(InvalidValue, "output_config")
    );
    assert_eq!(
        config(json!({"type": "json_schema"})),
        is(MissingRequiredParameter, "output_config")
    );
    assert_eq!(
        config(json!({"type": "json_schema", "schema": 1})),
        is(InvalidSchema, "output_config")
    );
    // Those of responses and chat are other fields.
    for name in ["text", "response_format"] {
        let other = refused(json!({name: {"type": "json_object"}}));
        assert_eq!(other, is(UnsupportedParameter, name));
    }
}

#[test]
fn lengths_and_sampling() {
    assert_eq!(
        refused(json!({"max_tokens": null})),
        is(MissingRequiredParameter, "max_tokens")
    );
    let now = LocalTime::new(0, 0);
    let uncounted = body(json!({"max_tokens": null}));
    assert!(
        parse(
            uncounted.as_bytes(),
            &Switches::default(),
            now,
            Use::Count,
            |_| {}
        )
        .is_ok()
    );
    assert_eq!(
        refused(json!({"max_tokens": -1})),
        is(OutOfRange, "max_tokens")
    );
    let stops = plan(json!({"stop_sequences": ["a", "b"]})).unwrap();
    assert_eq!(stops.length.stop, ["a", "b"]);
    assert_eq!(
        refused(json!({"stop_sequences": "a"})),
        is(InvalidType, "stop_sequences")
    );
    assert_eq!(
        refused(json!({"stop_sequences": [""]})),
        is(InvalidValue, "stop_sequences")
    );
    assert_eq!(
        refused(json!({"stop_sequences": ["a", "b", "c", "d", "e"]})),
        is(OutOfRange, "stop_sequences")
    );
    assert_eq!(
        refused(json!({"stop_sequences": ["a"], "stop": "b"})),
        is(ConflictingParameters, "stop_sequences")
    );
    assert_eq!(
        refused(json!({"temperature": 1.5})),
        is(OutOfRange, "temperature")
    );
    let open = Switches {
        sampling_bounds: crate::api::switches::SamplingBounds::Open,
        ..Switches::default()
    };
    assert!(parse_body(body(json!({"temperature": 1.5})).as_bytes(), &open).is_ok());
    assert!(
        plan(json!({"temperature": 1, "top_k": 5, "top_p": 0.9, "seed": 1, "min_p": 0.1})).is_ok()
    );
    assert_eq!(refused(json!({"top_p": 2})), is(OutOfRange, "top_p"));
    assert_eq!(
        refused(json!({"xtc_probability": 0.5})),
        is(UnsupportedParameter, "xtc_probability")
    );
}

#[test]
fn what_needs_a_server_is_refused() {
    for (name, value) in [
        ("container", json!("c")),
        ("context_management", json!({"edits": []})),
        ("mcp_servers", json!([{"type": "url"}])),
    ] {
        assert_eq!(
            refused(json!({name: value})),
            is(UnsupportedParameter, name)
        );
        assert!(plan(json!({name: null})).is_ok(), "{name}");
    }
    let neutral = json!({"mcp_servers": [], "metadata": {"user_id": "u"}, "service_tier": "auto",
        "cache_control": {"type": "ephemeral"}, "inference_geo": "us", "speed": "fast"});
    assert!(plan(neutral).is_ok());
}

#[test]
fn unknown_fields_are_reported() {
    let body = body(json!({"zebra": 1, "input": null, "output_config": {"mode": "x"}}));
    let mut warned = Vec::new();
    let warn = |name: &str| warned.push(name.to_owned());
    let now = LocalTime::new(0, 0);
    parse(
        body.as_bytes(),
        &Switches::default(),
        now,
        Use::Answer,
        warn,
    )
    .unwrap();
    assert_eq!(warned, ["zebra", "output_config.mode"]);
    assert!(parse_body(body.as_bytes(), &Switches::profile("openai").unwrap()).is_err());
}

/// Words that the fields know, so that values get past the first checks.
const WORDS: &[&str] = &[
    "role",
    "user",
    "assistant",
    "content",
    "type",
    "text",
    "tool_use",
    "tool_result",
    "tool_use_id",
    "thinking",
    "image",
    "source",
    "base64",
    "media_type",
    "data",
    "name",
    "input",
    "id",
    "input_schema",
    "custom",
    "auto",
    "any",
    "tool",
    "json_schema",
    "schema",
    "format",
    "enabled",
    "is_error",
    "\u{fdd0}",
];

fn turn() -> impl Strategy<Value = Value> {
    const KINDS: &[&str] = &["text", "image", "tool_use", "tool_result", "thinking", "x"];
    let kind = prop::sample::select(KINDS);
    let block = (
        kind,
        prop::collection::vec((arbitrary::word(WORDS), arbitrary::json(WORDS)), 0..4),
    )
        .prop_map(|(kind, members)| {
            let mut block: Map<String, Value> = members.into_iter().collect();
            block.insert("type".into(), kind.into());
            Value::Object(block)
        });
    let role = prop::sample::select(&["user", "assistant", "x"][..]);
    (
        role,
        prop::collection::vec(prop_oneof![block, arbitrary::json(WORDS)], 0..4),
    )
        .prop_map(|(role, content)| serde_json::json!({"role": role, "content": content}))
}

proptest! {
    #[test]
    fn any_body_is_accepted_or_refused_by_name(
        members in prop::collection::vec((arbitrary::field(known_fields(), WORDS), arbitrary::json(WORDS)), 0..5),
        turns in prop::collection::vec(prop_oneof![turn(), arbitrary::json(WORDS)], 0..4),
    ) {
        let mut body: Map<String, Value> = members.into_iter().collect();
        body.entry("model").or_insert("m".into());
        body.entry("max_tokens").or_insert(8.into());
        body.entry("messages").or_insert(turns.into());
        let body = Value::Object(body).to_string();
        match parse_body(body.as_bytes(), &Switches::default()) {
            Ok(plan) => prop_assert!(plan.n == 1 && plan.prompts.len() == 1),
            Err(error) => arbitrary::assert_refused_by_name(&body, &error)?,
        }
    }
}
