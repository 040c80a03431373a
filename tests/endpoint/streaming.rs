//! Streams (specification 10; cases H).

use futures_util::StreamExt;
use inpage::Error;
use inpage::api::Body;
use serde_json::{Value, json};

use crate::fixture::*;

#[test]
fn case_091_raw_bytes() {
    serve_default(async |server| {
        let reply = server.complete(json!({"stream": true})).await;
        let text = reply.text();
        assert!(text.ends_with("}\n\ndata: [DONE]\n\n"));
        assert!(!text.contains("event:") && !text.contains('\r'));
        assert!(reply.chunks().len() > 1);
    });
}

#[test]
fn case_092_chunks_add_up_to_the_whole() {
    serve_default(async |server| {
        let members = json!({"seed": 4, "temperature": 1, "max_tokens": 20});
        let whole = server.ok(members.clone()).await;
        let chunks = server.stream(members).await;
        assert_eq!(joined(&chunks), text_of(&whole));
        for (index, chunk) in chunks.iter().enumerate() {
            for key in ["id", "created", "model", "system_fingerprint", "object"] {
                assert_eq!(chunk[key], chunks[0][key]);
            }
            assert_eq!(chunk["choices"].as_array().unwrap().len(), 1);
            let choice = &chunk["choices"][0];
            assert_eq!(choice["index"], 0);
            assert_eq!(choice["logprobs"], Value::Null);
            assert!(!choice["text"].as_str().unwrap().is_empty());
            if index + 1 < chunks.len() {
                assert_eq!(choice["finish_reason"], Value::Null);
            } else {
                assert_eq!(
                    choice["finish_reason"],
                    whole["choices"][0]["finish_reason"]
                );
            }
        }
    });
}

#[test]
fn case_094_usage() {
    serve_default(async |server| {
        let members = json!({"seed": 4, "max_tokens": 20});
        let whole = server.ok(members.clone()).await;
        let mut streamed = members.clone();
        streamed["stream_options"] = json!({"include_usage": true});
        let mut chunks = server.stream(streamed.clone()).await;
        let last = chunks.pop().unwrap();
        assert_eq!(last["choices"], json!([]));
        assert_eq!(last["usage"], whole["usage"]);
        assert_eq!(last["id"], chunks[0]["id"]);
        for chunk in &chunks {
            assert_eq!(chunk.get("usage"), Some(&Value::Null));
        }
        // Running totals.
        streamed["stream_options"]["continuous_usage_stats"] = json!(true);
        let mut chunks = server.stream(streamed).await;
        assert_eq!(chunks.pop().unwrap()["usage"], whole["usage"]);
        let totals: Vec<u64> = chunks
            .iter()
            .map(|chunk| chunk["usage"]["completion_tokens"].as_u64().unwrap())
            .collect();
        assert!(totals.is_sorted() && *totals.last().unwrap() == 20);
        // Without include_usage, no chunk has the key.
        let only = json!({"stream_options": {"continuous_usage_stats": true}});
        let chunks = server.stream(only).await;
        assert!(chunks.iter().all(|chunk| chunk.get("usage").is_none()));
    });
    serve(json!({"alwaysIncludeUsage": true}), async |server| {
        let chunks = server.stream(json!({})).await;
        assert!(chunks.last().unwrap()["usage"].is_object());
    });
}

#[test]
fn case_096_a_held_back_stop_leaves_no_trace() {
    serve_default(async |server| {
        for stop in [json!("\n\n"), json!(["d", "zz"])] {
            server.plan.say(bytes("ab\nc d"));
            let members = json!({"stop": stop, "echo": true, "max_tokens": 30});
            let whole = server.ok(members.clone()).await;
            let chunks = server.stream(members).await;
            assert_eq!(joined(&chunks), text_of(&whole));
            assert_eq!(finish_of(chunks.last().unwrap()), finish_of(&whole));
        }
    });
}

#[test]
fn case_100_a_silent_stream_is_kept_alive() {
    serve(json!({"keepAliveMs": 10}), async |server| {
        server.plan.held.set(true);
        let members = json!({"stream": true, "max_tokens": 1});
        // The head does not wait for the prefill.
        let response = server.handler.handle(completion(&body(members))).await;
        assert_eq!(server.engine.active_generations(), 1);
        let Body::Stream(mut stream) = response.body else {
            panic!("not a stream");
        };
        for _ in 0..2 {
            assert_eq!(stream.next().await.unwrap(), b": keep-alive\n\n");
        }
        server.plan.held.set(false);
        let rest = stream.collect::<Vec<_>>().await;
        let events = rest.iter().filter(|event| event.starts_with(b"data: "));
        assert_eq!(events.count(), 2, "one chunk and [DONE]");
    });
}

#[test]
fn a_failure_after_the_head_is_an_event() {
    serve_default(async |server| {
        let error = Error::InvalidLogits { position: 3 };
        *server.plan.failure.borrow_mut() = Some((server.ids(PROMPT).len() + 3, error));
        for members in [json!({"seed": 1}), json!({"temperature": 0})] {
            let mut streamed = members.clone();
            streamed["stream_options"] = json!({"include_usage": true});
            let mut chunks = server.stream(streamed).await;
            let last = chunks.pop().unwrap();
            assert_eq!(error_of(&last), ("invalid_logits".into(), None));
            assert_eq!(last["error"]["type"], "server_error");
            for chunk in &chunks {
                assert_eq!(chunk["choices"][0]["finish_reason"], Value::Null);
            }
            let reply = server.complete(members).await;
            assert_eq!(reply.error().0, 500);
            assert_eq!(reply.header("x-should-retry"), Some("false"));
        }
        *server.plan.failure.borrow_mut() = None;
        server.ok(json!({})).await;
    });
}

#[test]
fn case_098_a_dropped_body_ends_the_generation() {
    serve_default(async |server| {
        let members = json!({"stream": true, "max_tokens": 2000, "ignore_eos": true, "seed": 1});
        let response = server.handler.handle(completion(&body(members))).await;
        let Body::Stream(mut stream) = response.body else {
            panic!("not a stream");
        };
        assert!(stream.next().await.is_some());
        assert_eq!(server.engine.active_generations(), 1);
        drop(stream);
        assert_eq!(server.engine.active_generations(), 0);
        let plain = server.text(json!({"temperature": 0})).await;
        assert_eq!(plain.len(), 8);
    });
}

#[test]
fn a_matched_stop_ends_the_generation() {
    serve_default(async |server| {
        server
            .plan
            .say([bytes("abc"), bytes(&"x".repeat(60))].concat());
        let members = json!({"stream": true, "stop": "c", "max_tokens": 2000, "seed": 1});
        let response = server.handler.handle(completion(&body(members))).await;
        let Body::Stream(stream) = response.body else {
            panic!("not a stream");
        };
        let mut stream = stream.skip_while(|event| {
            let unfinished = String::from_utf8_lossy(event).contains("\"finish_reason\":null");
            std::future::ready(unfinished)
        });
        assert!(stream.next().await.is_some());
        assert_eq!(
            server.engine.active_generations(),
            0,
            "before [DONE] is read"
        );
    });
}
