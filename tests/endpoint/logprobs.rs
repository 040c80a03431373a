//! Log-probabilities, echo and scoring (specification 7; cases 040, 050, 078 to 090 and 096).

use serde_json::{Value, json};

use crate::fixture::*;

/// The four arrays of a choice. Checks that they have the same length.
#[track_caller]
fn arrays(choice: &Value) -> [&Vec<Value>; 4] {
    let object = choice["logprobs"].as_object().unwrap();
    let names: Vec<&str> = object.keys().map(String::as_str).collect();
    assert_eq!(
        names,
        ["tokens", "token_logprobs", "top_logprobs", "text_offset"]
    );
    let arrays = names
        .into_iter()
        .map(|name| object[name].as_array().unwrap());
    let arrays: Vec<&Vec<Value>> = arrays.collect();
    assert!(arrays.iter().all(|array| array.len() == arrays[0].len()));
    [arrays[0], arrays[1], arrays[2], arrays[3]]
}

fn numbers(array: &[Value]) -> Vec<u64> {
    array.iter().map(|value| value.as_u64().unwrap()).collect()
}

/// A request that scores a prompt.
fn scoring(prompt: &Value, top: u32) -> Value {
    json!({"prompt": prompt, "echo": true, "max_tokens": 0, "logprobs": top})
}

#[test]
fn case_078_zero_lists_only_the_sampled_token() {
    serve_default(async |server| {
        server.plan.babble();
        let object = server
            .ok(json!({"logprobs": 0, "seed": 1, "max_tokens": 20}))
            .await;
        let [tokens, logprobs, top, _] = arrays(&object["choices"][0]);
        assert_eq!(tokens.len() as u64, object["usage"]["completion_tokens"]);
        for ((token, logprob), top) in tokens.iter().zip(logprobs).zip(top) {
            assert_eq!(*top, json!({token.as_str().unwrap(): logprob}));
        }
        assert_eq!(
            server.ok(json!({})).await["choices"][0]["logprobs"],
            Value::Null
        );
        // Without generated tokens, nothing is listed.
        let object = server.ok(json!({"logprobs": 0, "max_tokens": 0})).await;
        assert_eq!(arrays(&object["choices"][0])[0].len(), 0);
    });
}

#[test]
fn case_079_the_best_and_the_sampled_token() {
    serve_default(async |server| {
        let members = json!({"logprobs": 3, "temperature": 1.9, "seed": 3, "max_tokens": 30});
        let object = server.ok(members).await;
        let [tokens, logprobs, top, _] = arrays(&object["choices"][0]);
        let mut unlisted = 0;
        for ((token, logprob), top) in tokens.iter().zip(logprobs).zip(top) {
            let top = top.as_object().unwrap();
            let values: Vec<f64> = top.values().map(|value| value.as_f64().unwrap()).collect();
            assert!(top.len() == 3 || top.len() == 4);
            unlisted += top.len() - 3;
            assert!(values.is_sorted_by(|a, b| a >= b), "best first");
            assert!(values.iter().all(|value| *value <= 0.0));
            assert!(values.iter().map(|value| value.exp()).sum::<f64>() <= 1.001);
            assert_eq!(top[token.as_str().unwrap()], *logprob);
        }
        assert!(unlisted > 0);
    });
}

#[test]
fn case_080_offsets_find_the_tokens() {
    serve_default(async |server| {
        for babble in [false, true] {
            match babble {
                true => server.plan.babble(),
                false => server.plan.say(pieces("the quown faaa é one")),
            }
            for seed in 0..8 {
                let members = json!({"logprobs": 0, "seed": seed, "max_tokens": 30});
                let object = server.ok(members).await;
                let choice = &object["choices"][0];
                let text: Vec<char> = choice["text"].as_str().unwrap().chars().collect();
                let [tokens, _, _, offsets] = arrays(choice);
                let offsets = numbers(offsets);
                assert!(offsets.is_sorted() && offsets[0] == 0);
                for (token, offset) in tokens.iter().zip(offsets) {
                    let token = token.as_str().unwrap();
                    if !token.starts_with("bytes:") && !["</s>", "<|sep|>"].contains(&token) {
                        let there = text[offset as usize..].iter().take(token.chars().count());
                        assert_eq!(there.collect::<String>(), token);
                    }
                }
            }
        }
    });
}

#[test]
fn case_083_scoring() {
    serve_default(async |server| {
        for top in [0, 2] {
            let object = server.ok(scoring(&json!(PROMPT), top)).await;
            let choice = &object["choices"][0];
            assert_eq!((text_of(&object), finish_of(&object)), (PROMPT, "length"));
            assert_eq!(object["usage"]["completion_tokens"], 0);
            let [tokens, logprobs, top_logprobs, offsets] = arrays(choice);
            assert_eq!(tokens.len() as u64, object["usage"]["prompt_tokens"]);
            assert_eq!(
                (&logprobs[0], &top_logprobs[0]),
                (&Value::Null, &Value::Null)
            );
            for (logprob, best) in logprobs.iter().zip(top_logprobs).skip(1) {
                assert!(logprob.as_f64().unwrap() <= 0.0);
                let count = best.as_object().unwrap().len();
                assert!(count == top.max(1) as usize || count == top as usize + 1);
            }
            // The automatic start token has no width.
            assert_eq!(tokens[0], "<s>");
            assert_eq!(numbers(offsets)[..3], [0, 0, 1]);
            let streamed = server.stream(scoring(&json!(PROMPT), top)).await;
            assert_eq!(streamed.len(), 1);
            assert_eq!(joined_choices(&streamed)[0], *choice);
        }
        // A single token, which has no score.
        let object = server.ok(scoring(&json!([7]), 1)).await;
        assert_eq!(arrays(&object["choices"][0])[1][..], [Value::Null]);
    });
}

