//! Chat completions (specification 18), whole and streamed.

use std::collections::BTreeMap;

use inpage::api::Request;
use serde_json::{Value, json};

use crate::fixture::*;

/// The base request with `members` added or replaced.
pub fn chat_body(members: &Value) -> String {
    let messages = json!([{"role": "user", "content": "q"}]);
    let mut body = json!({"model": "default", "messages": messages, "max_tokens": 8});
    let members = members.as_object().unwrap().clone();
    body.as_object_mut().unwrap().extend(members);
    body.to_string()
}

pub async fn reply(server: &Server, members: &Value) -> Reply {
    server.send(chat(&chat_body(members))).await
}

pub async fn whole(server: &Server, members: &Value) -> Value {
    let reply = reply(server, members).await;
    assert_eq!(reply.status, 200, "{members}: {}", reply.text());
    reply.json()
}

pub async fn streamed(server: &Server, members: &Value) -> Vec<Value> {
    let mut members = members.clone();
    members["stream"] = json!(true);
    let reply = reply(server, &members).await;
    assert_eq!(reply.status, 200, "{members}: {}", reply.text());
    reply.chunks()
}

pub fn append(to: &mut Value, more: &Value) {
    match (to, more) {
        (_, Value::Null) => {}
        (Value::String(text), Value::String(more)) => text.push_str(more),
        (Value::Array(all), Value::Array(more)) => all.extend(more.iter().cloned()),
        (to @ Value::Null, more) => *to = more.clone(),
        (to, more) => panic!("{to} and {more}"),
    }
}

/// The choices that the chunks make, in the form of a whole answer. Checks that each choice begins with the role once and
/// ends with an empty delta.
#[track_caller]
pub fn choices_of(chunks: &[Value]) -> Vec<Value> {
    let mut choices: BTreeMap<u64, Value> = BTreeMap::new();
    for chunk in chunks {
        assert_eq!(chunk["object"], "chat.completion.chunk");
        let Some(choice) = chunk["choices"].get(0) else {
            continue;
        };
        let index = choice["index"].as_u64().unwrap();
        let delta = &choice["delta"];
        let Some(all) = choices.get_mut(&index) else {
            assert_eq!(*delta, json!({"role": "assistant", "content": ""}));
            let message = json!({"role": "assistant", "content": "", "refusal": null});
            choices.insert(
                index,
                json!({"index": index, "message": message, "logprobs": null}),
            );
            continue;
        };
        assert!(delta.get("role").is_none() && all.get("finish_reason").is_none());
        for name in ["content", "reasoning_content"] {
            if let Some(text) = delta.get(name) {
                append(&mut all["message"][name], text);
            }
        }
        for call in delta["tool_calls"].as_array().into_iter().flatten() {
            let calls = &mut all["message"]["tool_calls"];
            let position = call["index"].as_u64().unwrap() as usize;
            if call.get("id").is_some() {
                let mut call = call.clone();
                call.as_object_mut().unwrap().remove("index");
                append(calls, &json!([call]));
            } else {
                let arguments = &call["function"]["arguments"];
                append(&mut calls[position]["function"]["arguments"], arguments);
            }
        }
        if let Some(content) = choice["logprobs"].get("content") {
            if all["logprobs"].is_null() {
                all["logprobs"] = json!({"content": [], "refusal": null});
            }
            append(&mut all["logprobs"]["content"], content);
        }
        if !choice["finish_reason"].is_null() {
            assert_eq!(*delta, json!({}));
            all["finish_reason"] = choice["finish_reason"].clone();
            all["stop_reason"] = choice["stop_reason"].clone();
        }
    }
    let mut choices: Vec<Value> = choices.into_values().collect();
    for choice in &mut choices {
        let message = choice["message"].as_object_mut().unwrap();
        if message["content"] == "" && message.contains_key("tool_calls") {
            message["content"] = Value::Null;
        }
        without_ids(choice);
    }
    choices
}

/// Ids of calls are random.
fn without_ids(choice: &mut Value) {
    let calls = choice["message"].get_mut("tool_calls");
    for call in calls.and_then(Value::as_array_mut).into_iter().flatten() {
        let id = call.as_object_mut().unwrap().remove("id").unwrap();
        assert!(id.as_str().unwrap().starts_with("call_"));
    }
}

pub fn choices_of_whole(object: &Value) -> Vec<Value> {
    let mut choices = object["choices"].as_array().unwrap().clone();
    choices.iter_mut().for_each(without_ids);
    choices
}

