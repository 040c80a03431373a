//! The rules of specification 20.1 and 20.2 that need no model.

mod arbitrary;
mod output;

use serde_json::{Value, json};

use super::parse::{Answer, parse};
use super::request::{ResponseOwnFields, UnusedResponseFields, known_fields};
use crate::api::fields::compaction;
use crate::api::fields::input::InputFields;
use crate::api::fields::{Constraint, Conversation};
use crate::api::plan::Plan;
use crate::api::reference::assert_specified;
use crate::api::routes::test_requests::{only_conversation, refusal, with_members};
use crate::api::switches::Switches;
use crate::text::LocalTime;
use crate::{RequestFault, Result};
use RequestFault::{
    ConflictingParameters, InvalidSchema, InvalidType, InvalidValue, MissingRequiredParameter,
    OutOfRange, UnsupportedParameter,
};

fn parse_body(body: &[u8], switches: &Switches) -> Result<(Plan, Answer)> {
    parse(body, switches, LocalTime::new(0, 0), |_| {})
}

#[test]
fn the_specification_has_the_fields() {
    let own = [
        ResponseOwnFields::NAMES,
        UnusedResponseFields::NAMES,
        InputFields::NAMES,
    ];
    assert_specified("20.1", &own, known_fields());
}

/// The base request with `members` added or replaced.
fn parsed(members: Value) -> Result<(Plan, Answer)> {
    let base = json!({"model": "m", "input": "q"});
    parse_body(with_members(base, members).as_bytes(), &Switches::default())
}

#[track_caller]
fn conversation(members: Value) -> Conversation {
    only_conversation(&parsed(members).unwrap().0)
}

/// The messages of an input.
#[track_caller]
fn messages(input: Value) -> Value {
    let mut messages = conversation(json!({"input": input})).messages;
    for message in &mut messages {
        let message = message.as_object_mut().unwrap();
        // Aliases of `reasoning_content`.
        message.shift_remove("thinking");
        message.shift_remove("reasoning");
    }
    messages.into()
}

#[track_caller]
fn refused(members: Value) -> (RequestFault, String) {
    refusal(parsed(members))
}

fn is(fault: RequestFault, param: &str) -> (RequestFault, String) {
    (fault, param.to_owned())
}

#[test]
fn a_text_is_a_message_of_the_user() {
    let user = json!({"role": "user", "content": "q"});
    assert_eq!(messages(json!("q")), json!([user]));
    let instructed = conversation(json!({"instructions": "i"})).messages;
    let system = json!({"role": "system", "content": "i"});
    assert_eq!(Value::from(instructed), json!([system, user]));
}

#[test]
fn messages_of_all_roles() {
    for role in ["system", "developer", "user", "assistant"] {
        let message = json!({"role": role, "content": "a"});
        assert_eq!(messages(json!([message])), json!([message]));
        let parts =
            json!([{"type": "input_text", "text": "a"}, {"type": "output_text", "text": "b"}]);
        let item = json!({"type": "message", "role": role, "content": parts, "id": "x", "status": "completed"});
        assert_eq!(
            messages(json!([item])),
            json!([{"role": role, "content": "a\nb"}])
        );
    }
    let refusal = json!({"role": "assistant", "content": [{"type": "refusal", "refusal": "no"}]});
    assert_eq!(messages(json!([refusal]))[0]["content"], "no");
}

#[test]
fn a_compaction_joins_the_messages_of_the_user_beside_it() {
    let user = |text: &str| json!({"role": "user", "content": text});
    let item =
        json!({"type": "compaction", "id": "cmp_1", "encrypted_content": compaction::encode("s")});
    let summary = "[Summary of our conversation so far]\ns\n[End of the summary]";
    assert_eq!(messages(json!([item])), json!([user(summary)]));
    let system = json!({"role": "system", "content": "i"});
    let items = json!([
        system,
        user("a"),
        user("b"),
        item,
        user("c"),
        said("d"),
        user("e")
    ]);
    let joined = user(&format!("a\n\nb\n\n{summary}\n\nc"));
    assert_eq!(
        messages(items),
        json!([system, joined, said("d"), user("e")])
    );
    // Others stay apart.
    let items = json!([user("a"), said("b"), item, said("c"), user("d"), user("e")]);
    assert_eq!(
        messages(items),
        json!([
            user("a"),
            said("b"),
            user(summary),
            said("c"),
            user("d"),
            user("e")
        ])
    );
    let image = json!({"type": "input_image", "image_url": "data:image/png;base64,AAAA"});
    let items = json!([item, {"role": "user", "content": [image]}]);
    let parts = json!([{"type": "text", "text": summary}, {"type": "image"}]);
    assert_eq!(messages(items), json!([{"role": "user", "content": parts}]));
    let damaged = json!({"type": "compaction", "encrypted_content": "x"});
    for item in [
        damaged,
        json!({"type": "compaction", "encrypted_content": 1}),
    ] {
        assert_eq!(refused(json!({"input": [item]})).1, "input");
    }
    let trigger = json!({"input": [user("a"), {"type": "compaction_trigger"}]});
    assert_eq!(refused(trigger), is(UnsupportedParameter, "input"));
}

