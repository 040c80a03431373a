//! Objects, usage, echo and models (specification 10.1, 10.6 and 13; cases C, 035, 039, 082).

use inpage::api::{ModelState, SystemHost};
use inpage::engine::Clock;
use serde_json::{Value, json};

use crate::fixture::*;

fn keys(object: &Value) -> Vec<&str> {
    object
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect()
}

#[test]
fn case_028_the_object() {
    serve_default(async |server| {
        let (first, second) = (server.ok(json!({})).await, server.ok(json!({})).await);
        assert_ne!(first["id"], second["id"]);
        assert_eq!(first["system_fingerprint"], second["system_fingerprint"]);
        let expected = [
            "id",
            "object",
            "created",
            "model",
            "system_fingerprint",
            "choices",
            "usage",
        ];
        assert_eq!(keys(&first), expected);
        let id = first["id"].as_str().unwrap().strip_prefix("cmpl-").unwrap();
        assert!(id.len() >= 24 && id.bytes().all(|byte| byte.is_ascii_alphanumeric()));
        assert_eq!(first["object"], "text_completion");
        let age_s = SystemHost.now_ms() / 1000 - first["created"].as_u64().unwrap();
        assert!(age_s < 10);
        assert_eq!(first["model"], MODEL_ID);
        let choice = &first["choices"][0];
        let expected = ["index", "text", "logprobs", "finish_reason", "stop_reason"];
        assert_eq!(keys(choice), expected);
        assert_eq!(choice["index"], 0);
        assert_eq!(choice["logprobs"], Value::Null);
        assert_eq!(choice["finish_reason"], "length");
        assert_eq!(choice["stop_reason"], Value::Null);
        let prompt_tokens = server.ids(PROMPT).len();
        let usage = json!({
            "prompt_tokens": prompt_tokens,
            "completion_tokens": 8,
            "total_tokens": prompt_tokens + 8,
        });
        assert_eq!(first["usage"], usage);
    });
}

#[test]
fn case_029_the_default_length_and_none() {
    serve_default(async |server| {
        let body = json!({"model": "default", "prompt": "x", "ignore_eos": true}).to_string();
        let object = server.post(&body).await.json();
        assert_eq!(object["usage"]["completion_tokens"], 16);
        assert_eq!(finish_of(&object), "length");
        let object = server.ok(json!({"max_tokens": 0})).await;
        assert_eq!(object["usage"]["completion_tokens"], 0);
        assert_eq!((text_of(&object), finish_of(&object)), ("", "length"));
        let chunks = server.stream(json!({"max_tokens": 0})).await;
        assert_eq!(chunks.len(), 1);
        assert_eq!((text_of(&chunks[0]), finish_of(&chunks[0])), ("", "length"));
    });
    serve(json!({"defaultMaxTokens": "context"}), async |server| {
        let body = json!({"model": "default", "prompt": "x"}).to_string();
        let usage = server.post(&body).await.json()["usage"].clone();
        assert_eq!(usage["total_tokens"], CONTEXT);
    });
}

#[test]
fn case_030_unknown_models() {
    serve_default(async |server| {
        for stream in [false, true] {
            let members = json!({"model": "no/such-model", "stream": stream});
            let error = server.complete(members).await.error();
            let param = Some("model".to_owned());
            assert_eq!(error, (404, "model_not_found".into(), param));
        }
    });
}

#[test]
fn cases_031_and_032_the_list_of_models() {
    serve_default(async |server| {
        server.handler.set_model("other", ModelState::Unloaded);
        let list = server.get("/v1/models").await.json();
        assert_eq!(list["object"], "list");
        let data = list["data"].as_array().unwrap();
        let ids: Vec<_> = data.iter().map(|entry| entry["id"].clone()).collect();
        assert_eq!(ids, [json!(MODEL_ID), json!("other")]);
        for entry in data {
            assert_eq!(entry["object"], "model");
            assert!(entry["created"].is_u64() && entry["owned_by"].is_string());
        }
        assert_eq!(data[0]["status"], "ready");
        assert_eq!(data[0]["context_length"], CONTEXT);
        assert_eq!(data[0]["max_model_len"], CONTEXT);
        assert_eq!(data[0]["capabilities"], json!(["completions", "chat"]));
        assert_eq!(data[1]["status"], "unloaded");
        for url in [
            "/v1/models/org%2Ffake-model",
            "/v1/models/org/fake-model",
            "/v1/models/default",
        ] {
            assert_eq!(server.get(url).await.json(), data[0], "{url}");
        }
        let error = server.get("/v1/models/nope").await.error();
        let param = Some("model".to_owned());
        assert_eq!(error, (404, "model_not_found".into(), param));
        // Without a template there is no chat.
        server.set_template(None);
        let card = server.get("/v1/models/default").await.json();
        assert_eq!(card["capabilities"], json!(["completions"]));
    });
    serve(json!({"chatTemplate": "x"}), async |server| {
        server.set_template(None);
        let card = server.get("/v1/models/default").await.json();
        assert_eq!(card["capabilities"], json!(["completions", "chat"]));
    });
}