pub const HERMES: &str = "{# <tool_call> arguments <think> </think> #}{% if tools %}.{% endif %}{{ messages[0].content }}";
const TOOLS: &str =
    r#"[{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]"#;

fn tools() -> Value {
    serde_json::from_str(TOOLS).unwrap()
}

#[test]
fn a_message_answers() {
    serve_default(async |server| {
        server.plan.say(pieces("quown the"));
        let object = whole(server, &json!({"max_tokens": null})).await;
        assert!(object["id"].as_str().unwrap().starts_with("chatcmpl-"));
        assert_eq!(object["object"], "chat.completion");
        let message = json!({"role": "assistant", "content": "quown the", "refusal": null});
        let choice = json!({"index": 0, "message": message, "logprobs": null,
            "finish_reason": "stop", "stop_reason": null});
        assert_eq!(object["choices"], json!([choice]));
        // <s> <|sep|> u q <|sep|> a
        assert_eq!(object["usage"]["prompt_tokens"], 6);
        let details = &object["usage"]["completion_tokens_details"];
        assert_eq!(*details, json!({"reasoning_tokens": 0}));
        assert!(object["usage"]["prompt_tokens_details"]["cached_tokens"].is_u64());
    });
}

#[test]
fn usage_tells_how_much_of_a_prediction_came() {
    serve_default(async |server| {
        let said = pieces("quown the");
        let count = said.len();
        server.plan.say(said.clone());
        let longer = [said.clone(), bytes("xyz")].concat();
        let ask = |speculation: &[u32], n: usize| json!({"max_tokens": null, "n": n, "speculation": speculation});
        for (members, accepted, rejected) in [
            (ask(&said, 1), count, 0),
            (ask(&said, 2), 2 * count, 0),
            (ask(&longer, 1), count, 3),
            (ask(&bytes("xyz"), 1), 0, 3),
            (ask(&[], 1), 0, 0),
        ] {
            let object = whole(server, &members).await;
            let details = json!({"reasoning_tokens": 0, "accepted_prediction_tokens": accepted,
                "rejected_prediction_tokens": rejected});
            let found = &object["usage"]["completion_tokens_details"];
            assert_eq!(*found, details, "{members}");
            let mut streaming = members.clone();
            streaming["stream_options"] = json!({"include_usage": true});
            let usage = streamed(server, &streaming).await.pop().unwrap();
            assert_eq!(usage["usage"]["completion_tokens_details"], details);
        }
        let text = json!({"prediction": {"type": "content", "content": "quown the"}});
        let object = whole(server, &text).await;
        let details = &object["usage"]["completion_tokens_details"];
        let predicted = |name: &str| details[name].as_u64().unwrap();
        let accepted = predicted("accepted_prediction_tokens");
        assert!(accepted > 0 && predicted("rejected_prediction_tokens") < count as u64);
        let completion = server.ok(json!({"speculation": said})).await;
        let details = json!({"accepted_prediction_tokens": count, "rejected_prediction_tokens": 0});
        assert_eq!(completion["usage"]["completion_tokens_details"], details);
    });
}

#[test]
fn chunks_add_up_to_the_whole() {
    serve_default(async |server| {
        for members in [
            json!({"temperature": 1, "seed": 3}),
            json!({"temperature": 1, "seed": 3, "n": 3, "logprobs": true, "top_logprobs": 2}),
            json!({"temperature": 1, "seed": 5, "stop": ["e", "a"], "max_tokens": 30}),
            json!({"grammar": {"type": "regex", "value": "[a-z]{3} [0-9]+"}, "seed": 1}),
            json!({"response_format": {"type": "json_object"}, "max_tokens": 20, "seed": 1}),
            json!({"max_completion_tokens": 5, "max_tokens": null, "seed": 1}),
        ] {
            let object = whole(server, &members).await;
            let mut streaming = members.clone();
            streaming["stream_options"] = json!({"include_usage": true});
            let mut chunks = streamed(server, &streaming).await;
            let usage = chunks.pop().unwrap();
            assert_eq!(usage["choices"], json!([]));
            assert_eq!(
                usage["usage"]["completion_tokens"],
                object["usage"]["completion_tokens"]
            );
            assert_eq!(choices_of(&chunks), choices_of_whole(&object), "{members}");
        }
    });
}

