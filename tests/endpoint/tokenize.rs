//! `POST /tokenize`, `/detokenize` and `/apply-template` (specification 21): they agree with what completions and chat
//! do with the same prompts.

use serde_json::{Value, json};

use crate::documentation::examples;
use crate::embeddings;
use crate::fixture::*;

async fn send(server: &Server, route: &str, mut members: Value) -> Reply {
    let object = members.as_object_mut().unwrap();
    object.entry("model").or_insert(json!("default"));
    let request = inpage::api::Request {
        url: format!("/v1/{route}"),
        ..completion(&members.to_string())
    };
    server.send(request).await
}

async fn ok(server: &Server, route: &str, members: Value) -> Value {
    let shown = members.to_string();
    let reply = send(server, route, members).await;
    assert_eq!(reply.status, 200, "{route} {shown}: {}", reply.text());
    reply.json()
}

async fn fails(server: &Server, route: &str, members: Value, code: &str, param: &str) {
    let shown = members.to_string();
    let error = send(server, route, members).await.error();
    let expected = (400, code.to_owned(), Some(param.to_owned()));
    assert_eq!(error, expected, "{route} {shown}");
}

async fn tokens(server: &Server, members: Value) -> Vec<u32> {
    let answer = ok(server, "tokenize", members).await;
    let ids: Vec<u32> = serde_json::from_value(answer["tokens"].clone()).unwrap();
    assert_eq!(answer["count"], ids.len());
    ids
}

#[test]
fn the_ids_are_those_that_completions_give_the_model() {
    serve(json!({"mixedPrompts": true}), async |server| {
        for prompt in [
            json!("The quick brown fox"),
            json!(""),
            json!(" "),
            json!("é😀"),
            // Texts of special tokens are those tokens.
            json!("<s>a<|sep|>b</s>"),
            json!([5, 6, 7]),
            json!(["a text"]),
            json!([BOS, "a", SEP, "b"]),
        ] {
            for add_special_tokens in [json!(null), json!(true), json!(false)] {
                let members = json!({
                    "prompt": prompt, "add_special_tokens": add_special_tokens,
                    "return_token_ids": true, "max_tokens": 1,
                });
                let answer = server.ok(members.clone()).await;
                let ids = tokens(server, members).await;
                assert_eq!(
                    answer["choices"][0]["prompt_token_ids"],
                    json!(ids),
                    "{prompt}"
                );
                assert_eq!(answer["usage"]["prompt_tokens"], ids.len(), "{prompt}");
            }
        }
        assert_eq!(
            tokens(server, json!({"prompt": "<|sep|>"})).await,
            [BOS, SEP]
        );
        assert_eq!(tokens(server, json!({"prompt": ""})).await, [BOS]);
    });
}

#[test]
fn the_ids_of_messages_are_those_that_chat_gives_the_model() {
    serve_default(async |server| {
        let user = json!({"role": "user", "content": "quick <|sep|> é"});
        let assistant = json!({"role": "assistant", "content": "own"});
        for members in [
            json!({"messages": [user]}),
            json!({"messages": [user, assistant, user]}),
            json!({"messages": [user], "add_generation_prompt": false}),
            json!({"messages": [user, assistant], "continue_final_message": true}),
            json!({"messages": [user], "add_special_tokens": false}),
        ] {
            let ids = tokens(server, members.clone()).await;
            let mut body = members.clone();
            let more = json!({"model": "default", "max_tokens": 1});
            body.as_object_mut()
                .unwrap()
                .extend(more.as_object().unwrap().clone());
            body.as_object_mut().unwrap().remove("add_special_tokens");
            let answer = server.send(chat(&body.to_string())).await.json();
            assert_eq!(answer["usage"]["prompt_tokens"], ids.len(), "{members}");
        }
        let ids = tokens(server, json!({"messages": [user]})).await;
        // The template does not write the start-of-text token. The user's "<|sep|>" is text, the template's is not.
        let content = pieces("uquick <|sep|> é");
        assert_eq!(
            ids,
            [vec![BOS, SEP], content, vec![SEP], pieces("a")].concat()
        );
    });
}