#[test]
fn case_035_prompt_shapes_mean_the_same() {
    serve_default(async |server| {
        let ids = server.ids(PROMPT);
        let mut seen = Vec::new();
        for prompt in [json!(PROMPT), json!([PROMPT]), json!(ids), json!([ids])] {
            let object = server.ok(json!({"prompt": prompt, "temperature": 0})).await;
            assert_eq!(object["usage"]["prompt_tokens"], ids.len());
            seen.push(text_of(&object).to_owned());
        }
        assert!(seen.iter().all(|text| *text == seen[0]));
    });
}

#[test]
fn case_039_empty_prompts() {
    serve_default(async |server| {
        for prompt in [json!(""), Value::Null, json!([""])] {
            let object = server
                .ok(json!({"prompt": prompt, "echo": true, "max_tokens": 0}))
                .await;
            assert_eq!(object["usage"]["prompt_tokens"], 1);
            assert_eq!(text_of(&object), "");
        }
        let object = server
            .ok(json!({"prompt": ["", "hello"], "echo": true, "temperature": 0}))
            .await;
        let [first, second] = choices(&object) else {
            panic!("{object}");
        };
        assert!(!first["text"].as_str().unwrap().starts_with("hello"));
        assert!(second["text"].as_str().unwrap().starts_with("hello"));
    });
}

#[test]
fn case_082_echo() {
    serve_default(async |server| {
        let prompt = "a  b\n\tc ";
        let plain = server
            .text(json!({"prompt": prompt, "temperature": 0}))
            .await;
        let echoed = json!({"prompt": prompt, "temperature": 0, "echo": true});
        assert_eq!(
            server.text(echoed.clone()).await,
            format!("{prompt}{plain}")
        );
        let chunks = server.stream(echoed).await;
        assert!(text_of(&chunks[0]).starts_with(prompt));
        assert_eq!(joined(&chunks), format!("{prompt}{plain}"));
        // Token arrays are echoed as their text, special tokens included.
        let ids = [vec![BOS], bytes("hé"), vec![SEP]].concat();
        let echo = json!({"prompt": ids, "echo": true, "max_tokens": 0});
        assert_eq!(server.text(echo).await, "<s>hé<|sep|>");
    });
}

#[test]
fn the_schema_url_comes_first() {
    serve(
        json!({"schemaUrl": "https://s.example/x"}),
        async |server| {
            let reply = server.complete(json!({})).await;
            assert!(
                reply
                    .text()
                    .starts_with(r#"{"$schema":"https://s.example/x","id""#)
            );
        },
    );
}

#[test]
fn usage_reports_tokens_that_earlier_requests_cached() {
    serve_default(async |server| {
        let ids: Vec<u32> = server.ids("one two three four five six seven eight nine ten eleven");
        assert!(ids.len() > 33);
        let members = json!({"prompt": ids[..34], "max_tokens": 4, "temperature": 0});
        let first = server.ok(members.clone()).await;
        let second = server.ok(members.clone()).await;
        assert_eq!(second["choices"], first["choices"]);
        let usage = |cached_tokens: Option<usize>| {
            let mut usage = json!({
                "prompt_tokens": 34,
                "completion_tokens": 4,
                "total_tokens": 38,
            });
            if let Some(cached_tokens) = cached_tokens {
                usage["prompt_tokens_details"] = json!({"cached_tokens": cached_tokens});
            }
            usage
        };
        assert_eq!(first["usage"], usage(None));
        // A whole page.
        assert_eq!(second["usage"], usage(Some(32)));
        let mut streamed = members.clone();
        streamed["stream_options"] = json!({"include_usage": true});
        let chunks = server.stream(streamed).await;
        assert_eq!(chunks.last().unwrap()["usage"], usage(Some(32)));
        // Each prompt counts once, whatever the number of its candidates. Scored prompts do not use the cache.
        let both = json!({"prompt": [ids[..34], ids[..33]], "n": 2, "max_tokens": 4, "seed": 1});
        let details = |object: &Value| object["usage"]["prompt_tokens_details"].clone();
        let found = details(&server.ok(both).await);
        assert_eq!(found, json!({"cached_tokens": 64}));
        let mut scored = members;
        scored["echo"] = json!(true);
        scored["logprobs"] = json!(1);
        assert_eq!(details(&server.ok(scored).await), Value::Null);
    });
}
