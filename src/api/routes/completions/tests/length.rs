//! Specification 4.3 and 11: max_tokens, stop and related fields.

use super::*;
use crate::api::switches::ContextLengthExceededBehavior;

#[test]
fn case_023_max_tokens_and_its_alias() {
    let given = |members: &str| ok(members).length.max_tokens;
    let max_tokens = |members: &str| given(members).map(|given| given.tokens);
    assert_eq!(max_tokens(""), None);
    assert_eq!(max_tokens(r#""max_tokens":0"#), Some(0));
    assert_eq!(max_tokens(r#""max_tokens":3.0"#), Some(3));
    assert_eq!(max_tokens(r#""max_tokens":1e30"#), Some(usize::MAX));
    assert_eq!(max_tokens(r#""max_completion_tokens":3"#), Some(3));
    assert_eq!(
        max_tokens(r#""max_tokens":5,"max_completion_tokens":5.0"#),
        Some(5)
    );
    assert_eq!(
        max_tokens(r#""max_tokens":null,"max_completion_tokens":5"#),
        Some(5)
    );
    fails_at(
        ConflictingParameters,
        "max_completion_tokens",
        r#""max_tokens":5,"max_completion_tokens":6"#,
    );
}

#[test]
fn case_021_stop() {
    assert!(ok(r#""stop":[]"#).length.stop.is_empty());
    assert_eq!(ok(r#""stop":"zzz""#).length.stop, ["zzz"]);
    assert_eq!(ok(r#""stop":["a","b"]"#).length.stop, ["a", "b"]);
    ok(r#""stop":["a","b","c","d"]"#);
    all_fail(InvalidValue, &[r#""stop":["a",""]"#, r#""stop":"""#]);
    for vendor in ["vllm", "mistralrs"] {
        let many = |count| format!(r#""stop":[{}]"#, vec![r#""a""#; count].join(","));
        ok_with(&many(64), &profile(vendor));
        fails_with(OutOfRange, "stop", &many(65), &profile(vendor));
    }
}

#[test]
fn what_ends_a_choice_and_what_is_shown() {
    let length = ok("").length;
    assert!(!length.include_stop && length.skip_special_tokens);
    assert!(!length.ignore_eos && !length.truncate_sequence);
    let members = r#""include_stop_str_in_output":true,"skip_special_tokens":false,
        "ignore_eos":true,"truncate_sequence":true"#;
    let length = ok(members).length;
    assert!(length.include_stop && !length.skip_special_tokens);
    assert!(length.ignore_eos && length.truncate_sequence);
}

#[test]
fn the_request_wins_over_stop_text_included() {
    let fireworks = profile("fireworks");
    assert!(ok_with("", &fireworks).length.include_stop);
    let members = r#""include_stop_str_in_output":false"#;
    assert!(!ok_with(members, &fireworks).length.include_stop);
    let members = r#""include_stop_str_in_output":null"#;
    assert!(ok_with(members, &fireworks).length.include_stop);
}

#[test]
fn context_length_exceeded_behavior() {
    fails(
        InvalidValue,
        r#""context_length_exceeded_behavior":"explode""#,
    );
    let behavior =
        |members: &str, switches: &Switches| ok_with(members, switches).length.exceeded_behavior;
    let openai = profile("openai");
    let default = Switches::default();
    use ContextLengthExceededBehavior::{Error, Truncate};
    assert_eq!(behavior("", &default), Truncate);
    assert_eq!(behavior("", &openai), Error);
    let error = r#""context_length_exceeded_behavior":"error""#;
    assert_eq!(behavior(error, &default), Error);
    let truncate = r#""context_length_exceeded_behavior":"truncate""#;
    assert_eq!(behavior(truncate, &openai), Truncate);
}
