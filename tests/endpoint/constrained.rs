//! Constraints from the request to the engine, and tool calls in responses (specification 9; cases
//! 101, 102 and 105 to 110). The meaning of grammars is tested in `src/grammar`.

use serde_json::{Value, json};

use crate::fixture::*;

#[test]
fn case_101_a_constraint_holds() {
    serve_default(async |server| {
        let members = json!({"grammar": {"type": "regex", "value": "example"}, "max_tokens": 30});
        let object = server.ok(members.clone()).await;
        assert_eq!((text_of(&object), finish_of(&object)), ("example", "stop"));
        assert_eq!(object["choices"][0]["stop_reason"], Value::Null);
        assert_eq!(
            joined_choices(&server.stream(members).await),
            choices(&object)
        );
        // The constraint applies neither to echo nor to suffix.
        let members = json!({
            "grammar": {"type": "regex", "value": "example"}, "max_tokens": 30, "echo": true,
            "suffix": "!",
        });
        assert_eq!(server.text(members).await, format!("{PROMPT}example!"));
    });
}

#[test]
fn a_constraint_that_is_complete_with_the_last_token_stops() {
    serve_default(async |server| {
        for (max_tokens, finish) in [(3, "stop"), (2, "length")] {
            let members = json!({
                "grammar": {"type": "regex", "value": "xyz"}, "max_tokens": max_tokens,
            });
            let object = server.ok(members.clone()).await;
            assert_eq!(text_of(&object), &"xyz"[..max_tokens]);
            assert_eq!(finish_of(&object), finish);
            let chunks = server.stream(members).await;
            assert_eq!(joined_choices(&chunks), choices(&object));
            assert_eq!(
                text_of(chunks.last().unwrap()),
                &"xyz"[max_tokens - 1..max_tokens]
            );
        }
    });
}

#[test]
fn case_102_each_candidate_has_its_own_state() {
    serve_default(async |server| {
        let members = json!({
            "prompt": ["a", "b"], "n": 2, "temperature": 1.5, "max_tokens": 30,
            "grammar": {"type": "regex", "value": "[0-9]{3}-[0-9]{4}"},
        });
        let object = server.ok(members).await;
        let found = texts(&object);
        for text in &found {
            let (first, second) = text.split_once('-').unwrap();
            assert!((first.len(), second.len()) == (3, 4), "{text}");
            assert!(
                text.bytes()
                    .all(|byte| byte.is_ascii_digit() || byte == b'-')
            );
        }
        assert!(found.iter().any(|text| *text != found[0]));
    });
}

#[test]
fn a_grammar_may_limit_the_tokens() {
    serve_default(async |server| {
        let value = json!({"grammars": [{"lark_grammar": "start: /[a-z]+/"}], "max_tokens": 3});
        let members = json!({"grammar": {"type": "llguidance", "value": value}, "max_tokens": 9});
        let object = server.ok(members.clone()).await;
        assert_eq!(object["usage"]["completion_tokens"], 3);
        assert_eq!(finish_of(&object), "length");
        let chunks = server.stream(members).await;
        assert_eq!(text_of(chunks.last().unwrap()).len(), 1);
    });
}

#[test]
fn a_grammar_sets_temperatures_in_place_of_the_requests() {
    serve_default(async |server| {
        let text = "start: cold warm\ncold[temperature=0.0]: /[a-z]{6}/\n\
            warm[temperature=1.8]: /[a-z]{12}/";
        for grammar in [
            json!({"grammar": {"type": "lark", "value": text}}),
            json!({"grammar": {"type": "llguidance", "value": {"grammars": [{"lark_grammar": text}]}}}),
            json!({"guided_grammar": text}),
        ] {
            for temperature in [0.0, 1.8] {
                let mut members = grammar.clone();
                members["temperature"] = json!(temperature);
                members["n"] = json!(4);
                members["max_tokens"] = json!(40);
                let object = server.ok(members).await;
                let found = texts(&object);
                assert!(found.iter().all(|text| text.len() == 18), "{found:?}");
                assert!(found.iter().all(|text| text[..6] == found[0][..6]));
                assert!(found.iter().any(|text| text[6..] != found[0][6..]));
            }
        }
    });
}

#[test]
fn case_107_invalid_grammars_are_refused_before_the_head() {
    serve_default(async |server| {
        server.plan.held.set(true);
        let strict = json!({"type": "function", "function": {
            "name": "f", "strict": true,
            "parameters": {"type": "object", "properties": {"a": {"type": "nonsense"}}},
        }});
        for (members, code, param) in [
            (
                json!({"grammar": {"type": "regex", "value": "("}}),
                "invalid_grammar",
                "grammar",
            ),
            (
                json!({"grammar": {"type": "lark", "value": "x: \"a\""}}),
                "invalid_grammar",
                "grammar",
            ),
            (
                json!({"grammar": {"type": "json_schema", "value": {"type": "nonsense"}}}),
                "invalid_grammar",
                "grammar",
            ),
            (
                json!({"response_format": {"type": "json_schema", "json_schema": {"type": "nonsense"}}}),
                "invalid_schema",
                "response_format",
            ),
            (
                json!({"tools": [strict], "tool_choice": "required"}),
                "invalid_schema",
                "tools",
            ),
        ] {
            for stream in [false, true] {
                let mut members = members.clone();
                members["stream"] = json!(stream);
                let error = server.complete(members).await.error();
                assert_eq!(error, (400, code.into(), Some(param.into())));
            }
        }
        // The context is checked before the grammar.
        let members = json!({
            "prompt": "x".repeat(2 * CONTEXT), "grammar": {"type": "regex", "value": "("},
        });
        assert_eq!(
            server.complete(members).await.error().1,
            "context_length_exceeded"
        );
        assert_eq!(server.engine.active_generations(), 0);
    });
}

