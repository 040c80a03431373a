//! The effect of vLLM's fields (specification 4.2 to 4.4, 7.6 and 9.6).

use serde_json::{Value, json};

use crate::fixture::*;

/// Whole and streamed answers, which must agree.
async fn both(server: &Server, mut members: Value) -> Value {
    if members["seed"].is_null() {
        members["seed"] = json!(1);
    }
    let whole = server.ok(members.clone()).await;
    let chunks = server.stream(members.clone()).await;
    assert_eq!(joined_choices(&chunks), choices(&whole), "{members}");
    whole
}

fn token_ids(choice: &Value) -> Vec<u32> {
    let ids = choice["token_ids"].as_array().unwrap();
    ids.iter().map(|id| id.as_u64().unwrap() as u32).collect()
}

#[test]
fn stop_token_ids_end_a_choice() {
    serve_default(async |server| {
        let stop = pieces(" qu")[0];
        let said = [bytes("ab"), vec![stop], bytes("c")].concat();
        for (include, text) in [(false, "ab"), (true, "ab qu")] {
            server.plan.say(said.clone());
            let members = json!({
                "stop_token_ids": [SEP, stop], "include_stop_str_in_output": include,
                "return_token_ids": true,
            });
            let object = both(server, members).await;
            assert_eq!((text_of(&object), finish_of(&object)), (text, "stop"));
            assert_eq!(object["choices"][0]["stop_reason"], stop);
            assert_eq!(token_ids(&object["choices"][0]), said[..3]);
        }
        // They act beside ignore_eos; a special one is shown only if both fields ask for it.
        for (skip, text) in [(true, "a"), (false, "a</s>")] {
            server.plan.say(bytes("a"));
            let members = json!({
                "stop_token_ids": [EOS], "ignore_eos": true, "skip_special_tokens": skip,
                "include_stop_str_in_output": true,
            });
            let object = both(server, members).await;
            assert_eq!((text_of(&object), finish_of(&object)), (text, "stop"));
        }
        let error = server
            .complete(json!({"stop_token_ids": [VOCAB]}))
            .await
            .error();
        assert_eq!(
            error,
            (400, "out_of_range".into(), Some("stop_token_ids".into()))
        );
    });
}

#[test]
fn nothing_ends_a_choice_before_min_tokens() {
    serve_default(async |server| {
        for members in [
            json!({"temperature": 0}),
            json!({"temperature": 1, "seed": 1, "n": 2}),
            json!({"stop_token_ids": [5], "logit_bias": {"5": 100}}),
            json!({"stop": "</s>", "ignore_eos": true}),
        ] {
            for min_tokens in [0, 1, 5, 8] {
                server.plan.say(Vec::new());
                let mut members = members.clone();
                members["min_tokens"] = json!(min_tokens);
                let object = both(server, members.clone()).await;
                for choice in choices(&object) {
                    let is_full = min_tokens == 8;
                    let finish = if is_full { "length" } else { "stop" };
                    assert_eq!(choice["finish_reason"], finish, "{members}: {object}");
                }
                let tokens = object["usage"]["completion_tokens"].as_u64().unwrap();
                let n = choices(&object).len() as u64;
                assert_eq!(tokens, n * (min_tokens + 1).min(8), "{members}");
            }
        }
        // Stop strings count in the text that follows.
        server.plan.say(bytes("xxxxxx"));
        let members = json!({"stop": "x", "min_tokens": 3});
        let object = both(server, members).await;
        assert_eq!((text_of(&object), finish_of(&object)), ("xxx", "stop"));
        // A finished grammar ends the choice all the same.
        let members = json!({"min_tokens": 6, "guided_regex": "a{0,2}"});
        let object = both(server, members).await;
        assert_eq!((text_of(&object), finish_of(&object)), ("aa", "stop"));
        let object = both(server, json!({"min_tokens": 6, "guided_regex": "(ab)*"})).await;
        assert_eq!(object["usage"]["completion_tokens"].as_u64(), Some(7));
    });
}