#[test]
fn case_084_scores_equal_those_of_generation() {
    serve_default(async |server| {
        let prompt = bytes("abc");
        let members = json!({
            "prompt": prompt, "logprobs": 0, "temperature": 0, "ignore_eos": true,
            "return_tokens_as_token_ids": true,
        });
        let object = server.ok(members).await;
        let generated = logprobs_of(&object["choices"][0]);
        let mut ids = json!(prompt);
        let more = object["choices"][0]["token_ids"].as_array().unwrap();
        ids.as_array_mut().unwrap().extend(more.clone());
        let object = server.ok(scoring(&ids, 0)).await;
        let scored = logprobs_of(&object["choices"][0]);
        for (scored, generated) in scored[3..].iter().zip(&generated) {
            assert!((scored - generated).abs() < 1e-4);
        }
    });
}

#[test]
fn cases_040_and_087_benchmarks_score_batches() {
    serve_default(async |server| {
        let contexts = ["The capital", "x"];
        let mut prompts = Vec::new();
        for context in contexts {
            let members = json!({
                "prompt": bytes(context), "temperature": 0, "max_tokens": 6,
                "return_tokens_as_token_ids": true, "ignore_eos": true,
            });
            let object = server.ok(members).await;
            let more = object["choices"][0]["token_ids"].as_array().unwrap();
            let ids: Vec<Value> = bytes(context).into_iter().map(Value::from).collect();
            prompts.push([ids, more.clone()].concat());
        }
        let members = |prompt: Value| {
            json!({
                "prompt": prompt, "echo": true, "max_tokens": 1, "logprobs": 1,
                "temperature": 0, "seed": 1234,
            })
        };
        let object = server.ok(members(json!(prompts))).await;
        for (index, choice) in choices(&object).iter().enumerate() {
            let [_, logprobs, top, _] = arrays(choice);
            let (context, whole) = (contexts[index].len(), prompts[index].len());
            assert_eq!(logprobs.len(), whole + 1);
            for (logprob, top) in logprobs[context..whole].iter().zip(&top[context..whole]) {
                let best = top.as_object().unwrap().values().next().unwrap();
                assert_eq!(logprob, best, "greedy continuations are the best");
            }
            let alone = server.ok(members(json!(prompts[index]))).await;
            assert_eq!(alone["choices"][0]["logprobs"], choice["logprobs"]);
        }
    });
}

#[test]
fn case_088_tokens_as_ids() {
    serve_default(async |server| {
        server.plan.babble();
        let plain = server.ok(json!({"temperature": 0, "logprobs": 2})).await;
        assert_eq!(plain["choices"][0].get("token_ids"), None);
        for logprobs in [json!(2), Value::Null] {
            let members = json!({
                "temperature": 0, "logprobs": logprobs, "return_tokens_as_token_ids": true,
            });
            let object = server.ok(members).await;
            let choice = &object["choices"][0];
            assert_eq!(choice["text"], plain["choices"][0]["text"]);
            let ids = numbers(choice["token_ids"].as_array().unwrap());
            assert_eq!(ids.len() as u64, object["usage"]["completion_tokens"]);
            if logprobs.is_null() {
                continue;
            }
            let [tokens, values, top, _] = arrays(choice);
            let names: Vec<String> = ids.iter().map(|id| format!("token_id:{id}")).collect();
            assert_eq!(json!(tokens), json!(names));
            assert_eq!(
                json!(values),
                plain["choices"][0]["logprobs"]["token_logprobs"]
            );
            for top in top {
                for name in top.as_object().unwrap().keys() {
                    assert!(
                        name.strip_prefix("token_id:")
                            .unwrap()
                            .parse::<u32>()
                            .is_ok()
                    );
                }
            }
        }
    });
}

#[test]
fn case_090_every_choice_has_the_prompt() {
    serve_default(async |server| {
        let members = json!({
            "echo": true, "n": 2, "logprobs": 0, "max_tokens": 3, "ignore_eos": true, "seed": 1,
        });
        let object = server.ok(members).await;
        let prompt_tokens = server.ids(PROMPT).len();
        let of_prompt = |choice: &Value| {
            let arrays = arrays(choice);
            assert_eq!(arrays[0].len(), prompt_tokens + 3);
            arrays.map(|array| array[..prompt_tokens].to_vec())
        };
        let [first, second] = choices(&object) else {
            panic!("{object}");
        };
        assert_eq!(of_prompt(first), of_prompt(second));
        for choice in [first, second] {
            assert!(choice["text"].as_str().unwrap().starts_with(PROMPT));
            let first_offset = numbers(arrays(choice)[3])[prompt_tokens];
            assert_eq!(first_offset as usize, PROMPT.len());
        }
    });
}