#[test]
fn log_probabilities_come_with_bytes() {
    serve_default(async |server| {
        server.plan.say(bytes("é!"));
        let object = whole(server, &json!({"logprobs": true, "top_logprobs": 2})).await;
        let logprobs = &object["choices"][0]["logprobs"];
        assert_eq!(logprobs["refusal"], Value::Null);
        let content = logprobs["content"].as_array().unwrap();
        assert_eq!(content[0]["bytes"], json!([0xc3]));
        assert_eq!(content[0]["token"], "bytes:\\xc3");
        assert_eq!(content[2]["token"], "!");
        // The token that ends the message is counted and not listed.
        assert_eq!(content.len(), 3);
        assert_eq!(object["usage"]["completion_tokens"], 4);
        let ends = whole(
            server,
            &json!({"logprobs": true, "stop_token_ids": bytes("!")}),
        )
        .await;
        let listed = &ends["choices"][0]["logprobs"]["content"];
        assert_eq!(listed.as_array().unwrap().len(), 2);
        assert!(
            content
                .iter()
                .all(|it| it["top_logprobs"].as_array().unwrap().len() == 2)
        );
        assert_eq!(content[2]["top_logprobs"][0]["token"], "!");
        let none = whole(server, &json!({"logprobs": true})).await;
        assert_eq!(
            none["choices"][0]["logprobs"]["content"][0]["top_logprobs"],
            json!([])
        );
    });
}

#[test]
fn special_tokens_in_messages_are_text() {
    serve_default(async |server| {
        let tokens = async |content: Value| {
            let messages = json!([{"role": "user", "content": content}]);
            let object = whole(server, &json!({"messages": messages})).await;
            object["usage"]["prompt_tokens"].as_u64().unwrap()
        };
        assert_eq!(tokens(json!("q")).await, 6);
        assert_eq!(tokens(json!("<|sep|>")).await, 5 + 7);
        let parts = json!([{"type": "text", "text": "<|se"}, {"type": "text", "text": "p|>"}]);
        // A newline is between parts.
        assert_eq!(tokens(parts).await, 5 + 8);
    });
}

#[test]
fn the_last_message_can_be_continued() {
    serve_default(async |server| {
        let messages =
            json!([{"role": "user", "content": "q"}, {"role": "assistant", "content": "ab "}]);
        let tokens = async |members: Value| {
            let mut members = members;
            members["messages"] = messages.clone();
            whole(server, &members).await["usage"]["prompt_tokens"].clone()
        };
        // <s> <|sep|> u q <|sep|> a a b, and what follows.
        assert_eq!(tokens(json!({"continue_final_message": true})).await, 8);
        assert_eq!(tokens(json!({"add_generation_prompt": false})).await, 9);
        // It is, unless the request or the switch says otherwise.
        assert_eq!(tokens(json!({})).await, 8);
        assert_eq!(tokens(json!({"add_generation_prompt": true})).await, 11);
        assert_eq!(tokens(json!({"continue_final_message": false})).await, 11);
        // Nothing is begun by a message without text, or with calls.
        let call = json!({"type": "function", "function": {"name": "f", "arguments": "{}"}});
        for (last, expected) in [
            (json!({"role": "assistant", "content": " "}), 9),
            (
                json!({"role": "assistant", "content": "ab", "tool_calls": [call]}),
                10,
            ),
            (json!({"role": "user", "content": "ab"}), 10),
        ] {
            let messages = json!([{"role": "user", "content": "q"}, last]);
            let object = whole(server, &json!({"messages": messages})).await;
            assert_eq!(object["usage"]["prompt_tokens"], expected, "{last}");
        }
    });
    for switches in [
        json!({"assistantPrefill": false}),
        json!({"profile": "vllm"}),
    ] {
        serve(switches, async |server| {
            let messages =
                json!([{"role": "user", "content": "q"}, {"role": "assistant", "content": "ab"}]);
            let object = whole(server, &json!({"messages": messages})).await;
            assert_eq!(object["usage"]["prompt_tokens"], 10);
        });
    }
}

