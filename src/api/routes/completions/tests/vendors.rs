//! Fields of single vendors (specification 4.3 to 4.6, 9.5): vLLM, llama.cpp, Fireworks.

use serde_json::json;

use super::*;
use crate::api::fields::{KeptTokens, PromptTokens};
use crate::grammar::{GrammarSource, Whitespace};

#[test]
fn what_ends_a_choice_and_when() {
    let length = ok(r#""stop_token_ids":[7,8.0],"min_tokens":3,"max_tokens":3"#).length;
    assert_eq!(
        (&length.stop_token_ids[..], length.min_tokens),
        (&[7, 8][..], 3)
    );
    // The default of max_tokens counts, too.
    assert_eq!(ok(r#""min_tokens":16"#).length.min_tokens, 16);
    let context = profile("mistralrs");
    assert_eq!(
        ok_with(r#""min_tokens":999"#, &context).length.min_tokens,
        999
    );
    let ids = vec!["1"; 1025].join(",");
    fails(OutOfRange, &format!(r#""stop_token_ids":[{ids}]"#));
}

#[test]
fn restrictions_are_read() {
    let restrictions = ok(r#""allowed_token_ids":[1,2],"bad_words":["a b"," c"]"#).restrictions;
    assert_eq!(restrictions.allowed_token_ids, Some(vec![1, 2]));
    assert_eq!(restrictions.bad_words, ["a b", " c"]);
    fails(InvalidValue, r#""allowed_token_ids":[]"#);
    fails(InvalidValue, r#""bad_words":[""]"#);
    let words = vec![r#""a""#; 1025].join(",");
    fails(OutOfRange, &format!(r#""bad_words":[{words}]"#));
}

#[test]
fn prompts_are_cut_and_completed_as_asked() {
    let read = |members: &str| ok(members).prompt_tokens;
    let all = PromptTokens {
        add_special: true,
        kept: KeptTokens::All,
    };
    assert_eq!(read(""), all);
    let cut = read(r#""add_special_tokens":false,"truncate_prompt_tokens":7"#);
    assert!(!cut.add_special);
    assert_eq!(cut.kept, KeptTokens::Last(7));
    assert_eq!(
        read(r#""truncate_prompt_tokens":-1"#).kept,
        KeptTokens::Fitting
    );
}

#[test]
fn prompts_and_ids_are_listed_as_asked() {
    let logprobs = ok(r#""prompt_logprobs":2,"return_token_ids":true"#).logprobs;
    assert_eq!((logprobs.prompt, logprobs.token_ids), (Some(2), true));
    assert_eq!((logprobs.top, logprobs.tokens_as_ids), (None, false));
}

/// The source of the constraint, its field, and whether it is a schema.
fn source(members: &str) -> (GrammarSource, &'static str, bool) {
    match ok(members).constraint {
        Constraint::Grammar {
            source,
            param,
            is_schema,
        } => (source, param, is_schema),
        other => panic!("{members}: {other:?}"),
    }
}

#[test]
fn structured_outputs_in_every_form() {
    let schema = json!({"type": "integer"});
    let spaced = |whitespace| GrammarSource::SpacedJsonSchema {
        schema: schema.clone(),
        whitespace,
    };
    for (kind, value, expected, is_schema) in [
        ("json", schema.clone(), spaced(Whitespace::Limited), true),
        (
            "json",
            json!(schema.to_string()),
            spaced(Whitespace::Limited),
            true,
        ),
        (
            "regex",
            json!("a+"),
            GrammarSource::Regex("a+".into()),
            false,
        ),
        (
            "choice",
            json!(["a", "b"]),
            GrammarSource::Regex("a|b".into()),
            false,
        ),
        (
            "grammar",
            json!("start: \"a\""),
            GrammarSource::Lark("start: \"a\"".into()),
            false,
        ),
        (
            "grammar",
            json!("root ::= \"a\""),
            GrammarSource::Gbnf("root ::= \"a\"".into()),
            false,
        ),
    ] {
        let new = source(
            &format!(r#""structured_outputs":{{"{kind}":{value},"regex2":null}}"#)
                .replace(r#","regex2":null"#, ""),
        );
        assert_eq!(new, (expected.clone(), "structured_outputs", is_schema));
        let (old, param, _) = source(&format!(r#""guided_{kind}":{value}"#));
        assert_eq!((old, param), (expected, &*format!("guided_{kind}")));
    }
    let (compact, ..) =
        source(r#""structured_outputs":{"json":{"type":"integer"},"disable_any_whitespace":true}"#);
    assert_eq!(compact, spaced(Whitespace::None));
    let pattern = Whitespace::Pattern(" ?".into());
    let (own, ..) =
        source(r#""structured_outputs":{"json":{"type":"integer"},"whitespace_pattern":" ?"}"#);
    assert_eq!(own, spaced(pattern.clone()));
    let (own, ..) = source(
        r#""guided_json":{"type":"integer"},"guided_whitespace_pattern":" ?","guided_decoding_backend":"x""#,
    );
    assert_eq!(own, spaced(pattern));
    let (object, ..) = source(r#""structured_outputs":{"json_object":true}"#);
    let is_object = |source| matches!(source, GrammarSource::SpacedJsonSchema { schema, .. } if schema == json!({"type": "object"}));
    assert!(is_object(object));
    for nothing in ["{}", r#"{"json_object":false}"#, r#"{"json":null}"#] {
        let plan = ok(&format!(r#""structured_outputs":{nothing}"#));
        assert_eq!(plan.constraint, Constraint::None);
    }
}

#[test]
fn wrong_structured_outputs() {
    for members in [
        r#""structured_outputs":{"regex":"a","choice":["a"]}"#,
        r#""structured_outputs":{"choice":[]}"#,
        r#""structured_outputs":{"jsn":{}}"#,
        r#""guided_choice":[]"#,
    ] {
        fails(InvalidValue, members);
    }
    fails(InvalidSchema, r#""guided_json":"{""#);
    fails(InvalidSchema, r#""structured_outputs":{"json":"3"}"#);
    fails(
        UnsupportedParameter,
        r#""structured_outputs":{"structural_tag":"{}"}"#,
    );
    fails(
        UnsupportedParameter,
        r#""structured_outputs":{"json":{},"disable_additional_properties":true}"#,
    );
    ok(
        r#""structured_outputs":{"json":{},"disable_additional_properties":false,"disable_fallback":true}"#,
    );
    for (later, members) in [
        (
            "structured_outputs",
            r#""structured_outputs":{"regex":"a"},"grammar":{"type":"regex","value":"a"}"#,
        ),
        (
            "guided_regex",
            r#""structured_outputs":{"regex":"a"},"guided_regex":"a""#,
        ),
        (
            "guided_choice",
            r#""guided_regex":"a","guided_choice":["a"]"#,
        ),
        (
            "guided_json",
            r#""response_format":{"type":"json_object"},"guided_json":{}"#,
        ),
    ] {
        fails_at(ConflictingParameters, later, members);
    }
    let forced = r#""guided_regex":"a","tool_choice":"required","tools":[{"type":"function","function":{"name":"f"}}]"#;
    fails_at(ConflictingParameters, "tool_choice", forced);
}
