//! The effect of Fireworks' fields (specification 4.3 to 4.5, 5.3 and 7.4).

use serde_json::{Value, json};

use crate::fixture::*;

#[test]
fn typical_p_truncates() {
    serve_default(async |server| {
        // The most typical token alone: there is no choice left.
        let ask = |seed: u32, typical_p: f32| json!({"typical_p": typical_p, "temperature": 1.5, "seed": seed, "max_tokens": 6});
        let first = server.text(ask(1, 0.0)).await;
        for seed in 2..6 {
            assert_eq!(server.text(ask(seed, 0.0)).await, first);
        }
        let greedy = server
            .text(json!({"temperature": 0, "max_tokens": 6}))
            .await;
        assert_ne!(
            first, greedy,
            "the most typical is not the most likely here"
        );
        assert_ne!(
            server.text(ask(1, 1.0)).await,
            server.text(ask(2, 1.0)).await
        );
        let whole = server.ok(ask(3, 0.4)).await;
        let chunks = server.stream(ask(3, 0.4)).await;
        assert_eq!(joined_choices(&chunks), choices(&whole));
    });
}

#[test]
fn the_last_tokens_of_the_prompt_are_echoed() {
    serve_default(async |server| {
        let prompt = "ab é cd";
        let count = server.ids(prompt).len();
        let scored = json!({"prompt": prompt, "echo": true, "logprobs": 1, "max_tokens": 2, "seed": 1, "ignore_eos": true});
        let whole = server.ok(scored.clone()).await;
        let all = &whole["choices"][0]["logprobs"];
        for last in [0, 1, 3, 5, count, count + 5] {
            let mut members = scored.clone();
            members["echo"] = json!(null);
            members["echo_last"] = json!(last);
            let object = server.ok(members.clone()).await;
            let choice = &object["choices"][0];
            let from = count - last.min(count);
            for list in ["tokens", "token_logprobs", "top_logprobs"] {
                let expected = &all[list].as_array().unwrap()[from..];
                assert_eq!(
                    choice["logprobs"][list].as_array().unwrap(),
                    expected,
                    "{last} {list}"
                );
            }
            assert!(
                text_of(&whole).ends_with(text_of(&object))
                    || text_of(&object).contains('\u{fffd}')
            );
            let offsets = choice["logprobs"]["text_offset"].as_array().unwrap();
            assert!(offsets.iter().map(|it| it.as_u64()).is_sorted());
            let chunks = server.stream(members).await;
            assert_eq!(joined_choices(&chunks), choices(&object));
        }
        let members = json!({"prompt": [bytes("abcdef"), [5, 6, 7]], "echo_last": 2, "max_tokens": 0, "n": 2});
        let object = server.ok(members).await;
        assert_eq!(texts(&object)[..2], ["ef", "ef"]);
        assert_eq!(texts(&object)[2..], ["\u{2}\u{3}", "\u{2}\u{3}"]);
    });
}

#[test]
fn the_raw_output_is_returned() {
    serve_default(async |server| {
        for logprobs in [Value::Null, json!(1)] {
            server
                .plan
                .say([bytes("ab"), vec![SEP], bytes("c")].concat());
            let members = json!({
                "prompt": "x", "raw_output": true, "logprobs": logprobs, "stop": ["c"], "n": 2,
                "temperature": 0,
            });
            let object = server.ok(members.clone()).await;
            for choice in choices(&object) {
                let raw = &choice["raw_output"];
                assert_eq!(choice["text"], "ab");
                assert_eq!(raw["completion"], "ab<|sep|>c");
                let generated = [bytes("ab"), vec![SEP], bytes("c")].concat();
                assert_eq!(raw["completion_token_ids"], json!(generated));
                assert_eq!(raw["prompt_token_ids"], json!(server.ids("x")));
                assert_eq!(raw["prompt_fragments"], json!(["<s>x"]));
                match logprobs.is_null() {
                    true => assert!(raw["completion_logprobs"].is_null()),
                    false => {
                        let content = raw["completion_logprobs"]["content"].as_array().unwrap();
                        assert_eq!(content.len(), 4);
                        let listed = &choice["logprobs"]["token_logprobs"];
                        assert_eq!(content[3]["logprob"], listed[3]);
                    }
                }
            }
            let chunks = server.stream(members).await;
            assert_eq!(joined_choices(&chunks), choices(&object));
        }
    });
}

#[test]
fn times_and_counts_are_returned() {
    serve_default(async |server| {
        let members = json!({"perf_metrics_in_response": true, "n": 2, "max_tokens": 3});
        let object = server.ok(members.clone()).await;
        check(server, &object["perf_metrics"]);
        let mut streamed = members;
        streamed["stream_options"] = json!({"include_usage": true});
        let mut chunks = server.stream(streamed).await;
        let usage = chunks.pop().unwrap();
        assert!(usage.get("perf_metrics").is_none());
        check(server, &chunks.pop().unwrap()["perf_metrics"]);
        assert!(
            chunks
                .iter()
                .all(|chunk| chunk.get("perf_metrics").is_none())
        );
        assert!(server.ok(json!({})).await.get("perf_metrics").is_none());
    });
}

fn check(server: &Server, metrics: &Value) {
    assert_eq!(metrics["prompt-tokens"], server.ids(PROMPT).len());
    assert!(metrics["cached-prompt-tokens"].is_u64());
    let first = metrics["server-time-to-first-token"].as_f64().unwrap();
    let all = metrics["server-processing-time"].as_f64().unwrap();
    assert!(0.0 <= first && first <= all, "{metrics}");
}

#[test]
fn the_profile_accepts_its_vendors_fields_and_refuses_unknown_ones() {
    serve(json!({"profile": "fireworks"}), async |server| {
        let members = json!({
            "typical_p": 0.9, "echo_last": 1, "logprobs": true, "top_logprobs": 1, "raw_output": true,
            "perf_metrics_in_response": true, "metadata": {"a": "b"}, "service_tier": "priority",
            "prediction": {"type": "content", "content": "x"}, "prompt_cache_isolation_key": "k",
            "reasoning_effort": "none", "top_k": 40, "min_p": 0.1, "user": "u",
        });
        server.ok(members).await;
        assert_eq!(
            server.complete(json!({"foo": 1})).await.error().1,
            "unknown_parameter"
        );
        let error = server
            .complete(json!({"sampling_mask": true}))
            .await
            .error();
        assert_eq!(error.1, "unsupported_parameter");
    });
}

#[test]
fn a_response_format_may_be_a_grammar() {
    serve_default(async |server| {
        let ask =
            |grammar: &str| json!({"response_format": {"type": "grammar", "grammar": grammar}});
        let object = server.ok(ask("root ::= \"yes\" \"!\"")).await;
        assert_eq!((text_of(&object), finish_of(&object)), ("yes!", "stop"));
        let error = server.complete(ask("root ::= ")).await;
        assert_eq!(error.status, 200, "an empty grammar has the empty text");
        let error = server.complete(ask("root ::= (")).await.error();
        let expected = (
            400,
            "invalid_grammar".into(),
            Some("response_format".into()),
        );
        assert_eq!(error, expected);
    });
}