/// The text that follows the content in the template may contain it.
#[test]
fn a_continued_message_ends_where_its_content_ends() {
    serve_default(async |server| {
        let template = "{% for m in messages %}{{ m.content | trim }} and more{% endfor %}";
        server.set_template(Some(template));
        let tokens = async |content: &str| {
            let messages = json!([{"role": "assistant", "content": content}]);
            whole(server, &json!({"messages": messages})).await["usage"]["prompt_tokens"].clone()
        };
        // One token of the start, and one per character.
        assert_eq!(tokens("m").await, 2);
        assert_eq!(tokens("and ").await, 4);
        server.set_template(Some("{{ messages | length }}{{ add_generation_prompt }}"));
        let messages = json!([{"role": "assistant", "content": "a"}]);
        // <s> 1 True
        let object = whole(server, &json!({"messages": messages})).await;
        assert_eq!(object["usage"]["prompt_tokens"], 6);
        let asked = json!({"messages": messages, "continue_final_message": true});
        let error = reply(server, &asked).await.error();
        let param = Some("continue_final_message".into());
        assert_eq!(error, (400, "invalid_value".into(), param));
    });
}

#[test]
fn llama_cpp_reports_timings() {
    let names = [
        "cache_n",
        "predicted_ms",
        "predicted_n",
        "predicted_per_second",
        "predicted_per_token_ms",
        "prompt_ms",
        "prompt_n",
        "prompt_per_second",
        "prompt_per_token_ms",
    ];
    let check = |timings: &Value, usage: &Value| {
        let mut given: Vec<_> = timings.as_object().unwrap().keys().collect();
        given.sort();
        assert_eq!(given, names);
        assert!(
            names
                .iter()
                .all(|name| timings[name].as_f64().unwrap() >= 0.0)
        );
        assert_eq!(timings["predicted_n"], usage["completion_tokens"]);
        let prompt = timings["prompt_n"].as_u64().unwrap() + timings["cache_n"].as_u64().unwrap();
        assert_eq!(prompt, usage["prompt_tokens"].as_u64().unwrap());
    };
    serve(json!({"profile": "llamacpp"}), async |server| {
        let members = json!({"n": 2, "temperature": 1, "max_tokens": 5});
        let object = whole(server, &members).await;
        check(&object["timings"], &object["usage"]);
        let mut members = members;
        members["stream_options"] = json!({"include_usage": true});
        let chunks = streamed(server, &members).await;
        let with: Vec<_> = chunks
            .iter()
            .filter(|it| it.get("timings").is_some())
            .collect();
        let [last, usage] = &chunks[chunks.len() - 2..] else {
            unreachable!()
        };
        assert_eq!(with, [last]);
        check(&last["timings"], &usage["usage"]);
        let object = server.ok(json!({})).await;
        check(&object["timings"], &object["usage"]);
        let chunks = server.stream(json!({})).await;
        assert!(chunks.last().unwrap().get("timings").is_some());
        assert_eq!(
            chunks
                .iter()
                .filter(|it| it.get("timings").is_some())
                .count(),
            1
        );
    });
    serve_default(async |server| {
        assert!(whole(server, &json!({})).await.get("timings").is_none());
        assert!(server.ok(json!({})).await.get("timings").is_none());
    });
}

#[test]
fn reasoning_is_apart_and_counted() {
    serve_default(async |server| {
        server.set_template(Some(HERMES));
        server.plan.say(bytes("<think>ab</think>cd"));
        let members = json!({"max_tokens": 40});
        let object = whole(server, &members).await;
        let message = &object["choices"][0]["message"];
        assert_eq!(message["reasoning_content"], "ab");
        assert_eq!(message["content"], "cd");
        let reasoning = &object["usage"]["completion_tokens_details"]["reasoning_tokens"];
        assert!(
            (2..18).contains(&reasoning.as_u64().unwrap()),
            "{reasoning}"
        );
        let chunks = streamed(server, &members).await;
        assert_eq!(choices_of(&chunks), choices_of_whole(&object));
    });
}

#[test]
fn calls_are_read_from_the_text() {
    serve_default(async |server| {
        server.set_template(Some(HERMES));
        server.plan.say(bytes(
            "<tool_call>{\"name\":\"f\",\"arguments\":{}}</tool_call>",
        ));
        let members = json!({"max_tokens": null, "tools": tools()});
        let object = whole(server, &members).await;
        let choices = choices_of_whole(&object);
        assert_eq!(choices[0]["finish_reason"], "tool_calls");
        let call = json!({"type": "function", "function": {"name": "f", "arguments": "{}"}});
        assert_eq!(choices[0]["message"]["tool_calls"], json!([call]));
        assert_eq!(choices[0]["message"]["content"], Value::Null);
        let chunks = streamed(server, &members).await;
        assert_eq!(choices_of(&chunks), choices);
        // Without tools, the same text is content.
        let object = whole(server, &json!({"max_tokens": null})).await;
        assert_eq!(object["choices"][0]["finish_reason"], "stop");
        assert!(object["choices"][0]["message"].get("tool_calls").is_none());
    });
}