#[test]
fn only_allowed_tokens_are_generated() {
    serve_default(async |server| {
        let allowed = [bytes("xyz"), pieces(" the")].concat();
        for members in [
            json!({"temperature": 0, "n": 2, "best_of": 2}),
            json!({"temperature": 1.5, "seed": 3, "n": 2, "logprobs": 1, "echo": true}),
            json!({"temperature": 1, "seed": 3, "prompt": ["a", "b"]}),
        ] {
            let mut members = members;
            members["allowed_token_ids"] = json!(allowed);
            members["return_token_ids"] = json!(true);
            let object = both(server, members).await;
            for choice in choices(&object) {
                let ids = token_ids(choice);
                assert_eq!(ids.len(), 8);
                assert!(ids.iter().all(|id| allowed.contains(id)), "{choice}");
            }
        }
        let members =
            json!({"allowed_token_ids": bytes("0123"), "guided_regex": "[2-9]{3}", "seed": 1});
        let object = both(server, members).await;
        assert!(
            text_of(&object).bytes().all(|byte| b"23".contains(&byte)),
            "{object}"
        );
        for (members, code, param) in [
            (
                json!({"allowed_token_ids": [VOCAB]}),
                "out_of_range",
                "allowed_token_ids",
            ),
            (
                json!({"allowed_token_ids": [EOS], "min_tokens": 1}),
                "conflicting_parameters",
                "allowed_token_ids",
            ),
            (
                json!({"allowed_token_ids": bytes("a"), "bad_words": ["a"]}),
                "conflicting_parameters",
                "allowed_token_ids",
            ),
        ] {
            let error = server.complete(members).await.error();
            assert_eq!(error, (400, code.into(), Some(param.into())));
        }
        let members = json!({"allowed_token_ids": bytes("ab"), "guided_regex": "ca*"});
        assert_eq!(server.complete(members).await.error().1, "grammar_dead_end");
    });
}

#[test]
fn bad_words_are_not_generated() {
    serve_default(async |server| {
        let wanted = "abcabc";
        for temperature in [0.0, 0.7] {
            let ask = |words: Value| {
                json!({
                    "bad_words": words, "temperature": temperature, "seed": 2, "max_tokens": 6,
                    "n": 2, "allowed_token_ids": bytes("abc"),
                })
            };
            server.plan.say(bytes(wanted));
            let plain = both(server, ask(json!([]))).await;
            assert_eq!(text_of(&plain), wanted);
            let object = both(server, ask(json!(["bc"]))).await;
            for text in texts(&object) {
                assert!(text.starts_with("ab") && !text.contains("bc"), "{text}");
            }
            let object = both(server, ask(json!(["c", "ba"]))).await;
            for text in texts(&object) {
                assert!(!text.contains('c') && !text.contains("ba"), "{text}");
            }
        }
        // The token of the word with a space before it is forbidden, too.
        server.plan.say(pieces(" the the"));
        assert_eq!(
            text_of(&both(server, json!({"max_tokens": 2})).await),
            " the the"
        );
        let members = json!({"bad_words": ["the"], "max_tokens": 2, "return_token_ids": true});
        let object = both(server, members).await;
        assert!(!token_ids(&object["choices"][0]).contains(&pieces(" the")[0]));
    });
}

#[test]
fn prompts_are_cut_to_their_last_tokens() {
    serve_default(async |server| {
        let prompt = "abcdefgh";
        let members = json!({
            "prompt": [prompt, "xy"], "truncate_prompt_tokens": 3, "echo": true, "max_tokens": 2,
            "ignore_eos": true,
        });
        let reply = server.complete(members).await;
        assert_eq!(reply.header("x-prompt-truncated"), Some("6"));
        let object = reply.json();
        assert!(texts(&object)[0].starts_with("fgh"), "{object}");
        assert!(texts(&object)[1].starts_with("xy"), "{object}");
        assert_eq!(object["usage"]["prompt_tokens"], 6);
        let long = "x".repeat(2 * CONTEXT);
        for (tokens, kept) in [(-1, CONTEXT - 4), (10, 10)] {
            let members =
                json!({"prompt": long, "truncate_prompt_tokens": tokens, "max_tokens": 4});
            let object = server.ok(members).await;
            assert_eq!(object["usage"]["prompt_tokens"], kept);
        }
        let members = json!({"prompt": long, "truncate_prompt_tokens": CONTEXT + 1});
        let error = server.complete(members).await.error();
        assert_eq!(error.1, "context_length_exceeded");
        // A single slice.
        for (unit, is_accepted) in [("x ", true), ("x", false), (" ", false)] {
            let prompt = unit.repeat((1 << 20) / unit.len() + 1);
            let members = json!({"prompt": prompt, "truncate_prompt_tokens": 3, "max_tokens": 1});
            let reply = server.complete(members).await;
            match is_accepted {
                true => assert_eq!(reply.json()["usage"]["prompt_tokens"], 3),
                false => assert_eq!(reply.error().1, "out_of_range"),
            }
        }
    });
}

#[test]
fn special_tokens_are_added_or_not() {
    serve_default(async |server| {
        for (add, ids) in [
            (json!(true), server.ids("ab")),
            (json!(null), server.ids("ab")),
            (json!(false), bytes("ab")),
        ] {
            let members =
                json!({"prompt": "ab", "add_special_tokens": add, "return_token_ids": true});
            let object = both(server, members).await;
            assert_eq!(object["choices"][0]["prompt_token_ids"], json!(ids));
        }
    });
}

