//! Arbitrary and damaged bodies of `POST /embeddings` through `Handler::handle`: every answer is the object of
//! specification 19.4 or an error of the catalog (specification 2.2).

use inpage::api::Request;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::embeddings::{EMBEDDER, Server, WIDTH, serve};
use crate::fixture::{Reply, VOCAB, error_of, read, request};

/// Status, type, code, and whether `param` names a field. Errors that a body can cause.
const ERRORS: &[(u16, &str, &str, bool)] = &[
    (400, "invalid_request_error", "invalid_json", false),
    (400, "invalid_request_error", "invalid_body", false),
    (
        400,
        "invalid_request_error",
        "missing_required_parameter",
        true,
    ),
    (400, "invalid_request_error", "invalid_type", true),
    (400, "invalid_request_error", "out_of_range", true),
    (400, "invalid_request_error", "invalid_value", true),
    (
        400,
        "invalid_request_error",
        "context_length_exceeded",
        true,
    ),
    (404, "invalid_request_error", "model_not_found", true),
];
const MAX_MESSAGE_BYTES: usize = 2000;

/// Texts that the route knows, and others.
fn text() -> impl Strategy<Value = String> {
    const WORDS: &[&str] = &["", "default", EMBEDDER, "float", "base64", "a quick"];
    prop_oneof![
        prop::sample::select(WORDS).prop_map(str::to_owned),
        ".{0,12}"
    ]
}

fn leaf() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (0..VOCAB + 2).prop_map(Value::from),
        (0_u32..5).prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        text().prop_map(Value::from),
    ]
}

fn any_json() -> impl Strategy<Value = Value> {
    leaf().prop_recursive(4, 24, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec((text(), inner), 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

/// Values of `input`, most of them valid.
fn input() -> impl Strategy<Value = Value> {
    let ids = || prop::collection::vec(0..VOCAB, 1..6);
    prop_oneof![
        text().prop_map(Value::from),
        prop::collection::vec(text(), 1..5).prop_map(Value::from),
        ids().prop_map(Value::from),
        prop::collection::vec(ids(), 1..4).prop_map(|lists| json!(lists)),
        any_json(),
    ]
}

/// A body with an input and a model, and other members.
fn body() -> impl Strategy<Value = Map<String, Value>> {
    const NAMES: &[&str] = &["encoding_format", "dimensions", "user", "model", "prompt"];
    let name = prop_oneof![
        prop::sample::select(NAMES).prop_map(str::to_owned),
        "[a-z]{1,5}"
    ];
    let others = prop::collection::vec((name, any_json()), 0..3);
    (input(), others).prop_map(|(input, others)| {
        let mut body = Map::from_iter([
            ("model".to_owned(), json!("default")),
            ("input".to_owned(), input),
        ]);
        body.extend(others);
        body
    })
}

async fn send(server: &Server, body: &[u8]) -> Reply {
    let headers = [("content-type", "application/json")];
    let request = Request {
        body: body.to_vec(),
        ..request("POST", "/v1/embeddings", &headers, "")
    };
    read(server.handler.handle(request).await).await
}

/// The number of inputs of a valid value of `input`.
fn count(input: &Value) -> usize {
    match input {
        Value::Array(elements) if !elements[0].is_number() => elements.len(),
        _ => 1,
    }
}

/// Checks an answer to a body, which is an object if the answer is no error.
fn check(reply: &Reply, body: &[u8]) {
    let shown = String::from_utf8_lossy(body);
    let answer = reply.json();
    if reply.status != 200 {
        let (code, param) = error_of(&answer);
        let kind = answer["error"]["type"].as_str().unwrap();
        let known = (reply.status, kind, &*code, param.is_some());
        assert!(ERRORS.contains(&known), "{shown}: {}", reply.text());
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(message.len() < MAX_MESSAGE_BYTES, "{shown}: {message}");
        return;
    }
    let body: Map<String, Value> = serde_json::from_slice(body).unwrap();
    let data = answer["data"].as_array().unwrap();
    assert_eq!(data.len(), count(&body["input"]), "{shown}");
    let width = body.get("dimensions").and_then(Value::as_f64);
    let width = width.map_or(WIDTH, |dimensions| dimensions as usize);
    for (index, item) in data.iter().enumerate() {
        let embedding = &item["embedding"];
        assert_eq!(
            *item,
            json!({"object": "embedding", "index": index, "embedding": embedding})
        );
        let elements = match embedding {
            Value::String(base64) => {
                assert_eq!(body["encoding_format"], "base64", "{shown}");
                base64.trim_end_matches('=').len() * 3 / 4 / size_of::<f32>()
            }
            Value::Array(numbers) => {
                assert!(numbers.iter().all(Value::is_f64), "{shown}: {embedding}");
                numbers.len()
            }
            other => panic!("{shown}: {other}"),
        };
        assert_eq!(elements, width, "{shown}");
    }
    let tokens = answer["usage"]["prompt_tokens"].as_u64().unwrap();
    assert!(tokens >= data.len() as u64, "{shown}");
    let usage = json!({"prompt_tokens": tokens, "total_tokens": tokens});
    let expected = json!({"object": "list", "data": data, "model": EMBEDDER, "usage": usage});
    assert_eq!(answer, expected, "{shown}");
}

proptest! {
    #[test]
    fn arbitrary_bodies_get_vectors_or_an_error(body in body()) {
        serve(json!({}), async |server| {
            let body = Value::Object(body).to_string().into_bytes();
            check(&send(server, &body).await, &body);
        });
    }

    #[test]
    fn damaged_bodies_get_vectors_or_an_error(
        body in body(),
        damages in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0..4), 1..4),
    ) {
        serve(json!({}), async |server| {
            let mut body = Value::Object(body).to_string().into_bytes();
            for (place, byte, kind) in damages {
                if body.is_empty() {
                    break;
                }
                let place = place.index(body.len());
                match kind {
                    0 => body[place] = byte,
                    1 => body.insert(place, byte),
                    2 => drop(body.remove(place)),
                    _ => body.truncate(place),
                }
            }
            check(&send(server, &body).await, &body);
        });
    }
}