#[test]
fn tools_reach_a_template_without_them_as_text() {
    serve_default(async |server| {
        let plain =
            "{% for message in messages %}[{{ message.role[0] }}]{{ message.content }}{% endfor %}";
        server.set_template(Some(plain));
        let prompt = async |mut members: Value| {
            members["model"] = "default".into();
            let headers = [("content-type", "application/json")];
            let request = request("POST", "/v1/apply-template", &headers, &members.to_string());
            let answer = server.send(request).await.json();
            answer["prompt"].as_str().unwrap().to_owned()
        };
        let user = json!({"role": "user", "content": "q"});
        let call = json!({"id": "1", "type": "function", "function": {"name": "f", "arguments": "{\"a\": 1}"}});
        let past = json!([user, {"role": "assistant", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "1", "content": "r"}]);
        let text = prompt(json!({"messages": past, "tools": tools()})).await;
        let system = text.strip_prefix("[s]").unwrap();
        assert!(
            system.contains("{\"name\": \"f\", \"parameters\": {\"type\": \"object\"}}"),
            "{text}"
        );
        let turns = "[u]q[a]<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": 1}}\n</tool_call>\
            [u]<tool_response>\nr\n</tool_response>";
        assert!(system.ends_with(turns), "{text}");
        // Without tools past calls stay.
        assert_eq!(prompt(json!({"messages": past})).await, turns);
        let chosen = json!({"messages": [user], "tools": tools(), "tool_choice": "none"});
        assert_eq!(prompt(chosen).await, "[u]q");
        let cards = server.get("/v1/models").await.json();
        assert_eq!(cards["data"][0]["tools"], "generic");
        server.set_template(Some(HERMES));
        let cards = server.get("/v1/models").await.json();
        assert_eq!(cards["data"][0]["tools"], "template");
        server.set_template(None);
        let cards = server.get("/v1/models").await.json();
        assert_eq!(cards["data"][0].get("tools"), None);
    });
}

#[test]
fn calls_of_the_generic_form_are_read() {
    serve_default(async |server| {
        // The text of the tools would not fit the context.
        let short = "x";
        server.set_template(Some(short));
        server.plan.say(bytes(
            "Hm. <tool_call>\n{\"name\": \"f\", \"arguments\": {}}\n</tool_call>",
        ));
        let object = whole(server, &json!({"max_tokens": null, "tools": tools()})).await;
        let message = &object["choices"][0]["message"];
        assert_eq!(message["content"], "Hm.", "{object}");
        assert_eq!(message["tool_calls"][0]["function"]["name"], "f");
        assert_eq!(message["tool_calls"][0]["function"]["arguments"], "{}");
    });
}

#[test]
fn a_message_of_the_generic_form_has_one_call_unless_more_are_requested() {
    serve_default(async |server| {
        // The tags are one token each, so that two calls fit the context.
        let control = ["<tool_call>", "</tool_call>", "<MID>"];
        server.set_template_with(Some("x"), control);
        let call = bytes("{\"name\":\"f\",\"arguments\":{}}");
        let call = [vec![PRE], call, vec![PRE + 1]].concat();
        server.plan.say([call.clone(), call].concat());
        for (choice, parallel, count) in [
            ("auto", Value::Null, 1),
            ("required", Value::Null, 1),
            ("required", true.into(), 2),
            ("required", false.into(), 1),
        ] {
            let members = json!({"max_tokens": null, "tools": tools(), "tool_choice": choice,
                "parallel_tool_calls": parallel});
            let object = whole(server, &members).await;
            let calls = &object["choices"][0]["message"]["tool_calls"];
            assert_eq!(calls.as_array().unwrap().len(), count, "{object}");
        }
        // A response says what holds.
        for (parallel, used) in [(Value::Null, false), (true.into(), true)] {
            let body = json!({"model": "default", "input": "q", "parallel_tool_calls": parallel});
            let headers = [("content-type", "application/json")];
            let request = request("POST", "/v1/responses", &headers, &body.to_string());
            let response = server.send(request).await.json();
            assert_eq!(response["parallel_tool_calls"], used, "{response}");
        }
    });
}

