//! The effects of vendors' profiles on answers (specification 14). Their columns are tested beside the switches.

use serde_json::json;

use crate::fixture::*;

#[test]
fn fireworks_serves_its_own_base_path() {
    let url = "/inference/v1/completions";
    let post = || {
        let body = body(json!({}));
        request("POST", url, &[("Content-Type", "application/json")], &body)
    };
    serve(json!({"profile": "fireworks"}), async |server| {
        assert_eq!(server.send(post()).await.status, 200);
        assert_eq!(server.get("/inference/v1/models").await.status, 200);
        assert_eq!(server.get("/v1/models").await.status, 200);
    });
    serve_default(async |server| assert_eq!(server.send(post()).await.status, 404));
}

#[test]
fn fireworks_puts_usage_into_the_last_chunk_with_a_choice() {
    serve(json!({"profile": "fireworks"}), async |server| {
        for members in [
            json!({"seed": 4}),
            json!({"seed": 4, "n": 3, "prompt": ["a", "bc"]}),
            json!({"seed": 4, "max_tokens": 0}),
            json!({"seed": 4, "stream_options": {"include_usage": true}}),
        ] {
            let mut plain = members.clone();
            plain.as_object_mut().unwrap().remove("stream_options");
            let whole = server.ok(plain).await;
            let mut chunks = server.stream(members.clone()).await;
            assert_eq!(joined_choices(&chunks), choices(&whole), "{members}");
            let last = chunks.pop().unwrap();
            assert_eq!(last["choices"].as_array().unwrap().len(), 1);
            assert!(!last["choices"][0]["finish_reason"].is_null());
            assert_eq!(
                last["usage"]["total_tokens"],
                whole["usage"]["total_tokens"]
            );
            for chunk in chunks {
                assert!(chunk["usage"].is_null() && chunk.get("usage").is_some());
                assert_eq!(chunk["choices"].as_array().unwrap().len(), 1);
            }
        }
        // Running totals of the choice come before the totals of the request.
        let options = json!({"continuous_usage_stats": true});
        let members = json!({"seed": 4, "n": 2, "stream_options": options});
        let chunks = server.stream(members).await;
        assert!(chunks.iter().all(|chunk| chunk["usage"].is_object()));
        let last = &chunks[chunks.len() - 1]["usage"];
        let of_one = &chunks[chunks.len() - 2]["usage"];
        assert!(last["completion_tokens"].as_u64() > of_one["completion_tokens"].as_u64());
    });
}

#[test]
fn mistralrs_answers_422_and_lists_contents() {
    serve(json!({"profile": "mistralrs"}), async |server| {
        for members in [
            json!({"temperature": "1"}),
            json!({"n": 0}),
            json!({"prompt": [VOCAB]}),
            json!({"grammar": {"type": "regex", "value": "("}}),
        ] {
            assert_eq!(
                server.complete(members.clone()).await.error().0,
                422,
                "{members}"
            );
        }
        assert_eq!(server.post("[]").await.error().0, 422);
        assert_eq!(server.post("{").await.error().0, 400);
        let error = server.complete(json!({"model": "none"})).await.error();
        assert_eq!(error.0, 404);
        let members = json!({
            "logprobs": 2, "max_tokens": 3, "temperature": 3, "logit_bias": {"5": 500},
            "best_of": 21, "echo": true, "prompt": "ab",
        });
        let object = server.ok(members).await;
        let content = object["choices"][0]["logprobs"]["content"]
            .as_array()
            .unwrap();
        // The start of the text, two bytes, and three tokens.
        assert_eq!(content.len(), 6);
        assert!(content[0]["logprob"].is_null());
        assert_eq!(content[1]["token"], "a");
        assert_eq!(content[1]["bytes"], json!([97]));
        for entry in &content[1..] {
            assert!(entry["logprob"].as_f64().unwrap() <= 0.0);
            assert!(entry["top_logprobs"].as_array().unwrap().len() >= 2);
            let bytes = &entry["top_logprobs"][0]["bytes"];
            assert!(bytes.is_array());
        }
        // The bias forces the byte 1.
        assert_eq!(content[5]["bytes"], json!([1]));
    });
}

#[test]
fn boolean_logprobs_list_contents_streamed_or_not() {
    serve_default(async |server| {
        let members = json!({"logprobs": true, "top_logprobs": 2, "seed": 1, "max_tokens": 5});
        let object = server.ok(members.clone()).await;
        let mut arrays = members.clone();
        arrays["logprobs"] = json!(2);
        arrays["top_logprobs"] = json!(null);
        let arrays = server.ok(arrays).await;
        let content = object["choices"][0]["logprobs"]["content"]
            .as_array()
            .unwrap();
        assert_eq!(content.len(), 5);
        for (index, entry) in content.iter().enumerate() {
            let listed = &arrays["choices"][0]["logprobs"];
            assert_eq!(entry["token"], listed["tokens"][index]);
            assert_eq!(entry["logprob"], listed["token_logprobs"][index]);
            for top in entry["top_logprobs"].as_array().unwrap() {
                let name = top["token"].as_str().unwrap();
                assert_eq!(top["logprob"], listed["top_logprobs"][index][name]);
            }
        }
        let chunks = server.stream(members).await;
        assert_eq!(joined_choices(&chunks), choices(&object));
        let error = server.complete(json!({"logprobs": true})).await.error();
        assert_eq!(error.1, "invalid_type");
    });
}
