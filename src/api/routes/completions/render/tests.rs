//! Bodies as text: their keys, their order, and members that may be absent.

use super::*;
use crate::api::run::{Entry, Finish, TopEntry};

fn head(schema_url: Option<&str>) -> Head {
    Head {
        schema_url: schema_url.map(str::to_owned),
        id: "cmpl-1".into(),
        created_s: 7,
        model: "m".into(),
        system_fingerprint: "fp_0".into(),
    }
}

const NONE: Members = Members {
    logprobs: None,
    token_ids: false,
    perf_metrics: false,
    timings: false,
};

fn finish(reason: FinishReason) -> Finish {
    Finish {
        reason,
        stop_reason: None,
        tool_call: None,
        has_calls: false,
        mean_logprob: None,
        raw: None,
    }
}

fn text(body: Vec<u8>) -> String {
    String::from_utf8(body).unwrap()
}

#[test]
fn keys_and_their_order() {
    let piece = Piece {
        text: "a\n".into(),
        finish: Some(finish(FinishReason::Length)),
        ..Piece::default()
    };
    let choice = CompletionChoice::new(0, &piece, NONE);
    let usage = Some(Some(Usage::new(TokenCounts {
        prompt: 2,
        cached: 0,
        completion: 3,
        reasoning: 0,
        predicted: None,
    })));
    assert_eq!(
        text(completion(&head(None), &[choice], usage, None)),
        r#"{"id":"cmpl-1","object":"text_completion","created":7,"model":"m","system_fingerprint":"fp_0","choices":[{"index":0,"text":"a\n","logprobs":null,"finish_reason":"length","stop_reason":null}],"usage":{"prompt_tokens":2,"completion_tokens":3,"total_tokens":5}}"#
    );
}

fn top(token: &str, logprob: f32) -> TopEntry {
    TopEntry {
        token: token.into(),
        bytes: token.as_bytes().to_vec(),
        logprob,
    }
}

#[test]
fn logprobs_as_content() {
    let entry = |logprob: Option<f32>| Entry {
        token: "b".into(),
        bytes: b"b".to_vec(),
        logprob,
        top: logprob.map(|logprob| vec![top("\n", -0.05), top("b", logprob)]),
        ..Entry::default()
    };
    let piece = Piece {
        entries: vec![entry(None), entry(Some(-0.5))],
        ..Piece::default()
    };
    let members = Members {
        logprobs: Some(LogprobsShape::Content),
        ..NONE
    };
    let choice = text(to_json(&CompletionChoice::new(0, &piece, members)));
    let expected = r#""logprobs":{"content":[{"token":"b","logprob":null,"bytes":[98],"top_logprobs":[]},{"token":"b","logprob":-0.5,"bytes":[98],"top_logprobs":[{"token":"\n","logprob":-0.05,"bytes":[10]},{"token":"b","logprob":-0.5,"bytes":[98]}]}]}"#;
    assert!(choice.contains(expected), "{choice}");
}

#[test]
fn optional_members() {
    let mut piece = Piece {
        entries: vec![
            Entry {
                token: "a".into(),
                bytes: b"a".to_vec(),
                logprob: None,
                top: None,
                text_offset: 0,
                ..Entry::default()
            },
            Entry {
                token: "b".into(),
                bytes: b"b".to_vec(),
                logprob: Some(-0.1),
                top: Some(vec![top("z", -0.05), top("b", -0.1)]),
                text_offset: 1,
                ..Entry::default()
            },
        ],
        token_ids: vec![7],
        ..Piece::default()
    };
    let all = Members {
        logprobs: Some(LogprobsShape::Arrays),
        token_ids: true,
        ..NONE
    };
    assert_eq!(
        text(to_json(&CompletionChoice::new(3, &piece, all))),
        r#"{"index":3,"text":"","logprobs":{"tokens":["a","b"],"token_logprobs":[null,-0.1],"top_logprobs":[null,{"z":-0.05,"b":-0.1}],"text_offset":[0,1]},"token_ids":[7],"finish_reason":null}"#
    );
    piece.finish = Some(Finish {
        stop_reason: Some(StopReason::Id(2)),
        ..finish(FinishReason::Stop)
    });
    let choice = text(to_json(&CompletionChoice::new(3, &piece, NONE)));
    assert!(choice.ends_with(r#""finish_reason":"stop","stop_reason":2}"#));
    piece.finish = Some(Finish {
        stop_reason: Some(StopReason::Text("x\"".into())),
        tool_call: Some(grammar::ToolCall {
            name: "f".into(),
            arguments: r#"{"a":1}"#.into(),
        }),
        ..finish(FinishReason::Stop)
    });
    let choice = text(to_json(&CompletionChoice::new(3, &piece, NONE)));
    let (before, call) = choice.split_once(r#","tool_calls":[{"id":"call_"#).unwrap();
    assert!(before.ends_with(r#""stop_reason":"x\"""#));
    let (id, function) = call.split_once('"').unwrap();
    assert!(id.len() >= 16 && id.bytes().all(|byte| byte.is_ascii_alphanumeric()));
    assert_eq!(
        function,
        r#","type":"function","function":{"name":"f","arguments":"{\"a\":1}"}}]}"#
    );
}

#[test]
fn usage_is_absent_null_or_present_and_the_schema_comes_first() {
    let absent = text(completion(&head(None), &[], None, None));
    assert!(!absent.contains("usage"));
    let null = text(completion(&head(None), &[], Some(None), None));
    assert!(null.ends_with(r#""choices":[],"usage":null}"#));
    let schema = text(completion(
        &head(Some("https://s.example")),
        &[],
        None,
        None,
    ));
    assert!(schema.starts_with(r#"{"$schema":"https://s.example","id""#));
}
