//! The rules of API.md section 4, field by field.

use super::*;
use crate::Error;
use crate::api::switches::ContextLengthExceededBehavior;

/// `{"model":"m","prompt":"p"}` with `members` added (`"x":1,"y":2`).
fn parse(members: &str) -> Result<CompletionRequest> {
    parse_with(members, &Switches::default())
}

fn parse_with(members: &str, switches: &Switches) -> Result<CompletionRequest> {
    let comma = if members.is_empty() { "" } else { "," };
    let body = format!(r#"{{"model":"m","prompt":"p"{comma}{members}}}"#);
    CompletionRequest::parse(body.as_bytes(), switches, |_| {})
}

#[track_caller]
fn ok(members: &str) -> CompletionRequest {
    match parse(members) {
        Ok(request) => request,
        Err(error) => panic!("{members}: {error}"),
    }
}

/// Each of `cases` (`"field":value`) breaks rule `expected` of that field.
#[track_caller]
fn all_fail(expected: RequestFault, cases: &[&str]) {
    for case in cases {
        fails(expected, case);
    }
}

#[track_caller]
fn fails(expected: RequestFault, case: &str) {
    let field = case.split('"').nth(1).unwrap();
    fails_at(expected, field, case);
}

#[track_caller]
fn fails_at(expected: RequestFault, field: &str, members: &str) {
    match parse(members) {
        Err(Error::Request {
            fault,
            param,
            message,
        }) => {
            assert_eq!(
                (fault, param.as_deref()),
                (expected, Some(field)),
                "{members}"
            );
            assert!(message.contains(field), "{message}");
        }
        other => panic!("{members}: {other:?}"),
    }
}

use RequestFault::{
    ConflictingParameters, InvalidSchema, InvalidType, InvalidValue, MissingRequiredParameter,
    OutOfRange, UnknownParameter, UnsupportedParameter,
};

#[test]
fn case_016_model_and_prompt_are_required() {
    for (body, param) in [
        (r#"{"prompt":"p"}"#, "model"),
        (r#"{"model":null,"prompt":"p"}"#, "model"),
        (r#"{"model":"","prompt":"p"}"#, "model"),
        (r#"{"model":"m"}"#, "prompt"),
    ] {
        match CompletionRequest::parse(body.as_bytes(), &Switches::default(), |_| {}) {
            Err(Error::Request {
                fault, param: p, ..
            }) => {
                assert_eq!(
                    (fault, p.as_deref()),
                    (MissingRequiredParameter, Some(param))
                );
            }
            other => panic!("{other:?}"),
        }
    }
    let switches = Switches {
        allow_missing_model: true,
        ..Switches::default()
    };
    let request = CompletionRequest::parse(br#"{"prompt":"p"}"#, &switches, |_| {}).unwrap();
    assert_eq!(request.model, "default");
}

#[test]
fn case_017_wrong_types() {
    all_fail(
        InvalidType,
        &[
            r#""model":1"#,
            r#""temperature":"1""#,
            r#""top_p":[1]"#,
            r#""n":"2""#,
            r#""n":1.5"#,
            r#""best_of":true"#,
            r#""echo":1"#,
            r#""stream":"true""#,
            r#""max_tokens":1.5"#,
            r#""max_tokens":"8""#,
            r#""max_completion_tokens":false"#,
            r#""stop":5"#,
            r#""stop":["a",1]"#,
            r#""stop":[null]"#,
            r#""include_stop_str_in_output":0"#,
            r#""skip_special_tokens":"no""#,
            r#""logit_bias":[1]"#,
            r#""logit_bias":{"0":"1"}"#,
            r#""user":7"#,
            r#""logprobs":true"#,
            r#""logprobs":1.5"#,
            r#""logprobs_mode":1"#,
            r#""return_tokens_as_token_ids":1"#,
            r#""top_k":1.2"#,
            r#""min_p":"0""#,
            r#""seed":"1""#,
            r#""seed":1.5"#,
            r#""suffix":3"#,
            r#""suffix_mode":3"#,
            r#""stream_options":1,"stream":true"#,
            r#""stream_options":{"include_usage":1},"stream":true"#,
            r#""images":"x""#,
            r#""images":[1]"#,
            r#""images":[[1]]"#,
            r#""tools":{}"#,
            r#""tools":[1]"#,
            r#""tool_choice":1"#,
            r#""grammar":"x""#,
            r#""response_format":"json""#,
            r#""mirostat_target":"4""#,
            r#""mirostat_lr":"4""#,
            r#""dry_multiplier":[]"#,
            r#""dry_base":"x""#,
            r#""dry_allowed_length":0.5"#,
            r#""dry_sequence_breakers":"x""#,
            r#""dry_sequence_breakers":[1]"#,
            r#""ignore_eos":0"#,
            r#""truncate_sequence":"yes""#,
            r#""context_length_exceeded_behavior":1"#,
        ],
    );
}

#[test]
fn case_018_out_of_range() {
    all_fail(
        OutOfRange,
        &[
            r#""temperature":-0.1"#,
            r#""temperature":2.1"#,
            r#""top_p":-0.01"#,
            r#""top_p":1.01"#,
            r#""min_p":-0.1"#,
            r#""min_p":1.1"#,
            r#""frequency_penalty":2.1"#,
            r#""frequency_penalty":-2.1"#,
            r#""presence_penalty":2.1"#,
            r#""presence_penalty":-2.1"#,
            r#""repetition_penalty":0"#,
            r#""repetition_penalty":-1"#,
            r#""repetition_penalty":2.5"#,
            r#""n":0"#,
            r#""n":129"#,
            r#""best_of":21"#,
            r#""best_of":0"#,
            r#""best_of":1,"n":2"#,
            r#""max_tokens":-1"#,
            r#""max_completion_tokens":-1"#,
            r#""logprobs":-1"#,
            r#""logprobs":6"#,
            r#""top_k":-2"#,
            r#""mirostat_lr":0"#,
            r#""mirostat_lr":1.1"#,
            r#""mirostat_target":0.5"#,
            r#""dry_multiplier":-1"#,
            r#""dry_base":0.5"#,
            r#""dry_allowed_length":-1"#,
            r#""logit_bias":{"abc":1}"#,
            r#""logit_bias":{"-1":1}"#,
            r#""logit_bias":{"01":1}"#,
            r#""logit_bias":{"":1}"#,
            r#""logit_bias":{"0":100.5}"#,
            r#""seed":9223372036854775808"#,
            r#""seed":-9223372036854775809"#,
            r#""seed":1e19"#,
            r#""stop":["a","b","c","d","e"]"#,
        ],
    );
    let many: Vec<String> = (0..1025).map(|id| format!("\"{id}\":0")).collect();
    fails(
        OutOfRange,
        &format!(r#""logit_bias":{{{}}}"#, many.join(",")),
    );
}

#[test]
fn case_019_the_edges_of_ranges() {
    for members in [
        r#""temperature":0"#,
        r#""temperature":2"#,
        r#""top_p":0"#,
        r#""top_p":1"#,
        r#""min_p":0"#,
        r#""min_p":1"#,
        r#""top_k":-1"#,
        r#""top_k":0"#,
        r#""top_k":1"#,
        r#""top_k":1000000000"#,
        r#""top_k":1e30"#,
        r#""max_tokens":0"#,
        r#""n":1"#,
        r#""best_of":1"#,
        r#""dry_base":1"#,
        r#""dry_allowed_length":0"#,
        r#""user":"""#,
        r#""mirostat_lr":1"#,
        r#""max_tokens":3.0,"n":1e0"#,
        r#""seed":-9223372036854775808"#,
        r#""seed":9223372036854775807"#,
        r#""seed":-1"#,
        r#""seed":0"#,
    ] {
        ok(members);
    }
    assert_eq!(ok(r#""max_tokens":3.0"#).length.max_tokens, Some(3));
    let off = SamplingDefaults::default();
    for (members, top_k) in [
        (r#""top_k":-1"#, None),
        (r#""top_k":0"#, None),
        (r#""top_k":null"#, None),
        (r#""top_k":7"#, Some(7)),
    ] {
        assert_eq!(ok(members).sampling.params(&off).unwrap().top_k, top_k);
    }
}

#[test]
fn neutral_values_are_accepted() {
    for members in [
        r#""frequency_penalty":0,"presence_penalty":0.0,"repetition_penalty":1"#,
        r#""logit_bias":{},"suffix":"","images":[],"tools":[],"stop":[]"#,
        r#""logit_bias":null,"suffix":null,"images":null,"tools":null,"stop":null"#,
        r#""images":[[]]"#,
        r#""response_format":{"type":"text"},"grammar":null,"tool_choice":"none""#,
        r#""tool_choice":"auto","logprobs":null,"return_tokens_as_token_ids":false"#,
        r#""tools":[{"type":"function","function":{"name":"f"}}],"tool_choice":"none""#,
        r#""mirostat_lr":0.5,"mirostat_target":null,"dry_multiplier":0"#,
        r#""dry_base":3,"dry_allowed_length":0,"dry_sequence_breakers":[]"#,
        r#""suffix_mode":"fim","logprobs_mode":"processed""#,
        r#""stream_options":null,"best_of":null,"n":null,"user":null,"seed":null"#,
    ] {
        ok(members);
    }
}

#[test]
fn what_is_not_built_is_refused() {
    all_fail(
        UnsupportedParameter,
        &[
            r#""frequency_penalty":2"#,
            r#""presence_penalty":-2"#,
            r#""repetition_penalty":0.01"#,
            r#""logit_bias":{"0":-100}"#,
            r#""suffix":"x""#,
            r#""images":["data:image/png;base64,AAAA"]"#,
            r#""images":[["x"]]"#,
            r#""n":2"#,
            r#""n":128"#,
            r#""best_of":20"#,
            r#""logprobs":0"#,
            r#""logprobs":5"#,
            r#""return_tokens_as_token_ids":true"#,
            r#""mirostat_target":1"#,
            r#""dry_multiplier":0.1"#,
            r#""response_format":{"type":"json_object"}"#,
            r#""response_format":{"type":"json_object","schema":{}}"#,
            r#""response_format":{"type":"json_schema","json_schema":{}}"#,
            r#""response_format":{"type":"json_schema","json_schema":{"schema":true}}"#,
            r#""grammar":{"type":"regex","value":"x"}"#,
            r#""grammar":{"type":"json_schema","value":true}"#,
            r#""tools":[{"type":"function","function":{"name":"f","parameters":{}}}]"#,
            r#""tools":[{"type":"web_search"}]"#,
        ],
    );
    fails_at(UnsupportedParameter, "prompt", r#""prompt":["a","b"]"#);
    fails_at(
        UnsupportedParameter,
        "tool_choice",
        r#""tool_choice":"required","tools":[{"type":"function","function":{"name":"f"}}]"#,
    );
}

#[test]
fn a_fault_is_told_before_what_is_not_built() {
    fails_at(OutOfRange, "top_p", r#""n":2,"top_p":3"#);
}

#[test]
fn case_021_stop() {
    assert!(ok(r#""stop":[]"#).length.stop.is_empty());
    assert_eq!(ok(r#""stop":"zzz""#).length.stop, ["zzz"]);
    assert_eq!(ok(r#""stop":["a","b","c","d"]"#).length.stop.len(), 4);
    all_fail(InvalidValue, &[r#""stop":["a",""]"#, r#""stop":"""#]);
    let vllm = Switches::profile("vllm").unwrap();
    assert!(parse_with(r#""stop":["a","b","c","d","e"]"#, &vllm).is_ok());
}

#[test]
fn case_022_stream_options_need_stream() {
    all_fail(
        InvalidValue,
        &[
            r#""stream_options":{"include_usage":true}"#,
            r#""stream_options":{},"stream":false"#,
        ],
    );
    assert!(
        !ok(r#""stream_options":{},"stream":true"#)
            .output
            .include_usage
    );
    let members = r#""stream":true,"stream_options":{"include_usage":true,"continuous_usage_stats":true,"include_obfuscation":true}"#;
    let output = ok(members).output;
    assert!(output.stream && output.include_usage && output.continuous_usage);
    let always = Switches::profile("fireworks").unwrap();
    let request = parse_with(r#""stream":true"#, &always).unwrap();
    assert!(request.output.include_usage);
}

#[test]
fn case_023_max_completion_tokens() {
    let same = ok(r#""max_tokens":5,"max_completion_tokens":5"#);
    assert_eq!(same.length.max_tokens, Some(5));
    let alone = ok(r#""max_completion_tokens":3"#);
    assert_eq!(alone.length.max_tokens, Some(3));
    fails_at(
        ConflictingParameters,
        "max_completion_tokens",
        r#""max_tokens":5,"max_completion_tokens":6"#,
    );
}

#[test]
fn case_038_prompt_shapes() {
    for (members, expected) in [
        (r#""prompt":[]"#, InvalidValue),
        (r#""prompt":[[]]"#, InvalidValue),
        (r#""prompt":["a",1]"#, InvalidValue),
        (r#""prompt":[1,"a"]"#, InvalidValue),
        (r#""prompt":[[1],["a"]]"#, InvalidValue),
        (r#""prompt":[[[1]]]"#, InvalidValue),
        (r#""prompt":[[1],2]"#, InvalidValue),
        (r#""prompt":["a",null]"#, InvalidValue),
        (r#""prompt":[-1]"#, OutOfRange),
        (r#""prompt":[1.5]"#, OutOfRange),
        (r#""prompt":[4294967296]"#, OutOfRange),
        (r#""prompt":{}"#, InvalidType),
        (r#""prompt":5"#, InvalidType),
        (r#""prompt":[true]"#, InvalidType),
    ] {
        fails_at(expected, "prompt", members);
    }
    let many = format!(r#""prompt":[{}"a"]"#, r#""a","#.repeat(128));
    fails_at(OutOfRange, "prompt", &many);
    fails_at(OutOfRange, "prompt", r#""n":65,"prompt":["a","b"]"#);

    let prompt = |members: &str| ok(members).prompts.remove(0);
    let text = |text: &str| Prompt::Text(text.to_owned());
    assert_eq!(prompt(r#""prompt":null"#), text(""));
    assert_eq!(prompt(r#""prompt":"""#), text(""));
    assert_eq!(prompt(r#""prompt":["x"]"#), text("x"));
    assert_eq!(prompt(r#""prompt":[1,2.0]"#), Prompt::Tokens(vec![1, 2]));
    assert_eq!(prompt(r#""prompt":[[3]]"#), Prompt::Tokens(vec![3]));
}

#[test]
fn case_044_best_of() {
    fails_at(
        ConflictingParameters,
        "best_of",
        r#""best_of":3,"n":2,"stream":true"#,
    );
    fails_at(
        ConflictingParameters,
        "best_of",
        r#""best_of":2,"stream":true"#,
    );
    ok(r#""best_of":1,"stream":true"#);
}

#[test]
fn case_107_constraints() {
    for (members, expected) in [
        (r#""grammar":{"type":"gbnf","value":"x"}"#, InvalidValue),
        (r#""grammar":{"type":"gbnf"}"#, InvalidValue),
        (r#""grammar":{"type":1,"value":"x"}"#, InvalidType),
        (
            r#""grammar":{"type":"json_schema","value":"x"}"#,
            InvalidType,
        ),
        (r#""grammar":{"type":"lark","value":{}}"#, InvalidType),
        (r#""grammar":{"type":"regex"}"#, MissingRequiredParameter),
        (r#""grammar":{"value":"x"}"#, MissingRequiredParameter),
        (
            r#""response_format":{"type":"json_schema"}"#,
            MissingRequiredParameter,
        ),
        (r#""response_format":{}"#, MissingRequiredParameter),
        (r#""response_format":{"type":"xml"}"#, InvalidValue),
        (
            r#""response_format":{"type":"json_object","schema":3}"#,
            InvalidSchema,
        ),
        (
            r#""response_format":{"type":"json_schema","json_schema":{"schema":[]}}"#,
            InvalidSchema,
        ),
    ] {
        fails(expected, members);
    }
    fails_at(
        ConflictingParameters,
        "grammar",
        r#""response_format":{"type":"json_object"},"grammar":{"type":"regex","value":"x"}"#,
    );
}

#[test]
fn case_111_tools() {
    let tool = |function: &str| format!(r#""tools":[{{"type":"function","function":{function}}}]"#);
    for function in [
        r#"{}"#,
        r#"{"name":""}"#,
        r#"{"name":"a b"}"#,
        r#"{"name":3}"#,
    ] {
        fails(InvalidValue, &tool(function));
    }
    fails(
        InvalidValue,
        &tool(&format!(r#"{{"name":"{}"}}"#, "x".repeat(65))),
    );
    fails(InvalidSchema, &tool(r#"{"name":"f","parameters":[]}"#));
    fails(InvalidType, &tool(r#"{"name":"f","strict":1}"#));
    fails(InvalidValue, r#""tools":[{"type":"mystery"}]"#);
    let f = r#"{"type":"function","function":{"name":"f"}}"#;
    fails(InvalidValue, &format!(r#""tools":[{f},{f}]"#));
    for choice in [
        r#""tool_choice":"required""#.to_owned(),
        r#""tool_choice":"sometimes""#.to_owned(),
        r#""tool_choice":{}"#.to_owned(),
        format!(r#""tool_choice":{{"type":"function","name":"nope"}},"tools":[{f}]"#),
        format!(
            r#""tool_choice":{{"type":"function","function":{{"name":"nope"}}}},"tools":[{f}]"#
        ),
        format!(
            r#""tool_choice":{{"type":"allowed_tools","mode":"required","tools":[]}},"tools":[{f}]"#
        ),
    ] {
        fails(InvalidValue, &choice);
    }
}

#[test]
fn enums() {
    all_fail(
        InvalidValue,
        &[
            r#""context_length_exceeded_behavior":"explode""#,
            r#""suffix_mode":"prepend""#,
            r#""logprobs_mode":"cooked""#,
            r#""dry_sequence_breakers":[""]"#,
        ],
    );
    let behavior = |members: &str, switches: &Switches| {
        let request = parse_with(members, switches).unwrap();
        request.length.exceeded_behavior
    };
    let openai = Switches::profile("openai").unwrap();
    let default = Switches::default();
    use ContextLengthExceededBehavior::{Error, Truncate};
    assert_eq!(behavior("", &default), Truncate);
    assert_eq!(behavior("", &openai), Error);
    let error = r#""context_length_exceeded_behavior":"error""#;
    assert_eq!(behavior(error, &default), Error);
    let truncate = r#""context_length_exceeded_behavior":"truncate""#;
    assert_eq!(behavior(truncate, &openai), Truncate);
}

#[test]
fn case_015_unknown_fields() {
    let members = r#""foo":1,"x_bar":{"a":[]},"stream":true,"stream_options":{"x":1}"#;
    let body = format!(r#"{{"model":"m","prompt":"p",{members}}}"#);
    let mut heard = Vec::new();
    let hear = |name: &str| heard.push(name.to_owned());
    CompletionRequest::parse(body.as_bytes(), &Switches::default(), hear).unwrap();
    assert_eq!(heard, ["foo", "x_bar", "stream_options.x"]);

    let strict = Switches::profile("openai").unwrap();
    match parse_with(r#""foo":1"#, &strict) {
        Err(Error::Request { fault, param, .. }) => {
            assert_eq!((fault, param.as_deref()), (UnknownParameter, Some("foo")));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn sampling_defaults_fill_what_is_left_out() {
    let model = SamplingDefaults {
        temperature: Some(0.5),
        top_k: Some(40),
        ..SamplingDefaults::default()
    };
    let params = ok(r#""temperature":0,"seed":3"#).sampling.params(&model);
    let params = params.unwrap();
    assert_eq!(params.temperature, 0.0);
    assert_eq!(params.top_k, Some(40));
    assert_eq!((params.top_p, params.min_p), (1.0, 0.0));
    assert_eq!(params.seed, 3);
    let none = SamplingDefaults::default();
    let random = || ok("").sampling.params(&none).unwrap();
    assert_eq!(random().temperature, 1.0);
    assert_ne!(random().seed, random().seed);
}

proptest::proptest! {
    /// Whatever the bytes, parsing ends and does not panic.
    #[test]
    fn arbitrary_bodies_do_not_panic(body in proptest::collection::vec(proptest::num::u8::ANY, 0..200)) {
        let _ = CompletionRequest::parse(&body, &Switches::default(), |_| {});
    }

    /// Nor does it whatever stands in a field.
    #[test]
    fn arbitrary_values_do_not_panic(
        field in 0..40_usize,
        value in proptest::sample::select(vec![
            "null", "true", "-1", "1e308", "-0.0", "\"\"", "\"x\"", "[]", "[[]]", "[null]", "[{}]",
            "{}", "{\"type\":\"function\"}", "{\"type\":\"json_schema\",\"json_schema\":null}",
        ]),
    ) {
        let names: Vec<&str> = [
            input::FIELDS, length::FIELDS, output::FIELDS, sampling::FIELDS, constraints::FIELDS,
        ].concat();
        let _ = parse(&format!("\"{}\":{value}", names[field % names.len()]));
    }
}