fn reasoning(text: &str) -> Value {
    json!({"type": "reasoning", "id": "rs", "summary": [],
        "content": [{"type": "reasoning_text", "text": text}]})
}

fn call(id: &str, arguments: &str) -> Value {
    json!({"type": "function_call", "call_id": id, "name": "f", "arguments": arguments})
}

fn output(id: &str, output: Value) -> Value {
    json!({"type": "function_call_output", "call_id": id, "output": output})
}

fn said(text: &str) -> Value {
    json!({"role": "assistant", "content": text})
}

#[test]
fn reasoning_text_and_calls_of_a_turn_are_one_message() {
    let parts = json!([{"type": "input_text", "text": "x"}, {"type": "input_text", "text": "y"}]);
    let items = json!([
        reasoning("r"), said("a"), call("1", "{\"z\": 1}"), call("2", ""),
        output("2", json!("two")), output("1", parts),
        reasoning("s"), said("b"), {"role": "user", "content": "c"}
    ]);
    let called = |id: &str, arguments: Value| {
        let function = json!({"name": "f", "arguments": arguments});
        json!({"type": "function", "function": function, "id": id})
    };
    let tool = |id: &str, content: &str| json!({"role": "tool", "content": content, "name": "f", "tool_call_id": id});
    assert_eq!(
        messages(items),
        json!([
            {"role": "assistant", "content": "a", "reasoning_content": "r",
             "tool_calls": [called("1", json!({"z": 1})), called("2", json!({}))]},
            tool("2", "two"),
            tool("1", "x\ny"),
            {"role": "assistant", "content": "b", "reasoning_content": "s"},
            {"role": "user", "content": "c"}
        ])
    );
}

#[test]
fn a_turn_ends_where_the_assistant_speaks_again() {
    let two = json!([{"role": "assistant", "content": "a"}, {"role": "assistant", "content": "b"}]);
    assert_eq!(messages(json!([said("a"), said("b")])), two);
    let thought = messages(json!([call("1", "{}"), reasoning("r"), call("2", "{}")]));
    assert_eq!(thought.as_array().unwrap().len(), 2);
    assert_eq!(thought[1]["reasoning_content"], "r");
    assert_eq!(thought[1]["tool_calls"][0]["id"], "2");
    let twice = messages(json!([reasoning("r"), reasoning("s"), said("a")]));
    let one = json!([{"role": "assistant", "content": "a", "reasoning_content": "r\ns"}]);
    assert_eq!(twice, one);
    let alone = json!([{"role": "assistant", "content": "", "reasoning_content": "r"}]);
    assert_eq!(messages(json!([reasoning("r")])), alone);
}

#[test]
fn reasoning_comes_from_content_or_encrypted_content_or_summary() {
    let content = |item: Value| messages(json!([item, said("a")]))[0]["reasoning_content"].clone();
    let summary = json!([{"type": "summary_text", "text": "s"}]);
    let all = json!({"type": "reasoning", "summary": summary, "encrypted_content": "inpage:e",
        "content": [{"type": "reasoning_text", "text": "c"}]});
    assert_eq!(content(all), "c");
    let encrypted =
        json!({"type": "reasoning", "summary": summary, "encrypted_content": "inpage:e"});
    assert_eq!(content(encrypted), "e");
    let foreign = json!({"type": "reasoning", "summary": summary, "encrypted_content": "gAAA"});
    assert_eq!(content(foreign), "s");
    assert_eq!(
        content(json!({"type": "reasoning", "summary": []})),
        Value::Null
    );
}

