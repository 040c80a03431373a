//! Responses (specification 20), whole and streamed.

use inpage::Error;
use inpage::api::Request;
use serde_json::{Value, json};

use crate::fixture::*;
use crate::open_responses;

/// The base request with `members` added or replaced.
fn response_body(members: &Value) -> String {
    let mut body = json!({"model": "default", "input": "q", "max_output_tokens": 8});
    let members = members.as_object().unwrap().clone();
    body.as_object_mut().unwrap().extend(members);
    body.to_string()
}

async fn reply(server: &Server, members: &Value) -> Reply {
    server.send(responses(&response_body(members))).await
}

async fn whole(server: &Server, members: &Value) -> Value {
    let reply = reply(server, members).await;
    assert_eq!(reply.status, 200, "{members}: {}", reply.text());
    let object = reply.json();
    open_responses::check("Response", &object);
    object
}

/// The events of a stream. Checks their frames, that they are numbered from 0, and that the stream has its end.
#[track_caller]
fn events_of(reply: &Reply) -> Vec<Value> {
    let events = reply.text().strip_suffix("\n\ndata: [DONE]\n\n");
    let frames = events.unwrap().split("\n\n");
    let frames = frames.filter(|frame| *frame != ": keep-alive");
    let event = |(number, frame): (usize, &str)| {
        let (name, data) = frame.split_once('\n').unwrap();
        let event: Value = serde_json::from_str(data.strip_prefix("data: ").unwrap()).unwrap();
        assert_eq!(name.strip_prefix("event: ").unwrap(), event["type"]);
        assert_eq!(event["sequence_number"], number, "{event}");
        open_responses::check(event["type"].as_str().unwrap(), &event);
        event
    };
    frames.enumerate().map(event).collect()
}

async fn streamed(server: &Server, members: &Value) -> Vec<Value> {
    let mut members = members.clone();
    members["stream"] = json!(true);
    let reply = reply(server, &members).await;
    assert_eq!(reply.status, 200, "{members}: {}", reply.text());
    assert_eq!(
        reply.header("content-type"),
        Some("text/event-stream; charset=utf-8")
    );
    events_of(&reply)
}

fn append(to: &mut Value, more: &Value) {
    match (to, more) {
        (Value::String(text), Value::String(more)) => text.push_str(more),
        (Value::Array(all), Value::Array(more)) => all.extend(more.iter().cloned()),
        (to, more) => panic!("{to} and {more}"),
    }
}

/// The response that the events make. Checks the order of the events, and that those which end a part, an item or the
/// response repeat what came before.
#[track_caller]
fn response_of(events: &[Value]) -> Value {
    let [created, in_progress, middle @ .., last] = events else {
        panic!("{events:?}");
    };
    assert_eq!(created["type"], "response.created");
    assert_eq!(in_progress["type"], "response.in_progress");
    assert_eq!(created["response"], in_progress["response"]);
    assert_eq!(created["response"]["status"], "in_progress");
    assert_eq!(created["response"]["output"], json!([]));
    let mut output: Vec<Value> = Vec::new();
    // The state of the last item: 0 over, 1 begun, 2 with an open part, 3 with a text that is over, 4 with a part that is.
    let mut stage = 0;
    for event in middle {
        let kind = event["type"].as_str().unwrap();
        let mut step = |from: u32, to: u32| {
            assert_eq!(std::mem::replace(&mut stage, to), from, "{event}");
        };
        if kind == "response.output_item.added" {
            step(0, 1);
            assert_eq!(event["output_index"], output.len());
            assert_eq!(event["item"]["status"], "in_progress");
            output.push(event["item"].clone());
            continue;
        }
        assert_eq!(event["output_index"], output.len() - 1, "{event}");
        let item = output.last_mut().unwrap();
        if kind == "response.output_item.done" {
            let is_call = item["type"] == "function_call";
            step(if is_call { 3 } else { 4 }, 0);
            for name in ["status", "encrypted_content"] {
                if let Some(value) = event["item"].get(name) {
                    item[name] = value.clone();
                }
            }
            assert_eq!(event["item"], *item);
            continue;
        }
        assert_eq!(event["item_id"], item["id"], "{event}");
        if let Some(index) = event.get("content_index") {
            assert_eq!(*index, 0);
        }
        match kind {
            "response.content_part.added" => {
                step(1, 2);
                append(&mut item["content"], &json!([event["part"]]));
            }
            "response.output_text.delta" | "response.reasoning_text.delta" => {
                step(2, 2);
                let part = &mut item["content"][0];
                append(&mut part["text"], &event["delta"]);
                if let Some(logprobs) = event.get("logprobs") {
                    append(&mut part["logprobs"], logprobs);
                }
            }
            "response.output_text.done" | "response.reasoning_text.done" => {
                step(2, 3);
                assert_eq!(event["text"], item["content"][0]["text"]);
                let logprobs = item["content"][0].get("logprobs");
                assert_eq!(event.get("logprobs"), logprobs);
            }
            "response.content_part.done" => {
                step(3, 4);
                assert_eq!(event["part"], item["content"][0]);
            }
            "response.function_call_arguments.delta" => {
                step(1, 1);
                append(&mut item["arguments"], &event["delta"]);
            }
            "response.function_call_arguments.done" => {
                step(1, 3);
                assert_eq!(event["arguments"], item["arguments"]);
                assert_eq!(event["name"], item["name"]);
            }
            other => panic!("{other}"),
        }
    }
    assert_eq!(stage, 0);
    let mut response = created["response"].clone();
    response["output"] = output.into();
    for name in ["status", "incomplete_details", "completed_at", "usage"] {
        response[name] = last["response"][name].clone();
    }
    let status = response["status"].as_str().unwrap();
    assert_eq!(last["type"], format!("response.{status}"));
    assert_eq!(last["response"], response);
    response
}

