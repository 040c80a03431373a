//! Context rules over the wire (specification 11; cases 113 and 114).

use serde_json::json;

use crate::fixture::*;

/// A prompt of `count` ids.
fn prompt(count: usize) -> Vec<u32> {
    bytes(&"abcdefghij".repeat(count / 10 + 1))[..count].to_vec()
}

#[test]
fn case_113_the_completion_does_not_fit() {
    serve_default(async |server| {
        let base = || {
            json!({
                "prompt": prompt(CONTEXT - 4),
                "max_tokens": 50,
                "ignore_eos": true,
                "temperature": 0,
            })
        };
        let mut texts = Vec::new();
        for (behavior, truncate) in [
            (None, false),
            (Some("truncate"), false),
            (Some("truncate"), true),
        ] {
            let mut members = base();
            members["context_length_exceeded_behavior"] = json!(behavior);
            members["truncate_sequence"] = json!(truncate);
            let object = server.ok(members).await;
            assert_eq!(object["usage"]["completion_tokens"], 4);
            assert_eq!(finish_of(&object), "length");
            texts.push(text_of(&object).to_owned());
        }
        assert!(texts.iter().all(|text| *text == texts[0]));
        let mut members = base();
        members["context_length_exceeded_behavior"] = json!("error");
        let error = server.complete(members).await.error();
        let param = Some("max_tokens".to_owned());
        assert_eq!(error, (400, "context_length_exceeded".into(), param));
    });
}

#[test]
fn case_114_the_prompt_does_not_fit() {
    serve_default(async |server| {
        for (length, max_tokens, behavior) in [
            (CONTEXT + 10, 8, json!(null)),
            (CONTEXT + 10, 8, json!("truncate")),
            (CONTEXT + 10, 8, json!("error")),
            (CONTEXT, 1, json!(null)),
        ] {
            let members = json!({
                "prompt": prompt(length),
                "max_tokens": max_tokens,
                "context_length_exceeded_behavior": behavior,
            });
            let error = server.complete(members).await.error();
            let param = Some("prompt".to_owned());
            assert_eq!(error, (400, "context_length_exceeded".into(), param));
        }
        let members = json!({"prompt": prompt(CONTEXT), "max_tokens": 0, "echo": true});
        let object = server.ok(members).await;
        assert_eq!(object["usage"]["prompt_tokens"], CONTEXT);
        assert_eq!(text_of(&object).len(), CONTEXT);
    });
}

#[test]
fn truncate_sequence_keeps_the_end_and_says_so() {
    serve_default(async |server| {
        let text: String = ('a'..='z').cycle().take(CONTEXT + 10).collect();
        let members = json!({
            "prompt": text,
            "max_tokens": 8,
            "truncate_sequence": true,
            "echo": true,
            "temperature": 0,
        });
        let reply = server.complete(members).await;
        let object = reply.json();
        let kept = CONTEXT - 8;
        // The automatic start token is dropped as well.
        let dropped = text.len() + 1 - kept;
        assert_eq!(
            reply.header("x-prompt-truncated"),
            Some(&*dropped.to_string())
        );
        assert_eq!(object["usage"]["prompt_tokens"], kept);
        assert!(text_of(&object).starts_with(&text[text.len() - kept..]));
        assert_eq!(text_of(&object).len(), CONTEXT);
        // The model sees the same as in a request with only the kept ids.
        let ids = bytes(&text[text.len() - kept..]);
        let alone = server
            .text(json!({"prompt": ids, "max_tokens": 8, "temperature": 0}))
            .await;
        assert!(text_of(&object).ends_with(&alone));
        let reply = server.complete(json!({"truncate_sequence": true})).await;
        assert_eq!(reply.header("x-prompt-truncated"), None);
    });
}

#[test]
fn a_text_far_beyond_the_context_is_refused_before_it_is_tokenized() {
    serve_default(async |server| {
        let text = "own fable ".repeat(30_000);
        let reply = server.complete(json!({"prompt": ["x", text]})).await;
        let expected = (
            "context_length_exceeded".to_owned(),
            Some("prompt".to_owned()),
        );
        assert_eq!(error_of(&reply.json()), expected);
        assert!(reply.text().contains("300000 bytes"), "{}", reply.text());
        // Truncating it is still possible.
        let members = json!({"prompt": text, "truncate_sequence": true, "max_tokens": 2});
        assert_eq!(server.complete(members).await.status, 200);
    });
}

/// LiteLLM looks for "this model's maximum context length is" in the message, in any case, LangChain for the code and for
/// "maximum context length".
#[test]
fn clients_recognize_what_exceeds_the_context() {
    serve_default(async |server| {
        let long = "x".repeat(CONTEXT);
        let messages = json!([{"role": "user", "content": long}]);
        let known =
            format!("This model's maximum context length is {CONTEXT} tokens. The prompt has ");
        for (url, members, param, end) in [
            (
                "completions",
                json!({"prompt": prompt(70)}),
                "prompt",
                "70 tokens.",
            ),
            (
                "completions",
                json!({"prompt": prompt(70), "n_predict": 3}),
                "prompt",
                "70 tokens, and n_predict is 3.",
            ),
            (
                "completions",
                json!({
                    "prompt": prompt(60), "max_completion_tokens": 8,
                    "context_length_exceeded_behavior": "error",
                }),
                "max_completion_tokens",
                "60 tokens, and max_completion_tokens is 8.",
            ),
            (
                "chat/completions",
                json!({"messages": messages}),
                "messages",
                "69 tokens.",
            ),
            (
                "responses",
                json!({"input": long, "max_output_tokens": 5}),
                "input",
                "69 tokens, and max_output_tokens is 5.",
            ),
        ] {
            let mut body = members;
            body["model"] = json!("default");
            body["stream"] = json!(true);
            let request = inpage::api::Request {
                url: format!("/v1/{url}"),
                ..completion(&body.to_string())
            };
            let reply = server.send(request).await;
            let expected = (400, "context_length_exceeded".into(), Some(param.into()));
            assert_eq!(reply.error(), expected, "{body}");
            let message = &reply.json()["error"]["message"];
            assert_eq!(message, &json!(format!("{known}{end}")), "{body}");
        }
    });
}