#[test]
fn wrong_inputs_are_refused() {
    let input = |input: Value| refused(json!({"input": input}));
    let one = |item: Value| input(json!([item]));
    let is = |fault| (fault, "input".to_owned());
    assert_eq!(input(Value::Null), is(MissingRequiredParameter));
    assert_eq!(input(json!(1)), is(InvalidType));
    assert_eq!(input(json!([])), is(InvalidValue));
    assert_eq!(one(json!("a")), is(InvalidType));
    assert_eq!(one(json!({})), is(MissingRequiredParameter));
    assert_eq!(
        one(json!({"type": "message"})),
        is(MissingRequiredParameter)
    );
    assert_eq!(one(json!({"type": 1})), is(InvalidType));
    assert_eq!(one(json!({"type": "poem"})), is(InvalidValue));
    assert_eq!(
        one(json!({"role": "tool", "content": "a"})),
        is(InvalidValue)
    );
    assert_eq!(one(json!({"role": "user"})), is(MissingRequiredParameter));
    assert_eq!(one(json!({"role": "user", "content": 1})), is(InvalidType));
    let part = |part: Value| one(json!({"role": "user", "content": [part]}));
    assert_eq!(part(json!({"type": "input_image"})), is(InvalidValue));
    let stored = json!({"type": "input_image", "file_id": "file-1"});
    assert_eq!(part(stored), is(UnsupportedParameter));
    for kind in ["input_file", "input_audio"] {
        assert_eq!(part(json!({"type": kind})), is(UnsupportedParameter));
    }
    assert_eq!(part(json!({"type": "poem"})), is(InvalidValue));
    assert_eq!(part(json!({"type": "input_text"})), is(InvalidValue));
    for kind in ["item_reference", "web_search_call", "custom_tool_call"] {
        assert_eq!(
            one(json!({"type": kind, "id": "x"})),
            is(UnsupportedParameter)
        );
    }
    for name in ["call_id", "name", "arguments"] {
        let mut item = call("1", "{}");
        item[name] = Value::Null;
        assert_eq!(one(item.clone()), is(MissingRequiredParameter));
        item[name] = json!(1);
        assert_eq!(one(item), is(InvalidType));
    }
    assert_eq!(one(output("1", json!("a"))), is(InvalidValue));
    let answered = |output: Value| input(json!([call("1", "{}"), output]));
    assert_eq!(
        answered(json!({"type": "function_call_output", "call_id": "1"})),
        is(MissingRequiredParameter)
    );
    let image = json!([{"type": "input_image", "image_url": "data:,"}]);
    assert_eq!(answered(output("1", image)), is(InvalidValue));
    let thought = |name: &str, value: Value| one(json!({"type": "reasoning", name: value}));
    assert_eq!(thought("content", json!("a")), is(InvalidType));
    assert_eq!(
        thought("summary", json!([{"type": "text", "text": "a"}])),
        is(InvalidValue)
    );
    assert_eq!(
        thought("encrypted_content", json!("gAAA")),
        is(InvalidValue)
    );
    assert_eq!(refused(json!({"instructions": 1})).1, "instructions");
}

fn tool(name: &str) -> Value {
    json!({"type": "function", "name": name, "parameters": {"type": "object"}, "strict": true})
}