#[test]
fn ids_of_prompt_and_completion_are_returned() {
    serve_default(async |server| {
        let members = json!({
            "prompt": [bytes("ab"), [5, 6]], "n": 2, "return_token_ids": true, "seed": 1, "echo": true,
        });
        let object = both(server, members.clone()).await;
        for (index, choice) in choices(&object).iter().enumerate() {
            let prompt = [bytes("ab"), vec![5, 6]][index / 2].clone();
            assert_eq!(choice["prompt_token_ids"], json!(prompt));
            assert_eq!(token_ids(choice).len(), 8);
            assert_eq!(choice["logprobs"], Value::Null);
        }
        let chunks = server.stream(members).await;
        let with_prompt = chunks
            .iter()
            .filter(|it| it["choices"][0].get("prompt_token_ids").is_some());
        assert_eq!(with_prompt.count(), 4, "in the first chunk of each choice");
    });
}

#[test]
fn log_probabilities_of_the_prompt_are_listed_by_id() {
    serve_default(async |server| {
        let members =
            json!({"prompt": "abab", "prompt_logprobs": 2, "seed": 1, "n": 2, "logprobs": 1});
        let object = both(server, members.clone()).await;
        let echo = json!({"prompt": "abab", "echo": true, "logprobs": 2, "max_tokens": 0, "return_tokens_as_token_ids": true});
        let echo = server.ok(echo).await;
        let scored = &echo["choices"][0]["logprobs"];
        let ids = server.ids("abab");
        for choice in choices(&object) {
            let listed = choice["prompt_logprobs"].as_array().unwrap();
            assert_eq!(listed.len(), ids.len());
            assert!(listed[0].is_null());
            for (at, id) in ids.iter().enumerate().skip(1) {
                let token = &listed[at][id.to_string()];
                assert_eq!(token["logprob"], scored["token_logprobs"][at]);
                assert_eq!(token["decoded_token"], ["a", "b"][(at + 1) % 2]);
                let best = scored["top_logprobs"][at].as_object().unwrap();
                for (name, logprob) in best {
                    let id = name.strip_prefix("token_id:").unwrap();
                    assert_eq!(&listed[at][id]["logprob"], logprob);
                }
                let by_rank = |rank: u64| {
                    listed[at]
                        .as_object()
                        .unwrap()
                        .values()
                        .find(|it| it["rank"] == rank)
                        .unwrap()["logprob"]
                        .as_f64()
                        .unwrap()
                };
                assert!(by_rank(1) >= by_rank(2));
            }
            // Those of the completion are not affected.
            assert_eq!(choice["logprobs"]["tokens"].as_array().unwrap().len(), 8);
        }
        // With an echo of fewer best tokens both lists have their own number.
        let members = json!({"prompt": "ab", "prompt_logprobs": 4, "logprobs": 0, "echo": true, "max_tokens": 0});
        let object = both(server, members).await;
        let choice = &object["choices"][0];
        assert_eq!(
            choice["logprobs"]["top_logprobs"][1]
                .as_object()
                .unwrap()
                .len(),
            1
        );
        assert!(choice["prompt_logprobs"][1].as_object().unwrap().len() >= 4);
    });
}

#[test]
fn structured_outputs_hold() {
    serve_default(async |server| {
        for (constraint, expected) in [
            (
                json!({"guided_choice": ["yes", "yes."]}),
                &["yes", "yes."][..],
            ),
            (
                json!({"structured_outputs": {"choice": ["a|b", "(c)"]}}),
                &["a|b", "(c)"],
            ),
            (json!({"guided_regex": "[01]"}), &["0", "1"]),
            (
                json!({"guided_json": "{\"enum\": [1, true]}"}),
                &["1", "true"],
            ),
            (
                json!({"structured_outputs": {"json": {"const": [1, 2]}, "disable_any_whitespace": true}}),
                &["[1,2]"],
            ),
            (
                json!({"guided_grammar": "root ::= \"x\" tail\ntail ::= [yz]"}),
                &["xy", "xz"],
            ),
            (
                json!({"guided_grammar": "start: \"x\" (\"y\" | \"z\")"}),
                &["xy", "xz"],
            ),
        ] {
            let mut members = constraint;
            members["seed"] = json!(3);
            members["max_tokens"] = json!(30);
            members["n"] = json!(2);
            let object = both(server, members.clone()).await;
            for choice in choices(&object) {
                assert!(
                    expected.contains(&choice["text"].as_str().unwrap()),
                    "{members}: {choice}"
                );
                assert_eq!(choice["finish_reason"], "stop");
            }
        }
        for (members, code, param) in [
            (
                json!({"guided_grammar": "root ::= root \"a\" | \"b\""}),
                "invalid_grammar",
                "guided_grammar",
            ),
            (
                json!({"guided_json": {"type": "nonsense"}}),
                "invalid_schema",
                "guided_json",
            ),
            (
                json!({"structured_outputs": {"regex": "("}}),
                "invalid_grammar",
                "structured_outputs",
            ),
        ] {
            let error = server.complete(members).await.error();
            assert_eq!(error, (400, code.into(), Some(param.into())));
        }
    });
}
