//! The effect of llama.cpp's fields (specification 4.2, 4.3, 4.5 and 9.7).

use serde_json::json;

use crate::fixture::*;

#[test]
fn n_predict_limits_the_completion() {
    serve_default(async |server| {
        let ask = |n_predict: i32| json!({"max_tokens": null, "n_predict": n_predict, "ignore_eos": true});
        assert_eq!(server.ok(ask(3)).await["usage"]["completion_tokens"], 3);
        let object = server.ok(ask(-1)).await;
        assert_eq!(object["usage"]["total_tokens"], CONTEXT);
    });
    let refuses = json!({"contextLengthExceededBehavior": "error"});
    serve(refuses, async |server| {
        let members = json!({"max_tokens": null, "n_predict": -1, "ignore_eos": true});
        assert_eq!(server.ok(members).await["usage"]["total_tokens"], CONTEXT);
    });
}

#[test]
fn repeat_penalty_changes_the_choice() {
    serve_default(async |server| {
        let ask = |name: &str| json!({name: 1.9, "temperature": 0, "max_tokens": 12});
        let penalized = server.text(ask("repeat_penalty")).await;
        assert_eq!(penalized, server.text(ask("repetition_penalty")).await);
        assert_ne!(
            penalized,
            server
                .text(json!({"temperature": 0, "max_tokens": 12}))
                .await
        );
    });
}

#[test]
fn biases_as_pairs_force_and_forbid() {
    serve_default(async |server| {
        server.plan.say(bytes("abc"));
        let forced = json!({"logit_bias": [["q", 100]], "max_tokens": 3, "temperature": 0});
        assert!(server.text(forced).await.contains('q'));
        for pair in [json!(["b", false]), json!([bytes("b")[0], false])] {
            for temperature in [0.0, 1.0] {
                let members = json!({
                    "logit_bias": [pair], "max_tokens": 3, "temperature": temperature, "n": 2,
                    "logprobs": 1,
                });
                let object = server.ok(members.clone()).await;
                for text in texts(&object) {
                    assert!(text.starts_with('a') && !text.contains('b'), "{text}");
                }
            }
        }
        let error = server
            .complete(json!({"logit_bias": [[VOCAB, false]]}))
            .await
            .error();
        assert_eq!(error.1, "out_of_range");
        let all: Vec<_> = (0..VOCAB).map(|id| json!([id, false])).collect();
        let error = server.complete(json!({"logit_bias": all})).await.error();
        assert_eq!(
            error,
            (
                400,
                "conflicting_parameters".into(),
                Some("logit_bias".into())
            )
        );
    });
}

#[test]
fn constraints_hold() {
    serve_default(async |server| {
        for (members, expected) in [
            (
                json!({"grammar": "root ::= \"x\" [yz]{2}"}),
                &["xyy", "xyz", "xzy", "xzz"][..],
            ),
            (json!({"json_schema": {"enum": [1, true]}}), &["1", "true"]),
        ] {
            let mut members = members;
            members["max_tokens"] = json!(20);
            let object = server.ok(members.clone()).await;
            assert!(expected.contains(&text_of(&object)), "{object}");
            let chunks = server.stream(members.clone()).await;
            assert!(expected.contains(&joined(&chunks).as_str()));
        }
        let members = json!({"grammar": "root ::= other"});
        let error = server.complete(members).await.error();
        assert_eq!(
            error,
            (400, "invalid_grammar".into(), Some("grammar".into()))
        );
        let error = server
            .complete(json!({"json_schema": {"type": "x"}}))
            .await
            .error();
        assert_eq!(
            error,
            (400, "invalid_schema".into(), Some("json_schema".into()))
        );
        assert_eq!(
            server.complete(json!({"grammar": "x"})).await.error().1,
            "invalid_type"
        );
    });
}

#[test]
fn mixed_prompts_are_joined() {
    serve(json!({"profile": "llamacpp"}), async |server| {
        let ids = async |prompt: serde_json::Value| {
            let members =
                json!({"prompt": prompt, "return_token_ids": true, "max_tokens": 1, "echo": true});
            let object = server.ok(members).await;
            let choices = choices(&object).iter();
            choices
                .map(|it| it["prompt_token_ids"].clone())
                .collect::<Vec<_>>()
        };
        let start = server.ids("");
        let text = |text: &str| [start.clone(), bytes(text)].concat();
        assert_eq!(
            ids(json!(["ab", SEP, "c"])).await,
            [json!([text("ab"), vec![SEP], bytes("c")].concat())]
        );
        assert_eq!(
            ids(json!([SEP, "c"])).await,
            [json!([vec![SEP], bytes("c")].concat())]
        );
        assert_eq!(
            ids(json!(["ab", [5, 6]])).await,
            [json!(text("ab")), json!([5, 6])]
        );
        assert_eq!(
            ids(json!([["ab", 5], "c"])).await,
            [json!([text("ab"), vec![5]].concat()), json!(text("c"))]
        );
        let error = server
            .complete(json!({"prompt": ["a", VOCAB]}))
            .await
            .error();
        assert_eq!(error, (400, "out_of_range".into(), Some("prompt".into())));
        let error = server
            .complete(json!({"prompt": ["a", 5], "suffix": "x", "suffix_mode": "fim"}))
            .await
            .error();
        assert_eq!(error.1, "unsupported_parameter");
    });
}