/// The response without what is random or depends on the time, and without what depends on the cache.
#[track_caller]
fn compared(response: &Value) -> Value {
    let mut response = response.clone();
    let id = response["id"].as_str().unwrap().to_owned();
    let random = id.strip_prefix("resp_").unwrap();
    assert_eq!(random.len(), 24);
    for name in ["id", "created_at", "completed_at"] {
        response[name] = Value::Null;
    }
    response["usage"]["input_tokens_details"] = Value::Null;
    let items = response["output"].as_array_mut().unwrap();
    for (index, item) in items.iter_mut().enumerate() {
        let prefix = match item["type"].as_str().unwrap() {
            "message" => "msg",
            "reasoning" => "rs",
            "function_call" => "fc",
            other => panic!("{other}"),
        };
        assert_eq!(item["id"], format!("{prefix}_{random}{index}"));
        item["id"] = Value::Null;
        if let Some(id) = item.get_mut("call_id") {
            assert_eq!(*id, format!("call_{random}{index}"));
            *id = Value::Null;
        }
    }
    response
}

const HERMES: &str = "{# <tool_call> arguments <think> </think> #}{% if tools %}.{% endif %}{{ messages[0].content }}";
const CALL: &str = "<tool_call>{\"name\":\"f\",\"arguments\":{\"a\": 1}}</tool_call>";

fn tools() -> Value {
    json!([{"type": "function", "name": "f", "parameters": {"type": "object"}}])
}

