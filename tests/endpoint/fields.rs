//! Fields over the wire (cases B, 038, 107, 111, 112). Each rule is tested beside the parser. These
//! tests check the responses.

use serde_json::{Value, json};

use crate::fixture::*;

#[test]
fn case_015_unknown_fields() {
    let members = || json!({"foo": 1, "x_bar": {"a": []}});
    serve_default(async |server| {
        for _ in 0..3 {
            server.ok(members()).await;
        }
        let warnings = server.host.warnings.borrow();
        assert_eq!(warnings.len(), 2, "one per name: {warnings:?}");
        assert!(warnings[0].contains("\"foo\""));
    });
    serve(json!({"unknownFields": "error"}), async |server| {
        let (status, code, param) = server.complete(members()).await.error();
        assert_eq!((status, &*code), (400, "unknown_parameter"));
        assert!(matches!(param.as_deref(), Some("foo" | "x_bar")));
        assert!(server.host.warnings.borrow().is_empty());
    });
}

#[test]
fn cases_016_to_018_errors_name_their_field() {
    serve_default(async |server| {
        for (members, code, param) in [
            (
                json!({"model": null}),
                "missing_required_parameter",
                "model",
            ),
            (json!({"temperature": "1"}), "invalid_type", "temperature"),
            (json!({"temperature": 2.1}), "out_of_range", "temperature"),
            (json!({"stop": ["a", ""]}), "invalid_value", "stop"),
            (
                json!({"stop": ["1", "2", "3", "4", "5"]}),
                "out_of_range",
                "stop",
            ),
            (
                json!({"logit_bias": {"0": "1"}}),
                "invalid_type",
                "logit_bias",
            ),
            (
                json!({"grammar": {"type": "gbnf"}}),
                "invalid_value",
                "grammar",
            ),
            (
                json!({"tool_choice": "required"}),
                "invalid_value",
                "tool_choice",
            ),
        ] {
            let shown = members.to_string();
            let error = server.complete(members).await.error();
            assert_eq!(error, (400, code.into(), Some(param.into())), "{shown}");
        }
        let no_prompt = server.post(r#"{"model":"default"}"#).await.error();
        let expected = "missing_required_parameter".to_owned();
        assert_eq!(no_prompt, (400, expected, Some("prompt".into())));
    });
}

#[test]
fn images_are_refused() {
    serve_default(async |server| {
        let members = json!({"images": ["data:image/png;base64,AAAA"]});
        let error = server.complete(members).await.error();
        let param = Some("images".to_owned());
        assert_eq!(error, (400, "unsupported_parameter".into(), param));
    });
}

#[test]
fn case_019_edges_and_neutral_values() {
    serve_default(async |server| {
        for (name, value) in [
            ("temperature", json!(0)),
            ("temperature", json!(2)),
            ("top_p", json!(0)),
            ("top_p", json!(1)),
            ("min_p", json!(0)),
            ("min_p", json!(1)),
            ("top_k", json!(-1)),
            ("top_k", json!(0)),
            ("top_k", json!(1)),
            ("top_k", json!(1_000_000_000)),
            ("max_tokens", json!(0)),
            ("n", json!(1)),
            ("user", json!("")),
            ("stop", Value::Null),
            ("stop", json!([])),
            ("stop", json!("zzz")),
            ("images", json!([])),
            ("images", Value::Null),
            ("logit_bias", json!({})),
            ("presence_penalty", json!(0)),
            ("repetition_penalty", json!(1)),
            ("seed", json!(i64::MIN)),
            ("seed", json!(i64::MAX)),
            ("seed", json!(-1)),
            ("seed", json!(0)),
        ] {
            server.ok(json!({name: value})).await;
        }
        let raw = r#"{"model":"default","prompt":"x","max_tokens":3.0,"n":1e0,"ignore_eos":true}"#;
        let object = server.post(raw).await.json();
        assert_eq!(object["usage"]["completion_tokens"], 3);
        let raw = r#"{"model":"default","prompt":"x","seed":9223372036854775808}"#;
        let error = server.post(raw).await.error();
        assert_eq!(error, (400, "out_of_range".into(), Some("seed".into())));
    });
}

#[test]
fn case_022_stream_options() {
    serve_default(async |server| {
        let usage = json!({"include_usage": true});
        for members in [
            json!({"stream_options": usage}),
            json!({"stream_options": usage, "stream": false}),
        ] {
            let error = server.complete(members).await.error();
            let param = Some("stream_options".to_owned());
            assert_eq!(error, (400, "invalid_value".into(), param));
        }
        let chunks = server.stream(json!({"stream_options": {}})).await;
        assert!(chunks.iter().all(|chunk| chunk.get("usage").is_none()));
    });
}

#[test]
fn case_023_max_completion_tokens() {
    serve_default(async |server| {
        let ask = |max_tokens: u32, alias: u32| json!({"max_tokens": max_tokens, "max_completion_tokens": alias, "ignore_eos": true});
        let object = server.ok(ask(5, 5)).await;
        assert_eq!(object["usage"]["completion_tokens"], 5);
        let error = server.complete(ask(5, 6)).await.error();
        assert_eq!(error.1, "conflicting_parameters");
        let body = r#"{"model":"default","prompt":"x","max_completion_tokens":3}"#;
        let object = server.post(body).await.json();
        assert_eq!(object["usage"]["completion_tokens"], 3);
    });
}

#[test]
fn case_027_a_refused_stream_is_an_ordinary_error() {
    serve_default(async |server| {
        for (mut members, status) in [
            (json!({"temperature": 9}), 400),
            (json!({"model": "no/such-model"}), 404),
            (json!({"grammar": {"type": "regex"}}), 400),
            (json!({"prompt": []}), 400),
            (json!({"prompt": [VOCAB]}), 400),
            (json!({"prompt": "x".repeat(2 * CONTEXT)}), 400),
        ] {
            members["stream"] = json!(true);
            assert_eq!(server.complete(members).await.error().0, status);
        }
    });
}

#[test]
fn case_038_invalid_prompts() {
    serve_default(async |server| {
        for prompt in [
            json!([]),
            json!([[]]),
            json!(["a", 1]),
            json!([1, "a"]),
            json!([[1], ["a"]]),
            json!([[[1]]]),
            json!([-1]),
            json!([1.5]),
            json!([VOCAB]),
            json!([[0], [VOCAB]]),
            json!({}),
            json!(5),
        ] {
            let (status, _, param) = server.complete(json!({"prompt": prompt})).await.error();
            assert_eq!(
                (status, param.as_deref()),
                (400, Some("prompt")),
                "{prompt}"
            );
        }
        let error = server.complete(json!({"prompt": [VOCAB]})).await.error();
        assert_eq!(error.1, "out_of_range");
        server.ok(json!({"prompt": [VOCAB - 1]})).await;
    });
}

#[test]
fn case_111_tools_that_are_ignored() {
    serve_default(async |server| {
        let plain = server.text(json!({"temperature": 0})).await;
        let none = json!({"temperature": 0, "tools": null, "tool_choice": "none"});
        assert_eq!(server.text(none).await, plain);
        let tools = json!([{"type": "function", "function": {"name": "f"}}]);
        let none = json!({"temperature": 0, "tools": tools, "tool_choice": "none"});
        assert_eq!(server.text(none).await, plain);
    });
}