#[test]
fn tools_are_flat() {
    let tools = |choice: Value| {
        let members = json!({"tools": [tool("f"), tool("g")], "tool_choice": choice});
        conversation(members).tools
    };
    let nested = |name: &str| {
        json!({"type": "function",
            "function": {"name": name, "parameters": {"type": "object"}, "strict": true}})
    };
    assert_eq!(tools(json!("auto")), [nested("f"), nested("g")]);
    assert_eq!(tools(json!("none")), Vec::<Value>::new());
    assert_eq!(
        tools(json!({"type": "function", "name": "g"})),
        [nested("g")]
    );
    let allowed = json!({"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "f"}]});
    assert_eq!(tools(allowed), [nested("f")]);
    let (plan, answer) = parsed(json!({"tools": [tool("f")], "tool_choice": "required"})).unwrap();
    let Constraint::Tools(calls) = &plan.constraint else {
        panic!("{:?}", plan.constraint);
    };
    assert!(calls.is_forced && calls.tools[0].strict);
    assert_eq!(answer.echo.tool_choice, "required");
    let (_, answer) = parsed(json!({"tools": [{"type": "function", "name": "f"}]})).unwrap();
    let echoed = json!({"type": "function", "name": "f", "description": null, "parameters": null, "strict": false});
    assert_eq!(answer.echo.tools, [echoed]);
    assert_eq!(answer.echo.tool_choice, "auto");
    for (members, expected) in [
        (
            json!({"tools": [{"type": "web_search"}]}),
            is(UnsupportedParameter, "tools"),
        ),
        (
            json!({"tools": [{"type": "function"}]}),
            is(InvalidValue, "tools"),
        ),
        (
            json!({"tools": [{"type": "function", "function": {"name": "f"}}]}),
            is(InvalidValue, "tools"),
        ),
        (
            json!({"tools": [tool("f"), tool("f")]}),
            is(InvalidValue, "tools"),
        ),
        (
            json!({"tools": [{"type": "function", "name": "f", "parameters": {"type": "array"}}]}),
            is(InvalidSchema, "tools"),
        ),
        (
            json!({"tool_choice": "required"}),
            is(InvalidValue, "tool_choice"),
        ),
        (
            json!({"tools": [tool("f")], "tool_choice": {"type": "function", "name": "g"}}),
            is(InvalidValue, "tool_choice"),
        ),
        (
            json!({"parallel_tool_calls": 1}),
            is(InvalidType, "parallel_tool_calls"),
        ),
        (
            json!({"max_tool_calls": -1}),
            is(OutOfRange, "max_tool_calls"),
        ),
    ] {
        let shown = members.to_string();
        assert_eq!(refused(members), expected, "{shown}");
    }
}

#[test]
fn formats_are_flat() {
    let constraint = |text: Value| parsed(json!({"text": text})).unwrap().0.constraint;
    assert_eq!(constraint(json!({})), Constraint::None);
    assert_eq!(
        constraint(json!({"format": {"type": "text"}})),
        Constraint::None
    );
    let object = constraint(json!({"format": {"type": "json_object"}}));
    assert!(matches!(
        object,
        Constraint::Grammar {
            param: "text",
            is_schema: true,
            ..
        }
    ));
    let schema =
        json!({"type": "json_schema", "name": "n", "schema": {"type": "object"}, "strict": true});
    assert!(matches!(
        constraint(json!({"format": schema})),
        Constraint::Grammar { param: "text", .. }
    ));
    let text = |format: Value| refused(json!({"text": {"format": format}}));
    let nested = json!({"type": "json_schema", "json_schema": {"schema": {}}});
    assert_eq!(text(nested), is(MissingRequiredParameter, "text"));
    assert_eq!(text(json!({"type": "poem"})), is(InvalidValue, "text"));
    assert_eq!(text(json!("text")), is(InvalidType, "text"));
    assert_eq!(text(json!({})), is(MissingRequiredParameter, "text"));
    let strict = json!({"type": "json_schema", "schema": {}, "strict": 1});
    assert_eq!(text(strict), is(InvalidType, "text"));
    let number = json!({"type": "json_schema", "schema": 1});
    assert_eq!(text(number), is(InvalidSchema, "text"));
    assert_eq!(refused(json!({"text": "a"})), is(InvalidType, "text"));
    let both = json!({"text": {"format": {"type": "json_object"}}, "tools": [tool("f")], "tool_choice": "required"});
    // The call has its own schema.
    let (plan, _) = parsed(both.clone()).unwrap();
    assert!(matches!(plan.constraint, Constraint::Tools(_)));
    let mut grammar = both;
    grammar["grammar"] = json!({"type": "regex", "value": "a"});
    assert_eq!(refused(grammar), is(ConflictingParameters, "tool_choice"));
}

#[test]
fn what_needs_a_server_is_refused() {
    for (name, value) in [
        ("store", json!(true)),
        ("background", json!(true)),
        ("previous_response_id", json!("resp_x")),
        ("conversation", json!("conv_x")),
        ("prompt", json!({"id": "pmpt_x"})),
        ("moderation", json!({})),
        ("context_management", json!([{"type": "compaction"}])),
        ("truncation", json!("auto")),
        ("include", json!(["file_search_call.results"])),
    ] {
        assert_eq!(
            refused(json!({name: value})),
            is(UnsupportedParameter, name)
        );
        assert!(parsed(json!({name: null})).is_ok(), "{name}");
    }
    let neutral = json!({"store": false, "background": false, "truncation": "disabled"});
    assert!(parsed(neutral).is_ok());
}

#[test]
fn other_fields() {
    for (members, expected) in [
        (json!({"top_logprobs": 1}), is(InvalidValue, "top_logprobs")),
        (
            json!({"include": ["message.output_text.logprobs"], "top_logprobs": 21}),
            is(OutOfRange, "top_logprobs"),
        ),
        (json!({"include": ["x"]}), is(InvalidValue, "include")),
        (json!({"include": [1]}), is(InvalidType, "include")),
        (json!({"include": "x"}), is(InvalidType, "include")),
        (
            json!({"reasoning": {"effort": "huge"}}),
            is(InvalidValue, "reasoning"),
        ),
        (
            json!({"reasoning": {"summary": 1}}),
            is(InvalidType, "reasoning"),
        ),
        (json!({"reasoning": "low"}), is(InvalidType, "reasoning")),
        (
            json!({"text": {"verbosity": "huge"}}),
            is(InvalidValue, "text"),
        ),
        (
            json!({"chat_template_kwargs": []}),
            is(InvalidType, "chat_template_kwargs"),
        ),
        (
            json!({"stream_options": {}}),
            is(InvalidValue, "stream_options"),
        ),
        (json!({"metadata": {"a": 1}}), is(InvalidType, "metadata")),
        (json!({"user": 1}), is(InvalidType, "user")),
        (json!({"temperature": 3}), is(OutOfRange, "temperature")),
        (
            json!({"max_output_tokens": -1}),
            is(OutOfRange, "max_output_tokens"),
        ),
        (
            json!({"max_output_tokens": 3, "max_tokens": 4}),
            is(ConflictingParameters, "max_tokens"),
        ),
        (
            json!({"truncation": "middle"}),
            is(InvalidValue, "truncation"),
        ),
    ] {
        let shown = members.to_string();
        assert_eq!(refused(members), expected, "{shown}");
    }
    let include = json!([
        "message.output_text.logprobs",
        "reasoning.encrypted_content"
    ]);
    let (plan, answer) = parsed(json!({"include": include, "top_logprobs": 20})).unwrap();
    assert_eq!(plan.logprobs.top, Some(20));
    assert!(answer.has_encrypted);
    let (plan, answer) = parsed(json!({"max_output_tokens": 5, "top_logprobs": 0})).unwrap();
    let max_tokens = plan.length.max_tokens.unwrap();
    assert_eq!(
        (max_tokens.name, max_tokens.tokens),
        ("max_output_tokens", 5)
    );
    assert!(plan.logprobs.top.is_none() && !answer.has_encrypted && !answer.stream);
    let words = json!({"reasoning": {"effort": "low", "generate_summary": "auto"}, "text": {"verbosity": "high"}});
    let (_, answer) = parsed(words.clone()).unwrap();
    assert_eq!(answer.echo.reasoning.summary, Some("auto"));
    let conversation = conversation(words);
    assert_eq!(conversation.reasoning_effort, Some("low"));
    assert_eq!(conversation.variables["verbosity"], "high");
}

#[test]
fn fields_of_vendors_hold() {
    let vendors = json!({"top_k": 5, "min_p": 0.1, "seed": 1, "repetition_penalty": 1.1, "stop": "x",
        "min_tokens": 50, "allowed_token_ids": [1, 7], "guided_choice": ["a", "b"], "xtc_probability": 0});
    let (plan, _) = parsed(vendors).unwrap();
    assert_eq!(plan.length.min_tokens, 50);
    assert!(matches!(plan.constraint, Constraint::Grammar { .. }));
    let xtc = refused(json!({"xtc_probability": 0.5}));
    assert_eq!(xtc, is(UnsupportedParameter, "xtc_probability"));
}

#[test]
fn unknown_fields_are_reported() {
    let body = br#"{"model":"m","input":"q","zebra":1,"messages":null,"reasoning":{"mode":"x"}}"#;
    let mut warned = Vec::new();
    let warn = |name: &str| warned.push(name.to_owned());
    parse(body, &Switches::default(), LocalTime::new(0, 0), warn).unwrap();
    assert_eq!(warned, ["zebra", "reasoning.mode"]);
    let strict = Switches::profile("openai").unwrap();
    assert!(parse_body(body, &strict).is_err());
}
