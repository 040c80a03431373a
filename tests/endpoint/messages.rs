//! Anthropic's Messages (specification 22), whole and streamed.

use inpage::Error;
use inpage::api::Request;
use serde_json::{Value, json};

use crate::fixture::*;

/// The base request with `members` added or replaced.
fn message_body(members: &Value) -> String {
    let mut body = json!({"model": "default", "messages": [{"role": "user", "content": "q"}], "max_tokens": 8});
    let members = members.as_object().unwrap().clone();
    body.as_object_mut().unwrap().extend(members);
    body.to_string()
}

async fn reply(server: &Server, members: &Value) -> Reply {
    server.send(messages(&message_body(members))).await
}

async fn whole(server: &Server, members: &Value) -> Value {
    let reply = reply(server, members).await;
    assert_eq!(reply.status, 200, "{members}: {}", reply.text());
    reply.json()
}

/// The events of a stream. Checks their frames.
#[track_caller]
fn events_of(reply: &Reply) -> Vec<Value> {
    let frames = reply.text().strip_suffix("\n\n").unwrap().split("\n\n");
    let frames = frames.filter(|frame| *frame != ": keep-alive");
    let event = |frame: &str| {
        let (name, data) = frame.split_once('\n').unwrap();
        let event: Value = serde_json::from_str(data.strip_prefix("data: ").unwrap()).unwrap();
        assert_eq!(name.strip_prefix("event: ").unwrap(), event["type"]);
        event
    };
    frames.map(event).collect()
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

/// The message that the events make. Checks their order.
#[track_caller]
fn message_of(events: &[Value]) -> Value {
    let [start, middle @ .., end, stop] = events else {
        panic!("{events:?}");
    };
    assert_eq!(start["type"], "message_start");
    let mut message = start["message"].clone();
    for name in ["stop_reason", "stop_sequence"] {
        assert_eq!(message[name], Value::Null);
    }
    assert_eq!(message["content"], json!([]));
    assert_eq!(message["usage"]["output_tokens"], 0);
    let mut blocks: Vec<Value> = Vec::new();
    // The JSON of the open call.
    let mut input = String::new();
    let mut is_open = false;
    for event in middle {
        let starts = event["type"] == "content_block_start";
        assert_eq!(is_open, !starts, "{event}");
        let index = if starts {
            blocks.len()
        } else {
            blocks.len() - 1
        };
        assert_eq!(event["index"], index, "{event}");
        match event["type"].as_str().unwrap() {
            "content_block_start" => {
                is_open = true;
                input.clear();
                blocks.push(event["content_block"].clone());
            }
            "content_block_delta" => {
                let delta = &event["delta"];
                let block = &mut blocks[index];
                let name = match (block["type"].as_str(), delta["type"].as_str()) {
                    (Some("text"), Some("text_delta")) => "text",
                    (Some("thinking"), Some("thinking_delta")) => "thinking",
                    (Some("tool_use"), Some("input_json_delta")) => {
                        input.push_str(delta["partial_json"].as_str().unwrap());
                        continue;
                    }
                    _ => panic!("{event}"),
                };
                let added = delta[name].as_str().unwrap();
                assert!(!added.is_empty());
                block[name] = (block[name].as_str().unwrap().to_owned() + added).into();
            }
            "content_block_stop" => {
                is_open = false;
                let block = &mut blocks[index];
                if block["type"] == "tool_use" {
                    assert_eq!(block["input"], json!({}));
                    block["input"] = serde_json::from_str(&input).unwrap_or(json!(input));
                }
            }
            other => panic!("{other}"),
        }
    }
    assert!(!is_open);
    assert_eq!(end["type"], "message_delta");
    assert_eq!(*stop, json!({"type": "message_stop"}));
    message["content"] = blocks.into();
    message["usage"] = end["usage"].clone();
    for name in ["stop_reason", "stop_sequence"] {
        message[name] = end["delta"][name].clone();
    }
    message
}

/// The message without what is random, and without what depends on the cache.
#[track_caller]
fn compared(message: &Value) -> Value {
    let mut message = message.clone();
    let id = message["id"].as_str().unwrap().to_owned();
    let random = id.strip_prefix("msg_").unwrap();
    assert_eq!(random.len(), 24);
    message["id"] = Value::Null;
    let usage = &mut message["usage"];
    let cached = usage["cache_read_input_tokens"].take().as_u64().unwrap();
    usage["input_tokens"] = (usage["input_tokens"].as_u64().unwrap() + cached).into();
    for (index, block) in message["content"]
        .as_array_mut()
        .unwrap()
        .iter_mut()
        .enumerate()
    {
        if block["type"] == "tool_use" {
            assert_eq!(block["id"], format!("toolu_{random}{index}"));
            block["id"] = Value::Null;
        }
    }
    message
}

const HERMES: &str = "{# <tool_call> arguments <think> </think> #}{% if tools %}.{% endif %}{{ messages[0].content }}";
const CALL: &str = "<tool_call>{\"name\":\"f\",\"arguments\":{\"a\": 1}}</tool_call>";

fn tools() -> Value {
    json!([{"name": "f", "input_schema": {"type": "object", "properties": {"a": {"type": "integer"}}}}])
}

#[test]
fn a_message_has_all_members() {
    serve_default(async |server| {
        server.plan.say(pieces("quown the"));
        let message = whole(server, &json!({"max_tokens": 60})).await;
        let tokens = message["usage"]["output_tokens"].as_u64().unwrap();
        assert_eq!(
            compared(&message),
            json!({
                "id": null, "type": "message", "role": "assistant", "model": MODEL_ID,
                "content": [{"type": "text", "text": "quown the", "citations": null}],
                "stop_reason": "end_turn", "stop_sequence": null,
                // <s> <|sep|> u q <|sep|> a
                "usage": {"input_tokens": 6, "cache_creation_input_tokens": 0, "cache_read_input_tokens": null,
                    "output_tokens": tokens, "output_tokens_details": {"thinking_tokens": 0}},
            })
        );
    });
}

#[test]
fn events_add_up_to_the_whole() {
    serve_default(async |server| {
        for members in [
            json!({"temperature": 1, "seed": 3}),
            json!({"temperature": 1, "seed": 5, "stop_sequences": ["e", "a"], "max_tokens": 30}),
            json!({"grammar": {"type": "regex", "value": "[a-z]{3} [0-9]+"}, "seed": 1}),
            json!({"output_config": {"format": {"type": "json_schema", "schema": {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}}},
                "max_tokens": 40, "seed": 1}),
            json!({"max_tokens": 0}),
        ] {
            let message = whole(server, &members).await;
            let streamed = message_of(&streamed(server, &members).await);
            assert_eq!(compared(&streamed), compared(&message), "{members}");
        }
    });
}

/// Outputs with thinking, text and calls in several orders.
#[test]
fn events_add_up_whatever_the_blocks() {
    let outputs = [
        format!("<think>ab</think>cd{CALL}"),
        format!("{CALL}\n{CALL}"),
        format!("x {CALL} y"),
        "<think>a".to_owned(),
        "a <b> <thin".to_owned(),
        String::new(),
    ];
    serve_default(async |server| {
        server.set_template(Some(HERMES));
        for output in &outputs {
            server.plan.say(bytes(output));
            let members = json!({"max_tokens": 62, "tools": tools()});
            let message = whole(server, &members).await;
            let streamed = message_of(&streamed(server, &members).await);
            let (streamed, message) = (compared(&streamed), compared(&message));
            if message["stop_reason"] != "max_tokens" {
                assert_eq!(streamed, message, "{output}");
            }
        }
        server.plan.say(bytes(&outputs[0]));
        let message = whole(server, &json!({"max_tokens": 62, "tools": tools()})).await;
        let expected = json!([
            {"type": "thinking", "thinking": "ab", "signature": ""},
            {"type": "text", "text": "cd", "citations": null},
        ]);
        assert_eq!(
            message["content"].as_array().unwrap()[..2],
            *expected.as_array().unwrap()
        );
        let thinking = &message["usage"]["output_tokens_details"]["thinking_tokens"];
        assert!((2..18).contains(&thinking.as_u64().unwrap()), "{thinking}");
    });
}

#[test]
fn the_reason_of_the_end() {
    serve_default(async |server| {
        server.set_template(Some(HERMES));
        let end = async |says: &str, members: Value| {
            server.plan.say(bytes(says));
            let message = whole(server, &members).await;
            let streamed = message_of(&streamed(server, &members).await);
            assert_eq!(streamed["stop_reason"], message["stop_reason"]);
            assert_eq!(streamed["stop_sequence"], message["stop_sequence"]);
            let end = (
                message["stop_reason"].clone(),
                message["stop_sequence"].clone(),
            );
            (end, message["content"][0]["text"].clone())
        };
        let is = |reason: &str, sequence: Value| (json!(reason), sequence);
        let (ended, _) = end("ab", json!({})).await;
        assert_eq!(ended, is("end_turn", Value::Null));
        let (ended, _) = end("abcd", json!({"max_tokens": 2})).await;
        assert_eq!(ended, is("max_tokens", Value::Null));
        let stops = json!({"stop_sequences": ["x", "c"]});
        assert_eq!(
            end("abcd", stops).await,
            (is("stop_sequence", json!("c")), json!("ab"))
        );
        server
            .plan
            .say([bytes("ab"), vec![SEP], bytes("c")].concat());
        let special = whole(server, &json!({"stop_sequences": ["<|sep|>"]})).await;
        assert_eq!(
            (&special["stop_reason"], &special["stop_sequence"]),
            (&json!("stop_sequence"), &json!("<|sep|>"))
        );
        let calls = json!({"max_tokens": 62, "tools": tools()});
        assert_eq!(end(CALL, calls).await.0, is("tool_use", Value::Null));
    });
}

#[test]
fn calls_are_blocks_and_their_results_come_back() {
    serve_default(async |server| {
        server.set_template(Some(HERMES));
        server.plan.say(bytes(CALL));
        for choice in [
            json!({"type": "auto"}),
            json!({"type": "any"}),
            json!({"type": "tool", "name": "f"}),
        ] {
            let one = choice["type"] != "auto";
            let mut choice = choice;
            choice["disable_parallel_tool_use"] = json!(one);
            let members = json!({"max_tokens": 62, "tools": tools(), "tool_choice": choice});
            let message = whole(server, &members).await;
            let call = &message["content"][0];
            assert_eq!(
                (&call["type"], &call["name"]),
                (&json!("tool_use"), &json!("f")),
                "{message}"
            );
            assert_eq!(call["input"], json!({"a": 1}));
        }
        let message = whole(server, &json!({"max_tokens": 62, "tools": tools()})).await;
        let call = &message["content"][0];
        let template = "{% if tools %}.{% endif %}{% for m in messages %}{{ m.role[0] }}{{ m.content }}\
            {% for c in m.tool_calls or [] %}{{ c.function.arguments.a + 1 }}{% endfor %}{% endfor %}";
        server.set_template(Some(template));
        let result = json!({"type": "tool_result", "tool_use_id": call["id"], "content": "xyz"});
        let turns = json!([
            {"role": "user", "content": "q"},
            {"role": "assistant", "content": message["content"]},
            {"role": "user", "content": [result]},
        ]);
        let next = whole(server, &json!({"messages": turns, "tools": tools()})).await;
        // <s> . u q a 2 t x y z
        assert_eq!(compared(&next)["usage"]["input_tokens"], 10);
        // Without tools, the same text is a message.
        server.set_template(Some(HERMES));
        let message = whole(server, &json!({"max_tokens": 62})).await;
        assert_eq!(message["content"][0]["type"], "text");
        let none = json!({"max_tokens": 62, "tools": tools(), "tool_choice": {"type": "none"}});
        assert_eq!(whole(server, &none).await["content"][0]["type"], "text");
    });
}

#[test]
fn a_call_that_its_tokens_end_has_what_is_whole() {
    serve_default(async |server| {
        server.set_template(Some(HERMES));
        server.plan.say(bytes(CALL));
        for limit in [5, 20, 30, 45, 48] {
            let members = json!({"max_tokens": limit, "tools": tools(),
                "tool_choice": {"type": "any", "disable_parallel_tool_use": true}});
            let message = whole(server, &members).await;
            assert_eq!(message["stop_reason"], "max_tokens", "{message}");
            let [call] = &message["content"].as_array().unwrap()[..] else {
                panic!("{message}");
            };
            assert_eq!(
                (&call["type"], &call["name"]),
                (&json!("tool_use"), &json!("f"))
            );
            let input = &call["input"];
            assert!(
                [json!({}), json!({"a": 1})].contains(input),
                "{limit}: {input}"
            );
            // The events have the text so far.
            let streamed = message_of(&streamed(server, &members).await);
            let text = match &streamed["content"][0]["input"] {
                Value::String(text) => text.clone(),
                whole => whole.to_string(),
            };
            assert!(
                "{\"a\": 1}".starts_with(&text) || text == "{\"a\":1}",
                "{text}"
            );
        }
    });
}

#[test]
fn the_template_sees_the_fields() {
    serve_default(async |server| {
        let tokens = async |template: &str, members: Value| {
            server.set_template(Some(template));
            let message = whole(server, &members).await;
            compared(&message)["usage"]["input_tokens"].clone()
        };
        // One token of the start, and one per character.
        let kwargs = json!({"chat_template_kwargs": {"x": "123"}});
        assert_eq!(tokens("{{ x }}", kwargs).await, 4);
        let thinks =
            "{% if enable_thinking is defined %}{{ enable_thinking }}{% else %}-{% endif %}";
        for (thinking, expected) in [
            (Value::Null, "False"),
            (json!({"type": "disabled"}), "False"),
            (json!({"type": "enabled", "budget_tokens": 1024}), "True"),
            (json!({"type": "adaptive"}), "-"),
        ] {
            let tokens = tokens(thinks, json!({"thinking": thinking})).await;
            assert_eq!(tokens, 1 + expected.len());
        }
        let effort = json!({"output_config": {"effort": "low"}});
        assert_eq!(tokens("{{ reasoning_effort }}", effort).await, 4);
        let name = "{{ tools[0].function.name }}{{ tools[0].function.parameters.type }}";
        assert_eq!(tokens(name, json!({"tools": tools()})).await, 8);
        let system = "{{ messages[0].role }}{{ messages[0].content }}";
        assert_eq!(tokens(system, json!({"system": "ab"})).await, 9);
        let begun = json!({"messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]});
        assert_eq!(tokens(TEMPLATE, begun).await, 1 + 3 + 3);
    });
}

#[test]
fn thinking_ends_when_its_budget_is_spent() {
    serve_default(async |server| {
        let template = |open: &str| HERMES.to_owned() + open;
        let control = ["<think>", "</think>", "<MID>"];
        let said = |parts: &[&[u32]]| server.plan.say(parts.concat());
        let (open, close) = (PRE, PRE + 1);
        let thought = async |thinking: Value, tools: bool| {
            let mut members = json!({"max_tokens": 40, "thinking": thinking});
            if tools {
                members["tools"] =
                    json!([{"name": "f", "input_schema": {"type": "object", "properties": {}}}]);
            }
            let message = whole(server, &members).await;
            assert_eq!(
                compared(&message_of(&streamed(server, &members).await)),
                compared(&message)
            );
            let texts = message["content"].as_array().unwrap().iter();
            let text = |it: &Value| {
                it["thinking"]
                    .as_str()
                    .or(it["text"].as_str())
                    .unwrap()
                    .to_owned()
            };
            texts.map(text).collect::<Vec<_>>()
        };
        let budget = |tokens: u32| json!({"type": "enabled", "budget_tokens": tokens});
        for (opened, first) in [("<think>", &[][..]), ("", &[open])] {
            server.set_template_with(Some(&template(opened)), control);
            said(&[first, &bytes("abcdefgh"), &[close], &bytes("xy")]);
            assert_eq!(thought(budget(20), false).await, ["abcdefgh", "xy"]);
            assert_eq!(
                thought(json!({"type": "enabled"}), false).await,
                ["abcdefgh", "xy"]
            );
            // The closing tag does not come after a part of a character.
            for (text, expected) in [("abcdefgh", "abc"), ("é日xzw", "é日x")] {
                said(&[first, &bytes(text)]);
                if opened.is_empty() {
                    // After the end of its script, this model begins anew, with the opening tag.
                    assert_eq!(
                        thought(budget(3), false).await,
                        [expected.to_owned() + text]
                    );
                    continue;
                }
                for tools in [false, true] {
                    assert_eq!(thought(budget(3), tools).await, [expected, text]);
                }
            }
        }
        // Nothing to bound, and a tag that is several tokens.
        server.set_template(Some(TEMPLATE));
        whole(server, &json!({"thinking": budget(1)})).await;
        server.set_template(Some(&template("")));
        whole(server, &json!({"max_tokens": 9, "thinking": budget(9)})).await;
        let refused = reply(server, &json!({"thinking": budget(1)})).await;
        let error = &refused.json()["error"];
        assert_eq!(
            (&error["code"], &error["param"]),
            (&json!("unsupported_parameter"), &json!("thinking"))
        );
    });
}

#[test]
fn errors_have_the_form_of_anthropic() {
    serve(json!({"apiKey": "k"}), async |server| {
        let send = async |key: &str, method: &str, path: &str, body: &str| {
            let headers = [
                ("x-api-key", key),
                ("content-type", "application/json"),
                ("anthropic-version", "2023-06-01"),
            ];
            server.send(request(method, path, &headers, body)).await
        };
        let body = message_body(&json!({}));
        assert_eq!(
            send("k", "POST", "/v1/messages?beta=true", &body)
                .await
                .status,
            200
        );
        let unknown = message_body(&json!({"model": "no/such"}));
        let long =
            message_body(&json!({"messages": [{"role": "user", "content": "x".repeat(100)}]}));
        for path in ["/v1/messages", "/v1/messages/count_tokens"] {
            for (key, method, body, status, kind, code, param) in [
                (
                    "x",
                    "POST",
                    &*body,
                    401,
                    "authentication_error",
                    "invalid_api_key",
                    Value::Null,
                ),
                (
                    "k",
                    "GET",
                    "",
                    405,
                    "invalid_request_error",
                    "method_not_allowed",
                    Value::Null,
                ),
                (
                    "k",
                    "POST",
                    "{",
                    400,
                    "invalid_request_error",
                    "invalid_json",
                    Value::Null,
                ),
                (
                    "k",
                    "POST",
                    "{}",
                    400,
                    "invalid_request_error",
                    "missing_required_parameter",
                    json!("model"),
                ),
                (
                    "k",
                    "POST",
                    &unknown,
                    404,
                    "not_found_error",
                    "model_not_found",
                    json!("model"),
                ),
            ] {
                let reply = send(key, method, path, body).await;
                let object = reply.json();
                assert_eq!(reply.status, status, "{object}");
                let error = &object["error"];
                assert_eq!(
                    (&object["type"], &error["type"]),
                    (&json!("error"), &json!(kind))
                );
                assert_eq!((&error["code"], &error["param"]), (&json!(code), &param));
                assert!(!error["message"].as_str().unwrap().is_empty());
                assert_eq!(object["request_id"].as_str(), reply.header("request-id"));
                assert_eq!(reply.header("request-id"), reply.header("x-request-id"));
            }
        }
        let exceeded = send("k", "POST", "/v1/messages", &long).await.json();
        assert_eq!(exceeded["error"]["code"], "context_length_exceeded");
        assert_eq!(exceeded["error"]["param"], "messages");
        // Other routes keep theirs.
        assert_eq!(
            send("x", "POST", "/v1/responses", "{}").await.error().0,
            401
        );
        let schema = json!({"output_config": {"format": {"type": "json_schema", "schema": {"type": "nonsense"}}}});
        let schema = send("k", "POST", "/v1/messages", &message_body(&schema))
            .await
            .json();
        assert_eq!(
            (&schema["error"]["code"], &schema["error"]["param"]),
            (&json!("invalid_schema"), &json!("output_config"))
        );
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
        assert_eq!(events[0]["type"], "message_start");
        let failed = events.last().unwrap();
        assert_eq!(failed["type"], "error");
        assert_eq!(failed["error"]["type"], "api_error");
        assert_eq!(failed["error"]["code"], "invalid_logits");
        assert!(!events.iter().any(|event| event["type"] == "message_stop"));
    });
}

/// The events of a run from `position` on, each with the position after it.
async fn run(server: &Server, members: &Value, position: Option<String>) -> Vec<Positioned> {
    let mut members = members.clone();
    members["stream"] = json!(true);
    let request = Request {
        position,
        ..messages(&message_body(&members))
    };
    server.events(request, usize::MAX).await
}

#[test]
fn a_stream_is_continued_after_any_event() {
    serve_default(async |server| {
        server.set_template(Some(HERMES));
        for (says, members) in [
            (None, json!({"temperature": 1, "max_tokens": 20})),
            (
                Some("<think>ab</think>cd".to_owned()),
                json!({"max_tokens": 60}),
            ),
            (
                Some(format!("xy {CALL}")),
                json!({"max_tokens": 62, "tools": tools()}),
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
                // Ids of messages and calls are equal, too.
                let mut message = message_of(&events_of(&reply));
                for name in ["input_tokens", "cache_read_input_tokens"] {
                    message["usage"][name] = Value::Null;
                }
                message
            };
            let all = run(server, &members, None).await;
            let undisturbed = parsed(&mut all.iter());
            assert!(all.len() > 3, "{members}");
            for cut in 1..all.len() {
                let rest = run(server, &members, all[cut - 1].1.clone()).await;
                let joined = parsed(&mut all[..cut].iter().chain(&rest));
                assert_eq!(joined, undisturbed, "{members} cut after {cut} events");
            }
            let over = run(server, &members, all.last().unwrap().1.clone()).await;
            assert_eq!(over, [], "nothing follows the last event");
        }
    });
}

#[test]
fn the_tokens_of_a_prompt_are_counted() {
    serve_default(async |server| {
        let count = async |members: &Value| {
            let request = Request {
                url: "/v1/messages/count_tokens".into(),
                ..messages(&message_body(members))
            };
            server.send(request).await
        };
        for members in [
            json!({}),
            json!({"system": "be brief", "max_tokens": 4}),
            json!({"tools": tools(), "tool_choice": {"type": "any"}}),
        ] {
            let message = whole(server, &members).await;
            let expected = compared(&message)["usage"]["input_tokens"].clone();
            let mut uncounted = members.clone();
            uncounted["max_tokens"] = Value::Null;
            let counted = count(&uncounted).await.json();
            assert_eq!(counted, json!({"input_tokens": expected}), "{members}");
        }
    });
}