fn tools() -> Value {
    let tool = |name: &str| json!({"type": "function", "function": {"name": name}});
    json!([tool("add"), tool("get_weather")])
}

/// Checks that a choice has one call. Returns its name and arguments.
fn call(choice: &Value) -> (String, String) {
    let [call] = &choice["tool_calls"].as_array().unwrap()[..] else {
        panic!("{choice}");
    };
    assert!(call["id"].as_str().unwrap().starts_with("call_"));
    assert_eq!(call["type"], "function");
    let part = |name: &str| call["function"][name].as_str().unwrap().to_owned();
    (part("name"), part("arguments"))
}

#[test]
fn case_110_a_forced_call() {
    serve_default(async |server| {
        let says = r#"{"name": "get_weather", "arguments": {"a": [1, "x"]}}"#;
        server.plan.say(bytes(says));
        let members = json!({
            "prompt": "x", "tools": tools(), "tool_choice": "required", "max_tokens": 60,
            "suffix": "!", "echo": true,
        });
        let object = server.ok(members.clone()).await;
        assert_eq!(
            (text_of(&object), finish_of(&object)),
            (&*format!("x{says}!"), "stop")
        );
        let expected = ("get_weather".to_owned(), r#"{"a": [1, "x"]}"#.to_owned());
        assert_eq!(call(&object["choices"][0]), expected);
        let chunks = server.stream(members).await;
        let (last, before) = chunks.split_last().unwrap();
        assert_eq!(call(&last["choices"][0]), expected);
        assert!(!before.is_empty());
        assert!(
            before
                .iter()
                .all(|chunk| chunk["choices"][0].get("tool_calls").is_none())
        );
    });
}

#[test]
fn only_complete_calls_of_usable_tools_are_calls() {
    serve_default(async |server| {
        let add = r#"{"name": "add", "arguments": {}}"#;
        let named = json!({"type": "function", "function": {"name": "get_weather"}});
        for (says, members, is_call) in [
            (add, json!({"tools": tools()}), true),
            (add, json!({}), false),
            (add, json!({"tools": tools(), "tool_choice": "none"}), false),
            (
                r#"{"name": "sub", "arguments": {}}"#,
                json!({"tools": tools()}),
                false,
            ),
            ("hello", json!({"tools": tools()}), false),
            (add, json!({"tools": tools(), "max_tokens": 20}), false),
        ] {
            server.plan.say(bytes(says));
            let mut members = members.clone();
            if members.get("max_tokens").is_none() {
                members["max_tokens"] = json!(36);
            }
            let object = server.ok(members.clone()).await;
            assert!(says.starts_with(text_of(&object)), "{members}");
            let has_calls = object["choices"][0].get("tool_calls").is_some();
            assert_eq!(has_calls, is_call, "{says} with {members}");
        }
        // A forced choice leaves only its own tool.
        let members = json!({"tools": tools(), "tool_choice": named, "max_tokens": 36});
        server.plan.say(bytes(add));
        let object = server.ok(members).await;
        assert!(
            text_of(&object).starts_with(r#"{"name": "get_"#),
            "{object}"
        );
    });
}

#[test]
fn no_special_token_enters_the_text_of_a_constrained_completion() {
    serve_default(async |server| {
        // The model would repeat the end of text; the grammar could go on.
        for grammar in [
            json!({"type": "regex", "value": "(ab)*"}),
            json!({"type": "lark", "value": "start: \"ab\" <|sep|> \"ab\""}),
        ] {
            for include in [false, true] {
                server
                    .plan
                    .say([bytes("ab"), vec![SEP], bytes("ab")].concat());
                let members = json!({
                    "grammar": grammar, "max_tokens": 9, "ignore_eos": true,
                    "skip_special_tokens": false, "include_stop_str_in_output": include,
                    "return_tokens_as_token_ids": true, "temperature": 0,
                });
                let object = server.ok(members.clone()).await;
                let text = text_of(&object);
                assert!(["ab", "abab"].contains(&text), "{object}");
                assert_eq!(finish_of(&object), "stop");
                let ids = object["choices"][0]["token_ids"].as_array().unwrap();
                assert!(
                    ids.len() > text.len(),
                    "a special token was generated: {object}"
                );
                let chunks = server.stream(members).await;
                assert_eq!(joined_choices(&chunks), choices(&object));
            }
        }
    });
}
