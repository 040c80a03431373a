//! Fields of other routes, and those that no route supports (specification 4.6): every route refuses them by name, unless their
//! value changes nothing.

use serde_json::{Value, json};

use crate::fixture::*;

/// The routes of generated text, with a body.
fn text_routes() -> [(&'static str, Value); 5] {
    let messages = json!([{"role": "user", "content": "q"}]);
    [
        ("completions", json!({"prompt": "q"})),
        ("chat/completions", json!({"messages": messages})),
        ("responses", json!({"input": "q"})),
        ("responses/input_tokens", json!({"input": "q"})),
        ("messages", json!({"messages": messages, "max_tokens": 2})),
    ]
}

/// The routes that answer without generating text, and compaction, with a body.
fn other_routes() -> [(&'static str, Value); 4] {
    let messages = json!([{"role": "user", "content": "q"}]);
    [
        ("tokenize", json!({"messages": messages})),
        ("apply-template", json!({"messages": messages})),
        ("messages/count_tokens", json!({"messages": messages})),
        ("responses/compact", json!({"input": "q"})),
    ]
}

async fn post(server: &Server, route: &str, body: &Value, members: &Value) -> Reply {
    let mut body = body.clone();
    body["model"] = "default".into();
    let members = members.as_object().unwrap().clone();
    body.as_object_mut().unwrap().extend(members);
    let headers = [("content-type", "application/json")];
    let url = format!("/v1/{route}");
    server
        .send(request("POST", &url, &headers, &body.to_string()))
        .await
}

/// Asserts that the field is refused by its name.
async fn is_refused(server: &Server, route: &str, body: &Value, name: &str, value: &Value) {
    let reply = post(server, route, body, &json!({name: value})).await;
    let text = reply.text();
    let says = format!("{name} is not supported: ");
    assert!(
        reply.status == 400 && text.contains(&says),
        "{route} {name}: {value}: {text}"
    );
    if !route.starts_with("messages") {
        let error = reply.error();
        assert_eq!(
            error,
            (400, "unsupported_parameter".into(), Some(name.into())),
            "{route}"
        );
    }
}

/// Fields, a value that changes the answer, those that change nothing besides null, and the routes that have the field.
fn fields() -> Vec<(&'static str, Value, Vec<Value>, &'static [&'static str])> {
    const COMPLETIONS: &[&str] = &["completions"];
    const CHAT: &[&str] = &["chat/completions"];
    const BOTH: &[&str] = &["completions", "chat/completions"];
    const RESPONSES: &[&str] = &["responses", "responses/input_tokens"];
    const MESSAGES: &[&str] = &["messages"];
    vec![
        ("prompt", json!("x"), vec![], COMPLETIONS),
        (
            "messages",
            json!([{"role": "user", "content": "q"}]),
            vec![],
            &["chat/completions", "messages"],
        ),
        ("input", json!("x"), vec![], RESPONSES),
        ("instructions", json!("x"), vec![], RESPONSES),
        ("system", json!("x"), vec![], MESSAGES),
        ("suffix", json!("x"), vec![json!("")], COMPLETIONS),
        ("suffix_mode", json!("append"), vec![], COMPLETIONS),
        (
            "images",
            json!(["data:image/png;base64,AAAA"]),
            vec![json!([])],
            COMPLETIONS,
        ),
        (
            "add_special_tokens",
            json!(true),
            vec![json!(false)],
            COMPLETIONS,
        ),
        ("truncate_prompt_tokens", json!(2), vec![], BOTH),
        ("truncation_side", json!("left"), vec![], BOTH),
        (
            "truncation",
            json!("auto"),
            vec![json!("disabled")],
            RESPONSES,
        ),
        (
            "add_generation_prompt",
            json!(false),
            vec![json!(true)],
            CHAT,
        ),
        (
            "continue_final_message",
            json!(true),
            vec![json!(false)],
            CHAT,
        ),
        ("reasoning_effort", json!("low"), vec![], BOTH),
        ("reasoning_history", json!("disabled"), vec![], COMPLETIONS),
        (
            "reasoning",
            json!({"effort": "low"}),
            vec![json!({})],
            &["chat/completions", "responses", "responses/input_tokens"],
        ),
        (
            "thinking",
            json!({"type": "disabled"}),
            vec![],
            &["completions", "chat/completions", "messages"],
        ),
        ("enable_thinking", json!(true), vec![], BOTH),
        ("include_reasoning", json!(false), vec![json!(true)], CHAT),
        ("reasoning_format", json!("hidden"), vec![], CHAT),
        ("thinking_token_budget", json!(1), vec![], CHAT),
        ("verbosity", json!("low"), vec![json!("medium")], BOTH),
        ("functions", json!([{"name": "f"}]), vec![json!([])], CHAT),
        ("function_call", json!("auto"), vec![json!("none")], CHAT),
        (
            "parallel_tool_calls",
            json!(false),
            vec![json!(true)],
            &["chat/completions", "responses", "responses/input_tokens"],
        ),
        ("conversation", json!("conv_1"), vec![], &[]),
        ("previous_response_id", json!("resp_1"), vec![], &[]),
        (
            "context_management",
            json!([{"type": "compaction"}]),
            vec![json!([])],
            &[],
        ),
        ("n", json!(2), vec![json!(1)], BOTH),
        ("best_of", json!(2), vec![json!(1)], BOTH),
        ("echo", json!(true), vec![json!(false)], BOTH),
        ("echo_last", json!(1), vec![json!(0)], COMPLETIONS),
        ("raw_output", json!(true), vec![json!(false)], COMPLETIONS),
        (
            "perf_metrics_in_response",
            json!(true),
            vec![json!(false)],
            COMPLETIONS,
        ),
        ("logprobs", json!(true), vec![json!(false)], BOTH),
        (
            "top_logprobs",
            json!(1),
            vec![json!(0)],
            &[
                "completions",
                "chat/completions",
                "responses",
                "responses/input_tokens",
            ],
        ),
        (
            "logprobs_mode",
            json!("raw_logits"),
            vec![],
            &[
                "completions",
                "chat/completions",
                "responses",
                "responses/input_tokens",
            ],
        ),
        ("prompt_logprobs", json!(1), vec![], BOTH),
        ("return_token_ids", json!(true), vec![json!(false)], BOTH),
        (
            "return_tokens_as_token_ids",
            json!(true),
            vec![json!(false)],
            BOTH,
        ),
        (
            "response_format",
            json!({"type": "json_object"}),
            vec![json!({"type": "text"})],
            BOTH,
        ),
        (
            "text",
            json!({"verbosity": "low"}),
            vec![json!({})],
            RESPONSES,
        ),
        (
            "output_config",
            json!({"effort": "low"}),
            vec![json!({})],
            MESSAGES,
        ),
        (
            "output_format",
            json!({"type": "json_schema", "schema": {}}),
            vec![],
            MESSAGES,
        ),
        ("max_output_tokens", json!(2), vec![], RESPONSES),
        ("stop_sequences", json!(["x"]), vec![json!([])], MESSAGES),
        (
            "include",
            json!(["message.output_text.logprobs"]),
            vec![json!([])],
            RESPONSES,
        ),
        ("max_tool_calls", json!(1), vec![], RESPONSES),
        ("background", json!(true), vec![json!(false)], &[]),
        (
            "modalities",
            json!(["text", "audio"]),
            vec![json!(["text"])],
            &[],
        ),
        (
            "audio",
            json!({"voice": "alloy", "format": "wav"}),
            vec![],
            &[],
        ),
        ("web_search_options", json!({}), vec![], &[]),
        ("moderation", json!({"model": "m"}), vec![json!(false)], &[]),
        ("container", json!("c"), vec![], &[]),
        ("mcp_servers", json!([{"name": "m"}]), vec![json!([])], &[]),
        ("use_beam_search", json!(true), vec![json!(false)], &[]),
        ("logits_processors", json!(["p"]), vec![json!([])], &[]),
    ]
}

#[test]
fn every_route_of_text_refuses_the_fields_of_the_others() {
    serve_default(async |server| {
        for (route, body) in text_routes() {
            for (name, value, neutral, routes) in fields() {
                if routes.contains(&route) {
                    continue;
                }
                is_refused(server, route, &body, name, &value).await;
                for value in neutral.into_iter().chain([Value::Null]) {
                    server.plan.say(bytes("ab"));
                    let reply = post(server, route, &body, &json!({name: value})).await;
                    assert_eq!(
                        reply.status,
                        200,
                        "{route} {name}: {value}: {}",
                        reply.text()
                    );
                }
            }
        }
        assert_eq!(*server.host.warnings.borrow(), Vec::<String>::new());
    });
}

#[test]
fn strict_profiles_know_refused_fields() {
    serve(json!({"unknownFields": "error"}), async |server| {
        for (route, body) in text_routes() {
            is_refused(server, route, &body, "audio", &json!({})).await;
            let neutral = json!({"modalities": ["text"], "stop_sequences": []});
            assert_eq!(
                post(server, route, &body, &neutral).await.status,
                200,
                "{route}"
            );
        }
    });
}

#[test]
fn routes_of_prompts_and_compaction_refuse_what_would_change_their_answer() {
    const TOKENIZE: &[&str] = &[
        "suffix",
        "images",
        "input",
        "instructions",
        "system",
        "truncate_prompt_tokens",
    ];
    const COUNT: &[&str] = &[
        "prompt",
        "input",
        "instructions",
        "verbosity",
        "functions",
        "parallel_tool_calls",
        "response_format",
    ];
    const COMPACT: &[&str] = &[
        "messages",
        "system",
        "store",
        "background",
        "previous_response_id",
        "context_management",
        "stream",
        "max_output_tokens",
        "max_tokens",
        "temperature",
        "stop",
        "seed",
        "grammar",
        "n",
        "response_format",
        "truncation",
    ];
    serve_default(async |server| {
        let all = fields();
        for (route, body) in other_routes() {
            let refused = match route {
                "messages/count_tokens" => COUNT,
                "responses/compact" => COMPACT,
                _ => TOKENIZE,
            };
            for name in refused {
                let listed = all.iter().find(|(listed, ..)| listed == name);
                let value = match (*name, listed) {
                    (_, Some((_, value, ..))) => value.clone(),
                    ("store" | "stream", _) => json!(true),
                    ("stop" | "grammar", _) => json!("x"),
                    _ => json!(0),
                };
                is_refused(server, route, &body, name, &value).await;
            }
        }
        // Programs send the fields of a turn along.
        server.plan.say(bytes("ab"));
        server.set_template(Some("{{ messages[0].content[:6] }}"));
        let turn = json!({"tools": [{"type": "function", "name": "f"}], "tool_choice": "auto", "parallel_tool_calls": true,
            "text": {"verbosity": "low"}, "reasoning": {"effort": "low"}, "include": ["reasoning.encrypted_content"],
            "store": false, "stream": false, "instructions": "Be brief."});
        let reply = post(server, "responses/compact", &json!({"input": "q"}), &turn).await;
        assert_eq!(reply.status, 200, "{}", reply.text());
        // What only changes an answer does not change a prompt.
        let chat = json!({"temperature": 0, "response_format": {"type": "json_object"}, "n": 2, "prompt": null});
        let (route, body) = &other_routes()[1];
        assert_eq!(post(server, route, body, &chat).await.status, 200);
    });
}

#[test]
fn templates_of_every_route_know_the_verbosity() {
    serve_default(async |server| {
        server.set_template(Some("{{ verbosity }}"));
        let (_, body) = &other_routes()[1];
        let rendered = post(server, "apply-template", body, &json!({"verbosity": "low"})).await;
        assert_eq!(rendered.json()["prompt"], "low");
        let tokens = post(server, "tokenize", body, &json!({"verbosity": "high"})).await;
        assert_eq!(tokens.json()["count"], server.ids("high").len());
        let error = post(server, "tokenize", body, &json!({"verbosity": "loud"}))
            .await
            .error();
        assert_eq!(
            error,
            (400, "invalid_value".into(), Some("verbosity".into()))
        );
    });
}
