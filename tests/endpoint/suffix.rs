//! `suffix`, appended or filled in (specification 4.2; case 077), and `stop_reason` (6.4).

use serde_json::{Value, json};

use crate::fixture::*;

#[test]
fn case_077_the_suffix_is_appended() {
    serve_default(async |server| {
        server.plan.say(bytes("abc"));
        let plain = server.ok(json!({"logprobs": 0})).await;
        for (members, text) in [
            (json!({}), "abcXYZ".to_owned()),
            (json!({"echo": true}), format!("{PROMPT}abcXYZ")),
            (json!({"stop": "b"}), "aXYZ".to_owned()),
            (json!({"max_tokens": 2}), "abXYZ".to_owned()),
            (json!({"max_tokens": 0}), "XYZ".to_owned()),
        ] {
            let mut members = members.clone();
            members["suffix"] = json!("XYZ");
            let whole = server.ok(members.clone()).await;
            assert_eq!(text_of(&whole), text);
            let chunks = server.stream(members).await;
            assert_eq!(joined(&chunks), text);
            assert!(text_of(chunks.last().unwrap()).ends_with("XYZ"));
        }
        let object = server.ok(json!({"logprobs": 0, "suffix": "XYZ"})).await;
        assert_eq!(object["usage"], plain["usage"]);
        let logprobs = |object: &Value| object["choices"][0]["logprobs"].clone();
        assert_eq!(logprobs(&object), logprobs(&plain));
        // Stop strings do not match the suffix.
        let object = server.ok(json!({"suffix": "XYZ", "stop": "cX"})).await;
        assert_eq!(text_of(&object), "abcXYZ");
    });
}

#[test]
fn the_model_fills_in_the_middle() {
    serve_default(async |server| {
        let members = json!({
            "prompt": "né", "suffix": "yz", "suffix_mode": "fim", "temperature": 0,
            "echo": true, "logprobs": 0,
        });
        let object = server.ok(members.clone()).await;
        let ids = [
            vec![BOS, PRE],
            bytes("né"),
            vec![PRE + 1],
            bytes("yz"),
            vec![PRE + 2],
        ];
        let ids = ids.concat();
        assert_eq!(object["usage"]["prompt_tokens"], ids.len());
        // The text is the prompt and the middle.
        let alone = server.text(json!({"prompt": ids, "temperature": 0})).await;
        assert_eq!(text_of(&object), format!("né{alone}"));
        let offsets = object["choices"][0]["logprobs"]["text_offset"]
            .as_array()
            .unwrap();
        assert_eq!(json!(offsets[..10]), json!([0, 0, 0, 1, 1, 2, 2, 2, 2, 2]));
        let chunks = server.stream(members).await;
        assert_eq!(joined_choices(&chunks), choices(&object));

        server
            .handler
            .set_model(MODEL_ID, server.ready_without_middle());
        let members = json!({"suffix": "yz", "suffix_mode": "fim"});
        let error = server.complete(members).await.error();
        let param = Some("suffix".to_owned());
        assert_eq!(error, (400, "unsupported_parameter".into(), param));
        server.ok(json!({"suffix": "yz"})).await;
    });
}

#[test]
fn a_choice_says_what_stopped_it() {
    serve_default(async |server| {
        let says = [bytes("abc"), vec![SEP], bytes("d")].concat();
        for (stop, expected) in [
            (json!(["x", "bc"]), json!("bc")),
            (json!(["x", "<|sep|>"]), json!(SEP)),
            (json!("x"), Value::Null),
        ] {
            server.plan.say(says.clone());
            let members = json!({"stop": stop, "max_tokens": 30});
            let object = server.ok(members.clone()).await;
            assert_eq!(object["choices"][0].get("stop_reason"), Some(&expected));
            assert_eq!(finish_of(&object), "stop");
            let chunks = server.stream(members).await;
            let (last, before) = chunks.split_last().unwrap();
            assert_eq!(last["choices"][0]["stop_reason"], expected);
            let reasons = before
                .iter()
                .filter_map(|chunk| chunk["choices"][0].get("stop_reason"));
            assert_eq!(reasons.count(), 0);
        }
    });
}
