//! Specification 4.4 and 8: streaming, choices, logprobs.

use super::*;
use crate::api::switches::LogprobsShape;
use crate::engine::generation::LogprobsMode;

#[test]
fn case_022_stream_options() {
    all_fail(
        InvalidValue,
        &[
            r#""stream_options":{"include_usage":true}"#,
            r#""stream_options":{},"stream":false"#,
            r#""stream_options":{},"stream":null"#,
        ],
    );
    let default = Switches::default();
    let output = streaming(
        r#""stream_options":{"include_usage":null},"stream":true"#,
        &default,
    );
    assert!(output.stream && !output.include_usage && !output.continuous_usage);
    let members = r#""stream":true,"stream_options":{"include_usage":true,"continuous_usage_stats":true,"include_obfuscation":true}"#;
    let output = streaming(members, &default);
    assert!(output.include_usage && output.continuous_usage);
    ok(r#""stream_options":null,"stream":false"#);
}

#[test]
fn always_include_usage_asks_for_it() {
    let always = profile("fireworks");
    assert!(streaming(r#""stream":true"#, &always).include_usage);
    let members = r#""stream":true,"stream_options":{"include_usage":false}"#;
    assert!(streaming(members, &always).include_usage);
    assert!(streaming(r#""stream":true"#, &always).usage_in_last_choice);
    assert!(!streaming(r#""stream":true"#, &Switches::default()).include_usage);
    let extra = Switches::from_json(r#"{"alwaysIncludeUsage":true}"#).unwrap();
    let extra = streaming(r#""stream":true"#, &extra);
    assert!(extra.include_usage && !extra.usage_in_last_choice);
}

#[test]
fn case_044_n_and_best_of() {
    let candidates = |members: &str| {
        let output = ok(members);
        (output.n, output.best_of)
    };
    assert_eq!(candidates(""), (1, 1));
    assert_eq!(candidates(r#""n":3"#), (3, 3));
    assert_eq!(candidates(r#""best_of":3"#), (1, 3));
    assert_eq!(candidates(r#""n":2,"best_of":2"#), (2, 2));
    assert_eq!(candidates(r#""n":2,"best_of":4"#), (2, 4));
    // The limit of best_of is not one of n.
    assert_eq!(candidates(r#""n":100"#), (100, 100));
    fails_at(OutOfRange, "best_of", r#""best_of":1,"n":2"#);
    for members in [
        r#""best_of":3,"n":2,"stream":true"#,
        r#""best_of":2,"stream":true"#,
    ] {
        fails_at(ConflictingParameters, "best_of", members);
    }
    ok(r#""best_of":1,"stream":true"#);
    ok(r#""best_of":2,"n":2,"stream":true"#);
}

#[test]
fn logprobs() {
    let output = ok("");
    assert_eq!(output.logprobs.top, None);
    assert_eq!(output.logprobs.mode, LogprobsMode::Raw);
    assert!(!output.logprobs.tokens_as_ids && !output.echo);
    assert_eq!(ok(r#""logprobs":0"#).logprobs.top, Some(0));
    assert_eq!(ok(r#""logprobs":5.0"#).logprobs.top, Some(5));
    let vllm = profile("vllm");
    let output = ok_with(r#""logprobs":20"#, &vllm);
    assert_eq!(output.logprobs.top, Some(20));
    fails_with(OutOfRange, "logprobs", r#""logprobs":21"#, &vllm);
    let output = ok(r#""return_tokens_as_token_ids":true,"echo":true"#);
    assert!(output.logprobs.tokens_as_ids && output.echo);
}

#[test]
fn the_request_wins_over_logprobs_mode() {
    let mode = |members: &str, switches: &Switches| ok_with(members, switches).logprobs.mode;
    let processed = profile("mistralrs");
    assert_eq!(mode("", &processed), LogprobsMode::Processed);
    let raw = r#""logprobs_mode":"raw""#;
    assert_eq!(mode(raw, &processed), LogprobsMode::Raw);
    let members = r#""logprobs_mode":"processed""#;
    assert_eq!(mode(members, &Switches::default()), LogprobsMode::Processed);
    fails(InvalidValue, r#""logprobs_mode":"cooked""#);
}

#[test]
fn boolean_logprobs_need_top_logprobs_or_the_switch() {
    let listed = |members: &str, switches: &Switches| {
        let logprobs = ok_with(members, switches).logprobs;
        (logprobs.top, logprobs.shape)
    };
    let default = Switches::default();
    let content = |top| (Some(top), LogprobsShape::Content);
    let none = (None, LogprobsShape::Arrays);
    let members = r#""logprobs":true,"top_logprobs":3"#;
    assert_eq!(listed(members, &default), content(3));
    let members = r#""logprobs":true,"top_logprobs":0"#;
    assert_eq!(listed(members, &default), content(0));
    assert_eq!(listed(r#""top_logprobs":0"#, &default), none);
    let fireworks = profile("fireworks");
    assert_eq!(listed(r#""logprobs":true"#, &fireworks), content(0));
    assert_eq!(listed(r#""logprobs":false"#, &fireworks), none);
    assert_eq!(
        listed(r#""logprobs":2"#, &fireworks),
        (Some(2), LogprobsShape::Arrays)
    );
    assert_eq!(listed(r#""logprobs":2"#, &profile("mistralrs")), content(2));
    fails(InvalidValue, r#""top_logprobs":1"#);
    fails(InvalidValue, r#""top_logprobs":1,"logprobs":false"#);
    let members = r#""top_logprobs":1,"logprobs":3"#;
    assert_eq!(listed(members, &default), (Some(1), LogprobsShape::Arrays));
    fails_at(OutOfRange, "logprobs", r#""top_logprobs":1,"logprobs":6"#);
    fails_at(
        InvalidType,
        "logprobs",
        r#""top_logprobs":1,"logprobs":"x""#,
    );
}