#[test]
fn a_response_has_all_members() {
    serve_default(async |server| {
        server.plan.say(pieces("quown the"));
        let object = whole(server, &json!({"max_output_tokens": null})).await;
        let text =
            json!({"type": "output_text", "text": "quown the", "annotations": [], "logprobs": []});
        let message = json!({"type": "message", "id": null, "status": "completed", "role": "assistant",
            "content": [text]});
        let tokens = object["usage"]["output_tokens"].as_u64().unwrap();
        assert!(object["created_at"].is_u64() && object["completed_at"].is_u64());
        assert_eq!(
            compared(&object),
            json!({
                "id": null, "object": "response", "created_at": null, "completed_at": null,
                "status": "completed", "error": null, "incomplete_details": null,
                "model": MODEL_ID, "system_fingerprint": object["system_fingerprint"],
                "output": [message],
                // <s> <|sep|> u q <|sep|> a
                "usage": {"input_tokens": 6, "input_tokens_details": null, "output_tokens": tokens,
                    "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 6 + tokens},
                "instructions": null, "max_output_tokens": null, "max_tool_calls": null, "metadata": {},
                "parallel_tool_calls": true, "prompt_cache_key": null,
                "reasoning": {"effort": null, "summary": null}, "safety_identifier": null,
                // The model recommends a temperature of 0.
                "temperature": 0.0, "top_p": 1.0, "frequency_penalty": 0.0, "presence_penalty": 0.0,
                "text": {"format": {"type": "text"}},
                "tool_choice": "auto", "tools": [], "top_logprobs": 0, "user": null,
                "background": false, "previous_response_id": null, "service_tier": "default",
                "store": false, "truncation": "disabled"
            })
        );
    });
}

#[test]
fn a_response_repeats_its_request() {
    serve_default(async |server| {
        let members = json!({
            "instructions": "i", "max_output_tokens": 3, "max_tool_calls": 2, "metadata": {"a": "b"},
            "parallel_tool_calls": false, "prompt_cache_key": "k",
            "reasoning": {"effort": "low", "summary": "auto"}, "safety_identifier": "s",
            "temperature": 0.7, "text": {"format": {"type": "text"}, "verbosity": "low"},
            "tool_choice": "none", "top_p": 0.3, "user": "u", "frequency_penalty": -0.1, "presence_penalty": 1.3
        });
        let object = whole(server, &members).await;
        for (name, value) in members.as_object().unwrap() {
            assert_eq!(object[name], *value, "{name}");
        }
        // The forms of chat become those of responses.
        let tools = json!([{"type": "function", "name": "f"}]);
        let nested = json!({"type": "function", "function": {"name": "f"}});
        let allowed = json!({"type": "allowed_tools", "mode": "auto", "tools": tools});
        for (choice, repeated) in [
            (nested.clone(), tools[0].clone()),
            (allowed.clone(), allowed.clone()),
            (
                json!({"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [nested]}}),
                allowed,
            ),
        ] {
            let object = whole(server, &json!({"tools": tools, "tool_choice": choice})).await;
            assert_eq!(object["tool_choice"], repeated);
        }
        let schema = json!({"type": "object", "properties": {}});
        let members = json!({"type": "json_schema", "schema": schema});
        let object = whole(server, &json!({"text": {"format": members}})).await;
        let repeated = json!({"type": "json_schema", "schema": schema, "name": "", "description": null, "strict": false});
        assert_eq!(object["text"]["format"], repeated);
        let named = json!({"type": "json_schema", "schema": schema, "name": "n", "description": "d", "strict": true});
        let object = whole(server, &json!({"text": {"format": named}})).await;
        assert_eq!(object["text"]["format"], named);
    });
}

/// The schema of the text is not that of the call.
#[test]
fn a_format_of_the_text_leaves_a_forced_call_alone() {
    serve_default(async |server| {
        server.set_template(Some(HERMES));
        server.plan.say(bytes(CALL));
        let schema =
            json!({"type": "object", "properties": {"b": {"type": "string"}}, "required": ["b"]});
        let format = json!({"format": {"type": "json_schema", "name": "n", "schema": schema}});
        for choice in [json!("required"), json!({"type": "function", "name": "f"})] {
            let members = json!({"text": format, "tools": tools(), "tool_choice": choice,
                "max_output_tokens": null});
            let object = whole(server, &members).await;
            assert_eq!(object["output"][0]["arguments"], "{\"a\": 1}", "{object}");
            assert_eq!(object["text"]["format"]["schema"], schema);
        }
        let wrong = json!({"text": {"format": {"type": "json_schema", "schema": 1}}, "tools": tools(),
            "tool_choice": "required"});
        let expected = (400, "invalid_schema".into(), Some("text".into()));
        assert_eq!(reply(server, &wrong).await.error(), expected);
    });
}

#[test]
fn events_add_up_to_the_whole() {
    serve_default(async |server| {
        let include = json!(["message.output_text.logprobs"]);
        for members in [
            json!({"temperature": 1, "seed": 3}),
            json!({"temperature": 1, "seed": 3, "include": include, "top_logprobs": 2}),
            json!({"temperature": 1, "seed": 5, "stop": ["e", "a"], "max_output_tokens": 30}),
            json!({"grammar": {"type": "regex", "value": "[a-z]{3} [0-9]+"}, "seed": 1}),
            json!({"text": {"format": {"type": "json_object"}}, "max_output_tokens": 20, "seed": 1}),
            json!({"tools": tools(), "tool_choice": "required", "max_output_tokens": 40, "seed": 2}),
            json!({"max_output_tokens": 0}),
        ] {
            let object = whole(server, &members).await;
            let response = response_of(&streamed(server, &members).await);
            assert_eq!(compared(&response), compared(&object), "{members}");
        }
    });
}

/// Outputs with reasoning, text and calls in several orders, cut off after every number of tokens.
#[test]
fn events_add_up_however_the_output_ends() {
    let outputs = [
        format!("<think>ab</think>cd{CALL}"),
        format!("{CALL}\n{CALL}"),
        format!("x {CALL} y"),
        "<think>a".to_owned(),
        "a <b> <thin".to_owned(),
        "é<tool_call>{\"name\":\"g\"}".to_owned(),
    ];
    serve_default(async |server| {
        server.set_template(Some(HERMES));
        let include = json!([
            "message.output_text.logprobs",
            "reasoning.encrypted_content"
        ]);
        for output in &outputs {
            server.plan.say(bytes(output));
            for limit in (0..output.len() + 2).step_by(5).chain([60]) {
                let members = json!({"max_output_tokens": limit, "tools": tools(), "include": include, "seed": 1});
                let object = whole(server, &members).await;
                let response = response_of(&streamed(server, &members).await);
                assert_eq!(compared(&response), compared(&object), "{output} {limit}");
            }
        }
        server.plan.babble();
        for seed in 0..20 {
            let members = json!({"max_output_tokens": 40, "temperature": 1, "seed": seed, "tools": tools(),
                "include": include, "stop": ["e", "ab"]});
            let object = whole(server, &members).await;
            let response = response_of(&streamed(server, &members).await);
            assert_eq!(compared(&response), compared(&object), "seed {seed}");
        }
    });
}

#[test]
fn a_response_that_its_tokens_end_is_incomplete() {
    serve_default(async |server| {
        server.set_template(Some(HERMES));
        for (says, limit, statuses) in [
            ("abcd", 2, vec!["incomplete"]),
            ("<think>abcd", 9, vec!["incomplete"]),
            ("<think>ab</think>cd", 18, vec!["completed", "incomplete"]),
            (CALL, 45, vec!["incomplete"]),
        ] {
            server.plan.say(bytes(says));
            let object = whole(
                server,
                &json!({"max_output_tokens": limit, "tools": tools()}),
            )
            .await;
            assert_eq!(object["status"], "incomplete", "{object}");
            assert_eq!(
                object["incomplete_details"],
                json!({"reason": "max_output_tokens"})
            );
            assert_eq!(object["completed_at"], Value::Null);
            let items = object["output"].as_array().unwrap().iter();
            let given: Vec<&str> = items.map(|item| item["status"].as_str().unwrap()).collect();
            assert_eq!(given, statuses, "{says}");
        }
    });
}

#[test]
fn a_forced_call_that_its_tokens_end_is_an_incomplete_call() {
    serve_default(async |server| {
        server.set_template(Some(HERMES));
        server.plan.say(bytes(CALL));
        for limit in [5, 20, 30, 45] {
            let members = json!({"max_output_tokens": limit, "tools": tools(), "tool_choice": "required",
                "parallel_tool_calls": false});
            let object = whole(server, &members).await;
            assert_eq!(object["status"], "incomplete", "{object}");
            let items = object["output"].as_array().unwrap();
            assert_eq!(items.len(), 1, "{object}");
            assert_eq!(items[0]["type"], "function_call");
            assert_eq!(items[0]["status"], "incomplete");
            assert_eq!(items[0]["name"], "f");
            assert!(
                "{\"a\": 1}".starts_with(items[0]["arguments"].as_str().unwrap()),
                "{object}"
            );
        }
    });
}

#[test]
fn reasoning_is_an_item_of_its_own() {
    serve_default(async |server| {
        server.set_template(Some(HERMES));
        server.plan.say(bytes("<think>ab</think>cd"));
        let members = json!({"max_output_tokens": null});
        let object = whole(server, &members).await;
        let [reasoning, message] = &object["output"].as_array().unwrap()[..] else {
            panic!("{object}");
        };
        assert_eq!(reasoning["type"], "reasoning");
        assert_eq!(reasoning["summary"], json!([]));
        let part = json!({"type": "reasoning_text", "text": "ab"});
        assert_eq!(reasoning["content"], json!([part]));
        assert!(reasoning.get("encrypted_content").is_none());
        assert_eq!(message["content"][0]["text"], "cd");
        let tokens = &object["usage"]["output_tokens_details"]["reasoning_tokens"];
        assert!((2..18).contains(&tokens.as_u64().unwrap()), "{tokens}");
        let members =
            json!({"max_output_tokens": null, "include": ["reasoning.encrypted_content"]});
        let object = whole(server, &members).await;
        // The reasoning that is sent back is reasoning again.
        let mut item = object["output"][0].clone();
        item["content"] = Value::Null;
        server.set_template(Some("{{ messages[0].reasoning_content }}"));
        let object = whole(server, &json!({"input": [item]})).await;
        assert_eq!(object["usage"]["input_tokens"], 1 + 2);
    });
}

#[test]
fn a_complete_response_has_a_message() {
    serve_default(async |server| {
        server.set_template(Some(HERMES));
        for (says, types) in [
            ("", vec!["message"]),
            ("<think>ab</think>", vec!["reasoning", "message"]),
            (CALL, vec!["function_call"]),
        ] {
            server.plan.say(bytes(says));
            let members = json!({"max_output_tokens": null, "tools": tools()});
            let object = whole(server, &members).await;
            assert_eq!(object["status"], "completed");
            let items = object["output"].as_array().unwrap().iter();
            let given: Vec<&str> = items.map(|item| item["type"].as_str().unwrap()).collect();
            assert_eq!(given, types, "{says}");
            response_of(&streamed(server, &members).await);
        }
    });
}

#[test]
fn calls_are_items() {
    serve_default(async |server| {
        server.set_template(Some(HERMES));
        server.plan.say(bytes(CALL));
        let members = json!({"max_output_tokens": null, "tools": tools()});
        let object = whole(server, &members).await;
        let [call] = &object["output"].as_array().unwrap()[..] else {
            panic!("{object}");
        };
        assert_eq!(call["name"], "f");
        assert_eq!(call["arguments"], "{\"a\": 1}");
        assert_ne!(call["id"], call["call_id"]);
        // The items and the result are the next input.
        let template = "{% if tools %}.{% endif %}{% for m in messages %}{{ m.role[0] }}{{ m.content }}\
            {% for c in m.tool_calls or [] %}{{ c.function.arguments.a + 1 }}{% endfor %}{% endfor %}";
        server.set_template(Some(template));
        let output =
            json!({"type": "function_call_output", "call_id": call["call_id"], "output": "xyz"});
        let input = json!([{"role": "user", "content": "q"}, call, output]);
        let object = whole(server, &json!({"input": input, "tools": tools()})).await;
        // <s> . u q a 2 t x y z
        assert_eq!(object["usage"]["input_tokens"], 10);
        // Without tools, the same text is a message.
        server.set_template(Some(HERMES));
        let object = whole(server, &json!({"max_output_tokens": null})).await;
        assert_eq!(object["output"][0]["type"], "message");
    });
}

#[test]
fn one_call_if_they_are_not_parallel() {
    serve_default(async |server| {
        server.set_template(Some(HERMES));
        let input = json!([{"role": "user", "content": ""}]);
        let says = "<tool_call>{\"name\":\"f\"}</tool_call>";
        server.plan.say(bytes(says));
        let calls = async |members: Value| {
            let object = whole(server, &members).await;
            let items = object["output"].as_array().unwrap().iter();
            items.filter(|item| item["type"] == "function_call").count()
        };
        let members = json!({"input": input, "max_output_tokens": 60, "tools": tools(),
            "tool_choice": "required", "parallel_tool_calls": false, "temperature": 1, "seed": 1});
        assert_eq!(calls(members).await, 1);
    });
}

#[test]
fn log_probabilities_are_those_of_the_text() {
    serve_default(async |server| {
        server.set_template(Some(HERMES));
        let include = json!(["message.output_text.logprobs"]);
        let members = json!({"max_output_tokens": null, "include": include, "top_logprobs": 2, "tools": tools()});
        let tokens = |message: &Value| -> String {
            let listed = message["content"][0]["logprobs"].as_array().unwrap().iter();
            listed
                .map(|token| token["token"].as_str().unwrap())
                .collect()
        };
        server.plan.say(bytes("<think>ab</think>cd"));
        let object = whole(server, &members).await;
        assert_eq!(tokens(&object["output"][1]), "cd");
        let first = &object["output"][1]["content"][0]["logprobs"][0];
        assert_eq!(first["bytes"], json!([99]));
        assert_eq!(first["top_logprobs"].as_array().unwrap().len(), 2);
        assert_eq!(first["top_logprobs"][0]["token"], "c");
        assert!(object["output"][0]["content"][0].get("logprobs").is_none());
        server.plan.say(bytes(&format!("x{CALL}")));
        let object = whole(server, &members).await;
        let listed = tokens(&object["output"][0]);
        assert!(
            listed.starts_with('x') && !listed.contains("arguments\":{"),
            "{listed}"
        );
        let members = json!({"include": include});
        let object = whole(server, &members).await;
        let first = &object["output"][0]["content"][0]["logprobs"][0];
        assert_eq!(first["top_logprobs"], json!([]));
    });
}

#[test]
fn the_template_sees_the_fields() {
    serve_default(async |server| {
        let tokens = async |template: &str, members: Value| {
            server.set_template(Some(template));
            whole(server, &members).await["usage"]["input_tokens"].clone()
        };
        // One token of the start, and one per character.
        let kwargs = json!({"chat_template_kwargs": {"x": "123"}});
        assert_eq!(tokens("{{ x }}", kwargs).await, 4);
        let effort = "{{ reasoning_effort }}{{ enable_thinking }}";
        let low = json!({"reasoning": {"effort": "low"}});
        assert_eq!(tokens(effort, low).await, 4);
        let none = json!({"reasoning": {"effort": "none"}});
        assert_eq!(tokens(effort, none).await, 10);
        let verbosity = json!({"text": {"verbosity": "high"}});
        assert_eq!(tokens("{{ verbosity }}", verbosity).await, 5);
        let name = "{{ tools[0].function.name }}{{ tools[0].function.parameters.type }}";
        assert_eq!(tokens(name, json!({"tools": tools()})).await, 8);
        let system = "{{ messages[0].role }}{{ messages[0].content }}";
        let instructions = json!({"instructions": "ab"});
        assert_eq!(tokens(system, instructions).await, 9);
        let result = json!({"input": [
            {"type": "function_call", "call_id": "1", "name": "f", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "1", "output": "ab"}]});
        let tool = "{% if tools %}.{% endif %}{{ messages[1].role }}{{ messages[1].name }}{{ messages[1].content }}";
        assert_eq!(tokens(tool, result).await, 8);
    });
}

#[test]
fn errors_name_the_fields_of_this_route() {
    serve_default(async |server| {
        let error = async |members: Value| reply(server, &members).await.error();
        let is = |code: &str, param: &str| (400, code.to_owned(), Some(param.to_owned()));
        let long = json!({"input": "x".repeat(100)});
        let exceeded = is("context_length_exceeded", "input");
        assert_eq!(error(long.clone()).await, exceeded);
        let many = json!({"max_output_tokens": 100, "context_length_exceeded_behavior": "error"});
        let exceeded = is("context_length_exceeded", "max_output_tokens");
        assert_eq!(error(many).await, exceeded);
        let schema = json!({"type": "json_schema", "schema": {"type": "nonsense"}});
        let schema = json!({"text": {"format": schema}});
        assert_eq!(error(schema).await, is("invalid_schema", "text"));
        let image = json!({"type": "input_image", "image_url": "data:image/png;base64,AAAA"});
        let image = json!({"input": [{"role": "user", "content": [image]}]});
        assert_eq!(error(image).await, is("unsupported_parameter", "input"));
        server.set_template(None);
        assert_eq!(error(json!({})).await, is("unsupported_parameter", "input"));
        server.set_template(Some("{{ raise_exception('no') }}"));
        assert_eq!(error(json!({})).await, is("invalid_value", "input"));
    });
}

#[test]
fn a_failure_after_the_head_ends_the_stream() {
    serve_default(async |server| {
        let error = Error::InvalidLogits { position: 3 };
        // The prompt has 6 tokens.
        *server.plan.failure.borrow_mut() = Some((6 + 3, error));
        let events = streamed(server, &json!({})).await;
        *server.plan.failure.borrow_mut() = None;
        let [.., error, failed] = &events[..] else {
            panic!("{events:?}");
        };
        assert_eq!(error["type"], "error");
        assert_eq!(error["code"], "invalid_logits");
        assert_eq!(error["param"], Value::Null);
        for name in ["code", "message", "param"] {
            assert_eq!(error["error"][name], error[name]);
        }
        assert_eq!(failed["type"], "response.failed");
        let response = &failed["response"];
        assert_eq!(response["status"], "failed");
        assert_eq!(response["error"]["code"], "invalid_logits");
        assert_eq!(response["error"]["message"], error["message"]);
        let item = &response["output"][0];
        assert_eq!(item["status"], "incomplete");
        let deltas = events.iter().filter_map(|event| event["delta"].as_str());
        assert_eq!(item["content"][0]["text"], deltas.collect::<String>());
    });
}

/// The events of a run from `position` on, each with the position after it.
async fn run(server: &Server, members: &Value, position: Option<String>) -> Vec<Positioned> {
    let mut members = members.clone();
    members["stream"] = json!(true);
    let request = Request {
        position,
        ..responses(&response_body(&members))
    };
    server.events(request, usize::MAX).await
}

#[test]
fn a_stream_is_continued_after_any_event() {
    serve_default(async |server| {
        server.set_template(Some(HERMES));
        let include = json!([
            "message.output_text.logprobs",
            "reasoning.encrypted_content"
        ]);
        for (says, members) in [
            (
                None,
                json!({"temperature": 1, "include": include, "max_output_tokens": 20}),
            ),
            (
                Some("<think>ab</think>cd".to_owned()),
                json!({"max_output_tokens": null, "include": include}),
            ),
            (
                Some(format!("xy {CALL}")),
                json!({"max_output_tokens": null, "tools": tools(), "include": include}),
            ),
        ] {
            if let Some(says) = says {
                server.plan.say(bytes(&says));
            }
            let parsed = |events: &mut dyn Iterator<Item = &(Vec<u8>, Option<String>)>| {
                let reply = Reply {
                    status: 200,
                    headers: Vec::new(),
                    body: events.flat_map(|(event, _)| event.clone()).collect(),
                };
                let mut response = response_of(&events_of(&reply));
                response["usage"]["input_tokens_details"] = Value::Null;
                response["completed_at"] = Value::Null;
                response
            };
            let all = run(server, &members, None).await;
            let undisturbed = parsed(&mut all.iter());
            assert!(all.len() > 8, "{members}");
            for cut in 1..all.len() {
                let rest = run(server, &members, all[cut - 1].1.clone()).await;
                // Ids of items and calls are equal, too.
                let joined = parsed(&mut all[..cut].iter().chain(&rest));
                assert_eq!(joined, undisturbed, "{members} cut after {cut} events");
            }
            let over = run(server, &members, all.last().unwrap().1.clone()).await;
            assert_eq!(over, [], "nothing follows the last event");
        }
    });
}

#[test]
fn the_tokens_of_an_input_are_counted() {
    serve_default(async |server| {
        let count = async |members: &Value| {
            let request = Request {
                url: "/v1/responses/input_tokens".into(),
                ..responses(&response_body(members))
            };
            server.send(request).await
        };
        for members in [
            json!({}),
            json!({"instructions": "be brief", "input": [{"role": "user", "content": "q"}]}),
            json!({"tools": tools(), "tool_choice": "required"}),
        ] {
            let expected = whole(server, &members).await["usage"]["input_tokens"].clone();
            let counted = count(&members).await.json();
            let object = json!({"object": "response.input_tokens", "input_tokens": expected});
            assert_eq!(counted, object, "{members}");
        }
        // The context does not bound the answer.
        let long = count(&json!({"input": "x".repeat(2 * CONTEXT)}))
            .await
            .json();
        assert_eq!(long["input_tokens"], 2 * CONTEXT + 5);
        let refused = |code: &str| (400, code.to_owned(), Some("input".to_owned()));
        let missing = count(&json!({"input": null})).await.error();
        assert_eq!(missing, refused("missing_required_parameter"));
    });
}