#[test]
fn echoed_ids_show_their_special_tokens() {
    serve_default(async |server| {
        let ids = [vec![BOS], bytes("é"), vec![SEP], bytes("a")].concat();
        let object = server.ok(scoring(&json!(ids), 0)).await;
        assert_eq!(text_of(&object), "<s>é<|sep|>a");
        let [tokens, _, _, offsets] = arrays(&object["choices"][0]);
        let expected = ["<s>", r"bytes:\xc3", r"bytes:\xa9", "<|sep|>", "a"];
        assert_eq!(json!(tokens), json!(expected));
        assert_eq!(numbers(offsets), [0, 3, 3, 4, 11]);
    });
}

#[test]
fn a_truncated_prompt_is_listed_as_it_is_used() {
    serve_default(async |server| {
        let text: String = "é".repeat(CONTEXT);
        let members = json!({
            "prompt": text, "truncate_sequence": true, "max_tokens": 3, "echo": true,
            "logprobs": 0, "temperature": 0,
        });
        let object = server.ok(members).await;
        let choice = &object["choices"][0];
        let [tokens, logprobs, _, offsets] = arrays(choice);
        // The number of kept bytes is odd, so the first one belongs to a character that was cut.
        let kept = CONTEXT - 3;
        assert_eq!(tokens.len(), kept + 3);
        let shown = format!("\u{fffd}{}", "é".repeat(kept / 2));
        assert!(choice["text"].as_str().unwrap().starts_with(&shown));
        assert_eq!(logprobs[0], Value::Null);
        assert_eq!(numbers(offsets)[..5], [0, 1, 1, 2, 2]);
        assert_eq!(numbers(offsets)[kept] as usize, shown.chars().count());
    });
}

#[test]
fn offsets_may_count_from_the_prompt() {
    let offsets_of = async |server: &Server, echo: bool| {
        let mut offsets = Vec::new();
        for prompt in [json!("né"), json!(bytes("né"))] {
            let members = json!({"prompt": prompt, "logprobs": 0, "temperature": 0, "echo": echo});
            let object = server.ok(members).await;
            let of_choice = numbers(arrays(&object["choices"][0])[3]);
            offsets.push(of_choice[of_choice.len() - 8]);
        }
        offsets
    };
    serve_default(async |server| {
        assert_eq!(offsets_of(server, false).await, [0, 0]);
        assert_eq!(offsets_of(server, true).await, [2, 2]);
    });
    serve(json!({"textOffsetBase": "prompt"}), async |server| {
        assert_eq!(offsets_of(server, false).await, [2, 2]);
        assert_eq!(offsets_of(server, true).await, [2, 2]);
    });
}

#[test]
fn the_mode_of_the_logprobs_reaches_the_sampler() {
    serve_default(async |server| {
        let letter = bytes("q")[0];
        let members = |mode: &str| {
            json!({
                "logprobs": 1, "logprobs_mode": mode, "max_tokens": 1, "temperature": 0,
                "logit_bias": {letter.to_string(): 100}, "echo": true,
            })
        };
        let raw = server.ok(members("raw")).await;
        let processed = server.ok(members("processed")).await;
        let of_token = |object: &Value| *logprobs_of(&object["choices"][0]).last().unwrap();
        assert!(of_token(&raw) < -1.0);
        assert!(of_token(&processed) > -0.1);
        // Those of the prompt are raw in both modes.
        let of_prompt = |object: &Value| {
            let logprobs = logprobs_of(&object["choices"][0]);
            logprobs[1..logprobs.len() - 1].to_vec()
        };
        assert_eq!(of_prompt(&raw), of_prompt(&processed));
    });
}

#[test]
fn case_096_held_back_text_keeps_its_tokens() {
    serve_default(async |server| {
        for (says, stop) in [
            ("ab\nc d", "\n\n"),
            ("the quown faaa", "own f"),
            ("ab", "abc"),
        ] {
            for echo in [false, true] {
                server.plan.say(pieces(says));
                let members =
                    json!({"logprobs": 2, "stop": stop, "echo": echo, "n": 2, "max_tokens": 30});
                let whole = server.ok(members.clone()).await;
                let chunks = server.stream(members).await;
                assert_eq!(joined_choices(&chunks), choices(&whole));
                // A chunk lists no token whose text is still to come.
                for index in 0..2 {
                    let mut chars = 0;
                    for chunk in chunks
                        .iter()
                        .filter(|chunk| chunk["choices"][0]["index"] == index)
                    {
                        let choice = &chunk["choices"][0];
                        chars += choice["text"].as_str().unwrap().chars().count() as u64;
                        assert!(
                            numbers(arrays(choice)[3])
                                .iter()
                                .all(|offset| *offset <= chars)
                        );
                    }
                }
            }
        }
    });
}