#[test]
fn tools_and_variables_reach_the_template() {
    serve_default(async |server| {
        let template =
            "{% if tools %}{{ tools|length }}{% endif %}{{ mood }}{{ messages[0].content }}";
        server.set_template(Some(template));
        let tool = |name: &str| json!({"type": "function", "function": {"name": name}});
        let messages = json!([{"role": "user", "content": "q"}]);
        let rendered = async |mut members: Value| {
            members["messages"] = messages.clone();
            ok(server, "apply-template", members).await["prompt"].clone()
        };
        assert_eq!(rendered(json!({})).await, "q");
        assert_eq!(
            rendered(json!({"tools": [tool("a"), tool("b")]})).await,
            "2q"
        );
        let none = json!({"tools": [tool("a")], "tool_choice": "none"});
        assert_eq!(rendered(none).await, "q");
        let function = json!([{"name": "a"}]);
        for (choice, expected) in [
            (json!(null), "1q"),
            (json!({"name": "a"}), "1q"),
            (json!("none"), "q"),
        ] {
            let older = json!({"functions": function, "function_call": choice});
            assert_eq!(rendered(older).await, expected);
        }
        let variables = json!({"chat_template_kwargs": {"mood": "so "}});
        assert_eq!(rendered(variables).await, "so q");
        for members in [
            json!({"tools": [tool("a")]}),
            json!({"functions": function}),
        ] {
            let mut members = members;
            members["messages"] = messages.clone();
            assert_eq!(
                tokens(server, members).await,
                [vec![BOS], pieces("1q")].concat()
            );
        }
        for route in ["tokenize", "apply-template"] {
            let both = json!({"messages": messages, "functions": function, "tools": [tool("a")]});
            fails(server, route, both, "conflicting_parameters", "functions").await;
            let wrong = json!({"messages": messages, "functions": [{}]});
            fails(server, route, wrong, "invalid_value", "functions").await;
        }
    });
}

#[test]
fn texts_of_tokens() {
    serve_default(async |server| {
        let ask = json!({"prompt": "aé", "return_token_strs": true});
        let answer = ok(server, "tokenize", ask).await;
        let ids = [vec![BOS], bytes("aé")].concat();
        let texts = json!(["<s>", "a", "bytes:\\xc3", "bytes:\\xa9"]);
        assert_eq!(
            answer,
            json!({"count": 4, "max_model_len": CONTEXT, "tokens": ids, "token_strs": texts})
        );
        let ask = json!({"content": "aé", "add_special": false, "with_pieces": true});
        let answer = ok(server, "tokenize", ask).await;
        let piece = |index: usize, piece: Value| json!({"id": ids[index], "piece": piece});
        let pieces = [
            piece(1, json!("a")),
            piece(2, json!([0xc3])),
            piece(3, json!([0xa9])),
        ];
        assert_eq!(
            answer,
            json!({"count": 3, "max_model_len": CONTEXT, "tokens": pieces, "token_strs": null})
        );
        let plain = ok(server, "tokenize", json!({"content": "aé"})).await;
        assert_eq!(
            (&plain["tokens"], &plain["token_strs"]),
            (&json!(ids), &json!(null))
        );
    });
}

#[test]
fn detokenized_ids_are_the_text_that_echo_returns() {
    serve_default(async |server| {
        for ids in [
            server.ids("The quick brown fox"),
            // A character's first bytes, alone and before another character.
            bytes("é")[..1].to_vec(),
            [&bytes("😀")[..3], &bytes("a")].concat(),
            [&bytes("😀")[..2], &[SEP][..], &bytes("😀")[2..]].concat(),
            vec![BOS, SEP, EOS],
        ] {
            let echo = json!({"prompt": ids, "echo": true, "max_tokens": 0});
            let echoed = server.text(echo).await;
            let answer = ok(server, "detokenize", json!({"tokens": ids})).await;
            let expected = json!({"prompt": echoed, "content": echoed});
            assert_eq!(answer, expected, "{ids:?}");
        }
        let text = async |members| ok(server, "detokenize", members).await["prompt"].clone();
        assert_eq!(text(json!({"tokens": bytes("é")[..1]})).await, "\u{fffd}");
        assert_eq!(text(json!({"tokens": []})).await, "");
        let ids = server.ids("a<|sep|>b");
        assert_eq!(text(json!({"tokens": ids})).await, "<s>a<|sep|>b");
        let skip = json!({"tokens": ids, "skip_special_tokens": true});
        assert_eq!(text(skip).await, "ab");
    });
}