#[test]
fn arguments_follow_parameters_and_a_cut_call_is_a_call() {
    serve_default(async |server| {
        let control = ["<tool_call>", "</tool_call>", "<MID>"];
        server.set_template_with(Some(HERMES), control);
        let parameters =
            json!({"type": "object", "properties": {"a": {"enum": [12]}}, "required": ["a"]});
        let tool =
            json!([{"type": "function", "function": {"name": "f", "parameters": parameters}}]);
        // The text that the model would write is no valid call.
        let invalid = bytes("{\"name\":\"f\",\"arguments\":{\"a\":13}}");
        server
            .plan
            .say([vec![PRE], invalid, vec![PRE + 1]].concat());
        let of_chat = json!([{"type": "function", "function": {"name": "f"}}]);
        let of_responses = json!([{"type": "function", "name": "f"}]);
        for choice in [
            json!("required"),
            json!("auto"),
            json!({"type": "function", "function": {"name": "f"}}),
            json!({"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": of_chat}}),
            json!({"type": "allowed_tools", "mode": "required", "tools": of_responses}),
            json!({"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": of_chat}}),
        ] {
            let members = json!({"max_tokens": null, "tools": tool, "tool_choice": choice,
                "parallel_tool_calls": false});
            let object = whole(server, &members).await;
            let call = &object["choices"][0]["message"]["tool_calls"][0]["function"];
            let arguments: Value =
                serde_json::from_str(call["arguments"].as_str().unwrap()).unwrap();
            assert_eq!(arguments, json!({"a": 12}), "{object}");
        }
        for max_tokens in [2, 8, 12, 20, 28] {
            let members = json!({"max_tokens": max_tokens, "tools": tool, "tool_choice": "required",
                "parallel_tool_calls": false});
            let object = whole(server, &members).await;
            let choice = &choices_of_whole(&object)[0];
            assert_eq!(choice["finish_reason"], "length");
            assert_eq!(choice["message"]["content"], Value::Null, "{object}");
            let call = &choice["message"]["tool_calls"][0]["function"];
            assert_eq!(call["name"], "f");
            assert!(call["arguments"].is_string());
            let chunks = streamed(server, &members).await;
            assert_eq!(choices_of(&chunks), choices_of_whole(&object));
        }
    });
}

#[test]
fn invalid_parameters_are_refused_with_every_choice() {
    serve_default(async |server| {
        for choice in ["none", "auto", "required"] {
            let parameters = json!({"type": "object", "properties": {"a": {"type": "int"}}});
            let tool =
                json!([{"type": "function", "function": {"name": "f", "parameters": parameters}}]);
            let members = json!({"tools": tool, "tool_choice": choice});
            let error = reply(server, &members).await.error();
            assert_eq!(
                error,
                (400, "invalid_schema".into(), Some("tools".into())),
                "{choice}"
            );
        }
    });
}

#[test]
fn a_forced_call_may_be_in_special_tags() {
    serve_default(async |server| {
        let control = ["<tool_call>", "</tool_call>", "<MID>"];
        server.set_template_with(Some(HERMES), control);
        let members = json!({"max_tokens": null, "tools": tools(), "tool_choice": "required",
            "parallel_tool_calls": false, "logprobs": true, "seed": 1});
        server.plan.say(
            [
                vec![PRE],
                bytes("{\"name\":\"f\",\"arguments\":{}}"),
                vec![PRE + 1],
            ]
            .concat(),
        );
        let object = whole(server, &members).await;
        let choices = choices_of_whole(&object);
        assert_eq!(choices[0]["finish_reason"], "tool_calls", "{object}");
        let listed = choices[0]["logprobs"]["content"].as_array().unwrap();
        assert!(listed.iter().any(|token| token["token"] == "<tool_call>"));
        let message = &choices[0]["message"];
        assert_eq!(message["content"], Value::Null);
        assert_eq!(message["tool_calls"][0]["function"]["name"], "f");
        assert_eq!(choices_of(&streamed(server, &members).await), choices);
    });
}

