//! Streams that are cut after each of their events and continued by another run of the same request (specification 10.9).

use inpage::api::Request;
use serde_json::{Value, json};

use crate::fixture::*;

/// Requests with prompts, candidates, echo, scores, stops and constraints, with and without a seed.
fn requests() -> Vec<Value> {
    vec![
        json!({"temperature": 1, "ignore_eos": true, "max_tokens": 12}),
        json!({"temperature": 1, "seed": 7, "n": 2, "ignore_eos": true, "stream_options": {"include_usage": true}}),
        json!({"prompt": ["equal", "equal", "equal"], "temperature": 1.5, "ignore_eos": true}),
        json!({"prompt": ["one prompt that is longer than a page", "two"], "n": 2, "temperature": 1, "max_tokens": 5,
            "echo": true, "logprobs": 2, "return_tokens_as_token_ids": true, "stop": ["zzz"],
            "stream_options": {"include_usage": true, "continuous_usage_stats": true}}),
        json!({"temperature": 1, "max_tokens": 10, "stop": [" ", "e"], "include_stop_str_in_output": true}),
        json!({"grammar": {"type": "regex", "value": "[a-z]{3} [0-9]+"}, "max_tokens": 8}),
        json!({"max_tokens": 0, "echo": true, "stream_options": {"include_usage": true}}),
        json!({"suffix": " the end", "temperature": 1}),
    ]
}

/// The events of a run from `position` on, each with the position after it; at most `limit` of them.
async fn run(
    server: &Server,
    members: &Value,
    position: Option<String>,
    limit: usize,
) -> Vec<Positioned> {
    let mut members = members.clone();
    members["stream"] = json!(true);
    let request = Request {
        position,
        ..completion(&body(members))
    };
    server.events(request, limit).await
}

/// The response that a client receives with these events.
fn reply(events: impl IntoIterator<Item = Vec<u8>>) -> Reply {
    Reply {
        status: 200,
        headers: Vec::new(),
        body: events.into_iter().flatten().collect(),
    }
}

/// The parts of a response that do not depend on how tokens are divided into chunks and on what was cached.
fn compared(reply: &Reply) -> (Vec<Value>, Vec<Value>, Option<Value>) {
    let chunks = reply.chunks();
    let heads = chunks.iter().map(|chunk| {
        let head = ["id", "object", "created", "model", "system_fingerprint"];
        Value::from_iter(head.map(|key| (key, chunk[key].clone())))
    });
    let mut heads: Vec<Value> = heads.collect();
    heads.dedup();
    let usages = chunks.iter().filter(|chunk| chunk["choices"] == json!([]));
    let mut usages = usages
        .map(|chunk| chunk["usage"].clone())
        .collect::<Vec<_>>();
    assert!(usages.len() <= 1, "the token counts are sent once");
    for usage in &mut usages {
        usage
            .as_object_mut()
            .unwrap()
            .remove("prompt_tokens_details");
    }
    (heads, joined_choices(&chunks), usages.pop())
}

#[test]
fn a_stream_is_continued_after_any_event() {
    serve_default(async |server| {
        for members in requests() {
            let whole = run(server, &members, None, usize::MAX).await;
            let undisturbed = compared(&reply(whole.iter().map(|(event, _)| event.clone())));
            for cut in 0..whole.len() {
                let position = match cut {
                    0 => continue,
                    _ => whole[cut - 1].1.clone(),
                };
                assert!(position.is_some(), "{members}");
                let rest = run(server, &members, position, usize::MAX).await;
                let delivered = whole[..cut].iter().chain(&rest);
                let joined = compared(&reply(delivered.map(|(event, _)| event.clone())));
                assert_eq!(joined, undisturbed, "{members} cut after {cut} events");
            }
        }
    });
}

#[test]
fn a_stream_is_continued_repeatedly() {
    serve_default(async |server| {
        for members in requests() {
            let whole = run(server, &members, None, 1).await;
            let mut events = whole;
            // One event per run.
            while events.last().unwrap().0 != b"data: [DONE]\n\n" {
                let position = events.last().unwrap().1.clone();
                let next = run(server, &members, position, 1).await;
                assert_eq!(next.len(), 1, "{members}");
                events.extend(next);
                assert!(events.len() < 100, "{members}");
            }
            let (heads, choices, _) = compared(&reply(events.into_iter().map(|(event, _)| event)));
            assert_eq!(heads.len(), 1, "{members}");
            assert!(choices.iter().all(|it| !it["finish_reason"].is_null()));
        }
    });
}

#[test]
fn different_tokens_end_the_stream() {
    serve_default(async |server| {
        let members = json!({"temperature": 1, "seed": 1, "ignore_eos": true});
        let position = run(server, &members, None, 3).await.pop().unwrap().1;
        let position = position.unwrap();
        let other = position.replace(r#""seeds":[1]"#, r#""seeds":[2]"#);
        assert_ne!(other, position);
        let rest = reply(
            run(server, &members, Some(other), usize::MAX)
                .await
                .into_iter()
                .map(|(event, _)| event),
        );
        let [failure] = &rest.chunks()[..] else {
            panic!("{}", rest.text());
        };
        assert_eq!(error_of(failure).0, "internal_error");
        assert!(rest.text().contains("cannot be continued"));
    });
}

#[test]
fn positions_of_other_requests_and_other_texts_are_refused() {
    serve_default(async |server| {
        let position = run(server, &json!({"n": 2}), None, 1)
            .await
            .pop()
            .unwrap()
            .1;
        for position in [position, Some("{}".to_owned()), Some(String::new())] {
            let request = Request {
                position,
                ..completion(&body(json!({"stream": true})))
            };
            assert_eq!(server.send(request).await.error().0, 500);
        }
    });
}