#[test]
fn a_text_may_exceed_the_context_within_bounds() {
    serve_default(async |server| {
        let long = "x".repeat(4 * CONTEXT);
        let ids = tokens(server, json!({"prompt": long})).await;
        assert_eq!(ids.len(), 4 * CONTEXT + 1);
        let messages = json!([{"role": "user", "content": long}]);
        assert!(tokens(server, json!({"messages": messages})).await.len() > 4 * CONTEXT);
        let mebibyte = "x".repeat(1 << 20);
        assert_eq!(
            tokens(server, json!({"prompt": mebibyte})).await.len(),
            (1 << 20) + 1
        );
        let more = format!("{mebibyte}x");
        let code = "context_length_exceeded";
        fails(server, "tokenize", json!({"prompt": more}), code, "prompt").await;
        fails(
            server,
            "tokenize",
            json!({"content": more}),
            code,
            "content",
        )
        .await;
        let messages = json!([{"role": "user", "content": more}]);
        fails(
            server,
            "tokenize",
            json!({"messages": messages}),
            code,
            "messages",
        )
        .await;
        let most = vec![5; 1 << 18];
        ok(server, "detokenize", json!({"tokens": most})).await;
        let more = vec![5; (1 << 18) + 1];
        fails(
            server,
            "detokenize",
            json!({"tokens": more}),
            "out_of_range",
            "tokens",
        )
        .await;
    });
}

#[test]
fn parts_of_a_mixed_prompt_have_the_bounds_of_a_text() {
    serve(json!({"mixedPrompts": true}), async |server| {
        let mixed = |bytes: usize| json!({"prompt": [SEP, "x".repeat(bytes)]});
        assert_eq!(tokens(server, mixed(1 << 17)).await.len(), (1 << 17) + 1);
        let code = "context_length_exceeded";
        fails(server, "tokenize", mixed((1 << 20) + 1), code, "prompt").await;
    });
}

#[test]
fn wrong_requests_are_refused() {
    serve_default(async |server| {
        let messages = json!([{"role": "user", "content": "q"}]);
        for (members, code, param) in [
            (json!({}), "missing_required_parameter", "prompt"),
            (
                json!({"prompt": null}),
                "missing_required_parameter",
                "prompt",
            ),
            (json!({"prompt": 3}), "invalid_type", "prompt"),
            (json!({"prompt": ["a", "b"]}), "out_of_range", "prompt"),
            (json!({"prompt": [VOCAB]}), "out_of_range", "prompt"),
            (json!({"prompt": [-1]}), "out_of_range", "prompt"),
            (json!({"prompt": []}), "invalid_value", "prompt"),
            (json!({"prompt": ["a", 5]}), "invalid_value", "prompt"),
            (json!({"content": 3}), "invalid_type", "content"),
            (json!({"content": ["a"]}), "invalid_type", "content"),
            (
                json!({"prompt": "a", "content": "a"}),
                "conflicting_parameters",
                "content",
            ),
            (
                json!({"prompt": "a", "messages": messages}),
                "conflicting_parameters",
                "messages",
            ),
            (
                json!({"content": "a", "messages": messages}),
                "conflicting_parameters",
                "messages",
            ),
            (json!({"messages": []}), "invalid_value", "messages"),
            (json!({"messages": "a"}), "invalid_type", "messages"),
            (
                json!({"messages": messages, "add_special_tokens": true}),
                "unsupported_parameter",
                "add_special_tokens",
            ),
            (
                json!({"prompt": "a", "add_special_tokens": true, "add_special": false}),
                "conflicting_parameters",
                "add_special",
            ),
            (
                json!({"prompt": "a", "parse_special": false}),
                "unsupported_parameter",
                "parse_special",
            ),
            (
                json!({"prompt": "a", "return_token_strs": 1}),
                "invalid_type",
                "return_token_strs",
            ),
            (
                json!({"prompt": "a", "with_pieces": "x"}),
                "invalid_type",
                "with_pieces",
            ),
            (json!({"prompt": "a", "user": 1}), "invalid_type", "user"),
        ] {
            fails(server, "tokenize", members, code, param).await;
        }
        ok(
            server,
            "tokenize",
            json!({"prompt": null, "messages": messages}),
        )
        .await;
        ok(
            server,
            "tokenize",
            json!({"prompt": "a", "parse_special": true}),
        )
        .await;
        for (given, code) in [
            (json!(null), "missing_required_parameter"),
            (json!("a"), "invalid_value"),
            (json!(["a"]), "invalid_value"),
            (json!([1.5]), "out_of_range"),
            (json!([VOCAB]), "out_of_range"),
            (json!({}), "invalid_type"),
        ] {
            fails(
                server,
                "detokenize",
                json!({"tokens": given}),
                code,
                "tokens",
            )
            .await;
        }
        let code = "missing_required_parameter";
        fails(server, "detokenize", json!({}), code, "tokens").await;
        fails(server, "apply-template", json!({}), code, "messages").await;
        let both = json!({
            "messages": messages, "add_generation_prompt": true, "continue_final_message": true,
        });
        let code = "conflicting_parameters";
        fails(
            server,
            "apply-template",
            both,
            code,
            "continue_final_message",
        )
        .await;
        server.set_template(None);
        for route in ["tokenize", "apply-template"] {
            let code = "unsupported_parameter";
            fails(
                server,
                route,
                json!({"messages": messages}),
                code,
                "messages",
            )
            .await;
        }
        let other = send(server, "tokenize", json!({"model": "x", "prompt": "a"})).await;
        assert_eq!(other.error().1, "model_not_found");
    });
}