#[test]
fn fields_of_vendors_hold() {
    serve_default(async |server| {
        let stop = pieces(" qu")[0];
        server
            .plan
            .say([bytes("xy"), vec![stop], bytes("c")].concat());
        let members = json!({"stop_token_ids": [stop]});
        let object = whole(server, &members).await;
        let choice = &object["choices"][0];
        assert_eq!(choice["message"]["content"], "xy");
        assert_eq!(choice["stop_reason"], stop);
        assert_eq!(
            choices_of(&streamed(server, &members).await),
            choices_of_whole(&object)
        );
        // Stop strings count in the text after the first tokens.
        server.plan.say(bytes("xxxxxx"));
        let members = json!({"stop": "x", "min_tokens": 3});
        let object = whole(server, &members).await;
        assert_eq!(object["choices"][0]["message"]["content"], "xxx");
        assert_eq!(
            choices_of(&streamed(server, &members).await),
            choices_of_whole(&object)
        );
        let members = json!({"guided_choice": ["the", "own"], "allowed_token_ids": bytes("own")});
        let object = whole(server, &members).await;
        assert_eq!(object["choices"][0]["message"]["content"], "own");
        let error = reply(server, &json!({"allowed_token_ids": [VOCAB]}))
            .await
            .error();
        let param = Some("allowed_token_ids".to_owned());
        assert_eq!(error, (400, "out_of_range".to_owned(), param));
    });
}

#[test]
fn templates_decide_and_refuse() {
    serve_default(async |server| {
        let error = async |template: Option<&str>, members: Value| {
            server.set_template(template);
            reply(server, &members).await.error()
        };
        let is = |code: &str, param: &str| (400, code.to_owned(), Some(param.to_owned()));
        let unsupported = is("unsupported_parameter", "messages");
        let invalid = is("invalid_value", "messages");
        assert_eq!(error(None, json!({})).await, unsupported);
        assert_eq!(error(Some("{% if %}"), json!({})).await, unsupported);
        assert_eq!(
            error(Some("{{ raise_exception('no') }}"), json!({})).await,
            invalid
        );
        assert_eq!(error(Some("{{ none + 'a' }}"), json!({})).await, invalid);
        let endless =
            "{% for i in range(9999) %}{% for j in range(9999) %}{% endfor %}{% endfor %}";
        assert_eq!(error(Some(endless), json!({})).await, invalid);
        let long = json!({"messages": [{"role": "user", "content": "x".repeat(100)}]});
        let exceeded = is("context_length_exceeded", "messages");
        assert_eq!(error(Some(TEMPLATE), long).await, exceeded);
    });
}

#[test]
fn the_template_sees_the_fields() {
    serve_default(async |server| {
        let tokens = async |template: &str, members: Value| {
            server.set_template(Some(template));
            whole(server, &members).await["usage"]["prompt_tokens"].clone()
        };
        // One token of the start, and one per character.
        let kwargs = json!({"chat_template_kwargs": {"x": "123"}});
        assert_eq!(tokens("{{ x }}", kwargs).await, 4);
        let effort = "{{ reasoning_effort }}{{ enable_thinking }}";
        assert_eq!(tokens(effort, json!({"reasoning_effort": "low"})).await, 4);
        assert_eq!(
            tokens(effort, json!({"reasoning_effort": "none"})).await,
            10
        );
        assert_eq!(tokens("{{ strftime_now('%Y') }}", json!({})).await, 5);
        let count = "{{ tools | length }}{{ 'none' if tools is none }}";
        assert_eq!(tokens(count, json!({"tools": tools()})).await, 2);
        let is_none = "{{ 'none' if tools is none }}";
        let chosen = json!({"tools": tools(), "tool_choice": "none"});
        assert_eq!(tokens(is_none, chosen).await, 5);
        let calls = json!([{"role": "assistant", "tool_calls": [
            {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{\"b\": [1]}"}}]}]);
        let arguments = "{{ messages[0].tool_calls[0].function.arguments.b[0] + 9 }}";
        assert_eq!(tokens(arguments, json!({"messages": calls})).await, 3);
        let developer = json!({"messages": [{"role": "developer", "content": "x"}]});
        assert_eq!(tokens("{{ messages[0].role }}", developer).await, 7);
    });
}

#[test]
fn the_switch_replaces_the_template() {
    serve(
        json!({"chatTemplate": "{{ messages[0].content * 3 }}"}),
        async |server| {
            for template in [None, Some(TEMPLATE)] {
                server.set_template(template);
                let object = whole(server, &json!({})).await;
                assert_eq!(object["usage"]["prompt_tokens"], 4);
            }
        },
    );
}

/// The events of a run from `position` on, each with the position after it.
async fn run(server: &Server, members: &Value, position: Option<String>) -> Vec<Positioned> {
    let mut members = members.clone();
    members["stream"] = json!(true);
    let request = Request {
        position,
        ..chat(&chat_body(&members))
    };
    server.events(request, usize::MAX).await
}