#[test]
fn unknown_fields_follow_the_switch() {
    serve(json!({"unknownFields": "error"}), async |server| {
        let messages = json!([{"role": "user", "content": "q"}]);
        for (route, members) in [
            ("tokenize", json!({"prompt": "a", "nonsense": 1})),
            ("detokenize", json!({"tokens": [5], "nonsense": 1})),
            (
                "apply-template",
                json!({"messages": messages, "nonsense": 1}),
            ),
        ] {
            fails(server, route, members, "unknown_parameter", "nonsense").await;
        }
        let both = json!({"messages": messages, "prompt": "a"});
        fails(
            server,
            "apply-template",
            both,
            "unsupported_parameter",
            "prompt",
        )
        .await;
    });
}

/// Special-token texts of messages look like special tokens in the text, because a text has no marks.
#[test]
fn the_template_is_rendered_without_marks() {
    serve_default(async |server| {
        let messages = json!([{"role": "user", "content": "a<|sep|>b"}]);
        let answer = ok(server, "apply-template", json!({"messages": messages})).await;
        assert_eq!(answer, json!({"prompt": "<|sep|>ua<|sep|>b<|sep|>a"}));
    });
}

/// No step of the model is needed, so a queue that is full does not matter.
#[test]
fn a_full_queue_does_not_matter() {
    serve(json!({"maxQueue": 0}), async |server| {
        server.plan.held.set(true);
        tokens(server, json!({"prompt": "a"})).await;
        ok(server, "detokenize", json!({"tokens": [5]})).await;
    });
}

#[test]
fn models_that_embed_have_tokens_too() {
    embeddings::serve(json!({}), async |server| {
        let text = "a quick";
        let answer = server.ok(json!({"input": text})).await;
        for model in ["default", embeddings::EMBEDDER] {
            let ask = json!({"model": model, "prompt": text});
            let list = server.send("/v1/tokenize", ask).await.json();
            assert_eq!(list["count"], answer["usage"]["prompt_tokens"]);
            let ask = json!({"model": model, "tokens": list["tokens"]});
            let back = server.send("/v1/detokenize", ask).await.json();
            assert_eq!(back["prompt"], "<s>a quick");
        }
    });
}

#[test]
fn every_example_of_the_page_gets_the_promised_response() {
    serve_default(async |server| {
        for route in ["tokenize", "detokenize", "apply-template"] {
            let examples = examples(&format!("{route} "));
            assert!(
                examples.len() >= 2,
                "{} examples of {route}",
                examples.len()
            );
            for (line, code, body) in &examples {
                let body: Value = serde_json::from_str(body).unwrap();
                let reply = send(server, route, body).await;
                match code {
                    None => assert_eq!(reply.status, 200, "line {line}: {}", reply.text()),
                    Some(code) => assert_eq!(&reply.error().1, code, "line {line}"),
                }
            }
        }
    });
}