#[test]
fn a_stream_is_continued_after_any_event() {
    serve_default(async |server| {
        server.set_template(Some(HERMES));
        for (says, members) in [
            (None, json!({"temperature": 1, "n": 2, "logprobs": true})),
            (
                Some("<think>ab</think>cd"),
                json!({"max_tokens": 40, "stream_options": {"include_usage": true}}),
            ),
            (
                Some("xy12z"),
                json!({"echo": true, "stop_regex": "[0-9]z", "return_token_ids": true, "messages": [
                    {"role": "user", "content": "q"}, {"role": "assistant", "content": "b"}]}),
            ),
            (
                Some("<tool_call>{\"name\":\"f\",\"arguments\":{}}</tool_call>"),
                json!({"max_tokens": 60, "tools": tools()}),
            ),
        ] {
            if let Some(says) = says {
                server.plan.say(bytes(says));
            }
            let parsed = |events: &mut dyn Iterator<Item = &(Vec<u8>, Option<String>)>| {
                let body: Vec<u8> = events.flat_map(|(event, _)| event.clone()).collect();
                let reply = Reply {
                    status: 200,
                    headers: Vec::new(),
                    body,
                };
                let chunks = reply.chunks();
                let usage = chunks.iter().find(|chunk| chunk["choices"] == json!([]));
                let counts = usage.map(|chunk| chunk["usage"]["completion_tokens_details"].clone());
                (choices_of(&chunks), counts)
            };
            let all = run(server, &members, None).await;
            let undisturbed = parsed(&mut all.iter());
            for cut in 1..all.len() {
                let rest = run(server, &members, all[cut - 1].1.clone()).await;
                let joined = parsed(&mut all[..cut].iter().chain(&rest));
                assert_eq!(joined, undisturbed, "{members} cut after {cut} events");
            }
        }
    });
}

/// Asks `question`, and sends the answer back with a next message; returns the cached tokens of the second turn.
async fn second_turn(server: &Server, question: &str, stream: bool, members: &Value) -> u64 {
    let question = json!({"role": "user", "content": question});
    let mut members = members.clone();
    members["messages"] = json!([question]);
    let choices = match stream {
        false => choices_of_whole(&whole(server, &members).await),
        true => choices_of(&streamed(server, &members).await),
    };
    let mut message = choices[0]["message"].clone();
    message["role"] = json!("assistant");
    // The engine is idle now.
    for _ in 0..20 {
        yield_now().await;
    }
    assert_eq!(server.engine.active_generations(), 0);
    let next = match message.get("tool_calls") {
        None => json!({"role": "user", "content": "b"}),
        Some(_) => json!({"role": "tool", "tool_call_id": "c", "content": "b"}),
    };
    members["messages"] = json!([question, message, next]);
    members["max_tokens"] = json!(1);
    let usage = whole(server, &members).await["usage"].clone();
    let cached = &usage["prompt_tokens_details"]["cached_tokens"];
    cached.as_u64().unwrap()
}

#[test]
fn the_next_turn_is_prepared() {
    // The first prompt has 24 tokens, less than a page of 32.
    for (switches, expected) in [(json!({}), 32), (json!({"prepareNextTurn": false}), 0)] {
        serve(switches, async |server| {
            server.plan.say(bytes("abcdefghijkl"));
            for (question, stream) in [("1".repeat(20), false), ("2".repeat(20), true)] {
                let members = json!({"max_tokens": null});
                let cached = second_turn(server, &question, stream, &members).await;
                assert_eq!(cached, expected, "stream: {stream}");
            }
        });
    }
}

#[test]
fn the_results_of_calls_are_prepared() {
    serve_default(async |server| {
        let template = TEMPLATE.replace(
            "{{ message.content }}",
            "{{ message.content }}{% for call in message.tool_calls %}{{ call.function.name * 30 }}{% endfor %}",
        );
        let mark = "{# <tool_call> arguments #}";
        server.set_template(Some(&format!("{mark}{template}")));
        let text = r#"<tool_call>{"name":"f","arguments":{}}</tool_call>"#;
        server.plan.say(bytes(text));
        let members = json!({"max_tokens": null, "tools": tools()});
        assert_eq!(second_turn(server, "q", true, &members).await, 32);
    });
}

#[test]
fn nothing_is_prepared_for_several_answers() {
    serve_default(async |server| {
        server.plan.say(bytes("abcdefghijkl"));
        let members = json!({"max_tokens": null, "n": 2});
        let cached = second_turn(server, &"1".repeat(20), false, &members).await;
        assert_eq!(cached, 0);
    });
}
