//! The rules of specification 3, 4, 8 and 9 that need no model, field by field.

mod arbitrary;
mod constraints;
mod input;
mod length;
mod output;
mod sampling;
mod tools;
mod vendors;

use super::parse::known_fields;
use crate::api::fields::{Constraint, Prompt, Sampling, Streaming, ToolCalls};
use crate::api::plan::{Plan, Suffix};
use crate::api::switches::Switches;
use crate::engine::generation::SamplingDefaults;
use crate::{Error, RequestFault, Result};
use RequestFault::{
    ConflictingParameters, InvalidSchema, InvalidType, InvalidValue, MissingRequiredParameter,
    OutOfRange, UnknownParameter, UnsupportedParameter,
};

/// The plan of `body`, and how its result is delivered.
fn parse_body(body: &[u8], switches: &Switches) -> Result<(Plan, Streaming)> {
    super::parse::parse(body, switches, |_| {})
}

/// `{"model":"m","prompt":"p"}` with `members` added (`"x":1,"y":2`).
fn parse(members: &str) -> Result<(Plan, Streaming)> {
    parse_with(members, &Switches::default())
}

fn parse_with(members: &str, switches: &Switches) -> Result<(Plan, Streaming)> {
    let comma = if members.is_empty() { "" } else { "," };
    let body = format!(r#"{{"model":"m","prompt":"p"{comma}{members}}}"#);
    parse_body(body.as_bytes(), switches)
}

#[track_caller]
fn ok(members: &str) -> Plan {
    ok_with(members, &Switches::default())
}

#[track_caller]
fn ok_with(members: &str, switches: &Switches) -> Plan {
    accepted(members, switches).0
}

#[track_caller]
fn streaming(members: &str, switches: &Switches) -> Streaming {
    accepted(members, switches).1
}

#[track_caller]
fn accepted(members: &str, switches: &Switches) -> (Plan, Streaming) {
    match parse_with(members, switches) {
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

/// `case` breaks rule `expected` of its first field.
#[track_caller]
fn fails(expected: RequestFault, case: &str) {
    let field = case.split('"').nth(1).unwrap();
    fails_at(expected, field, case);
}

#[track_caller]
fn fails_at(expected: RequestFault, field: &str, members: &str) {
    fails_with(expected, field, members, &Switches::default());
}

#[track_caller]
fn fails_with(expected: RequestFault, field: &str, members: &str, switches: &Switches) {
    is_fault(parse_with(members, switches), expected, field, members);
}

#[track_caller]
fn is_fault(
    result: Result<impl std::fmt::Debug>,
    expected: RequestFault,
    field: &str,
    members: &str,
) {
    match result {
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

fn profile(name: &str) -> Switches {
    Switches::profile(name).unwrap()
}

#[test]
fn case_017_wrong_types() {
    all_fail(
        InvalidType,
        &[
            r#""model":1"#,
            r#""temperature":"1""#,
            r#""temperature":true"#,
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
            r#""logit_bias":{"0":null}"#,
            r#""logit_bias":{"0":false}"#,
            r#""user":7"#,
            r#""logprobs":true"#,
            r#""logprobs":1.5"#,
            r#""logprobs":false"#,
            r#""top_logprobs":true"#,
            r#""logprobs_mode":1"#,
            r#""return_tokens_as_token_ids":1"#,
            r#""top_k":1.2"#,
            r#""min_p":"0""#,
            r#""frequency_penalty":"0""#,
            r#""presence_penalty":[]"#,
            r#""repetition_penalty":{}"#,
            r#""seed":"1""#,
            r#""seed":1.5"#,
            r#""suffix":3"#,
            r#""suffix_mode":3"#,
            r#""stream_options":1,"stream":true"#,
            r#""stream_options":{"include_usage":1},"stream":true"#,
            r#""stream_options":{"continuous_usage_stats":"x"},"stream":true"#,
            r#""stream_options":{"include_obfuscation":0},"stream":true"#,
            r#""images":"x""#,
            r#""images":[1]"#,
            r#""images":[[1]]"#,
            r#""images":[null]"#,
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
            r#""stop_token_ids":5"#,
            r#""stop_token_ids":["5"]"#,
            r#""min_tokens":1.5"#,
            r#""allowed_token_ids":{}"#,
            r#""allowed_token_ids":[true]"#,
            r#""bad_words":"x""#,
            r#""bad_words":[1]"#,
            r#""add_special_tokens":1"#,
            r#""truncate_prompt_tokens":"8""#,
            r#""prompt_logprobs":true"#,
            r#""return_token_ids":1"#,
            r#""n_predict":"8""#,
            r#""repeat_penalty":"1""#,
            r#""json_schema":"{}""#,
            r#""json_schema":[1]"#,
            r#""logit_bias":[[1]]"#,
            r#""logit_bias":[[1,true]]"#,
            r#""logit_bias":[[1,"2"]]"#,
            r#""logit_bias":[[1.5,2]]"#,
            r#""logit_bias":[[1,2,3]]"#,
            r#""typical_p":"1""#,
            r#""echo_last":true"#,
            r#""echo_last":1.5"#,
            r#""raw_output":1"#,
            r#""perf_metrics_in_response":"yes""#,
            r#""structured_outputs":"x""#,
            r#""structured_outputs":{"json":3}"#,
            r#""structured_outputs":{"regex":3}"#,
            r#""structured_outputs":{"choice":[1]}"#,
            r#""structured_outputs":{"json_object":1}"#,
            r#""structured_outputs":{"disable_any_whitespace":1}"#,
            r#""structured_outputs":{"whitespace_pattern":1}"#,
            r#""guided_json":[1]"#,
            r#""guided_regex":{}"#,
            r#""guided_choice":"a""#,
            r#""guided_grammar":1"#,
            r#""guided_whitespace_pattern":1"#,
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
            r#""n":-1"#,
            r#""n":129"#,
            r#""best_of":21"#,
            r#""best_of":0"#,
            r#""best_of":-1"#,
            r#""best_of":1,"n":2"#,
            r#""max_tokens":-1"#,
            r#""max_tokens":-1e300"#,
            r#""max_completion_tokens":-1"#,
            r#""logprobs":-1"#,
            r#""logprobs":6"#,
            r#""top_logprobs":6,"logprobs":true"#,
            r#""top_logprobs":-1,"logprobs":true"#,
            r#""top_k":-2"#,
            r#""top_k":-1e300"#,
            r#""mirostat_lr":0"#,
            r#""mirostat_lr":-0.1"#,
            r#""mirostat_lr":1.1"#,
            r#""mirostat_target":0.5"#,
            r#""mirostat_target":-1"#,
            r#""dry_multiplier":-1"#,
            r#""dry_base":0.5"#,
            r#""dry_allowed_length":-1"#,
            r#""logit_bias":{"-1":1}"#,
            r#""logit_bias":{"+1":1}"#,
            r#""logit_bias":{"01":1}"#,
            r#""logit_bias":{"00":1}"#,
            r#""logit_bias":{"1.0":1}"#,
            r#""logit_bias":{"4294967296":1}"#,
            r#""logit_bias":{"0":100.5}"#,
            r#""logit_bias":{"0":-100.5}"#,
            r#""seed":9223372036854775808"#,
            r#""seed":-9223372036854775809"#,
            r#""seed":1e19"#,
            r#""stop_token_ids":[-1]"#,
            r#""n_predict":-2"#,
            r#""repeat_penalty":0"#,
            r#""repeat_penalty":2.1"#,
            r#""logit_bias":[[-1,1]]"#,
            r#""logit_bias":[[4294967296,1]]"#,
            r#""logit_bias":[[1,101]]"#,
            r#""typical_p":-0.1"#,
            r#""typical_p":1.1"#,
            r#""echo_last":-1"#,
            r#""stop_token_ids":[4294967296]"#,
            r#""min_tokens":-1"#,
            r#""min_tokens":17"#,
            r#""min_tokens":5,"max_tokens":4"#,
            r#""allowed_token_ids":[-1]"#,
            r#""truncate_prompt_tokens":-2"#,
            r#""truncate_prompt_tokens":0"#,
            r#""prompt_logprobs":6"#,
            r#""prompt_logprobs":-1"#,
            r#""stop":["a","b","c","d","e"]"#,
        ],
    );
    let many = |count: u32| {
        let entries: Vec<String> = (0..count).map(|id| format!("\"{id}\":0")).collect();
        format!(r#""logit_bias":{{{}}}"#, entries.join(","))
    };
    ok(&many(1024));
    fails(OutOfRange, &many(1025));
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
        r#""frequency_penalty":2,"presence_penalty":2"#,
        r#""frequency_penalty":-2,"presence_penalty":-2"#,
        r#""repetition_penalty":0.01"#,
        r#""repetition_penalty":2"#,
        r#""top_k":-1"#,
        r#""top_k":0"#,
        r#""top_k":1"#,
        r#""top_k":1000000000"#,
        r#""top_k":1e30"#,
        r#""logprobs":0"#,
        r#""logprobs":5"#,
        r#""max_tokens":0"#,
        r#""n":1"#,
        r#""n":128"#,
        r#""best_of":1"#,
        r#""best_of":20"#,
        r#""mirostat_target":1"#,
        r#""mirostat_lr":1"#,
        r#""dry_multiplier":0"#,
        r#""dry_base":1"#,
        r#""dry_allowed_length":0"#,
        r#""dry_sequence_breakers":[]"#,
        r#""logit_bias":{"0":100,"1":-100}"#,
        r#""user":"""#,
        r#""max_tokens":3.0,"n":1e0"#,
        r#""seed":-9223372036854775808"#,
        r#""seed":9223372036854775807"#,
        r#""seed":-1"#,
        r#""seed":0"#,
    ] {
        ok(members);
    }
}

#[test]
fn null_is_absent() {
    let plain = format!("{:?}", ok(r#""seed":1"#));
    let mut checked = 0;
    for name in known_fields() {
        if !["model", "prompt", "seed"].contains(&name) {
            let request = ok(&format!(r#""seed":1,"{name}":null"#));
            assert_eq!(format!("{request:?}"), plain, "{name}");
            checked += 1;
        }
    }
    assert!(checked > 100, "only {checked} fields");
}

#[test]
fn neutral_values_are_absent() {
    let plain = format!("{:?}", ok(r#""seed":1"#));
    for members in [
        r#""frequency_penalty":0,"presence_penalty":0.0,"repetition_penalty":null"#,
        r#""logit_bias":{},"suffix":"","images":[],"tools":[],"stop":[]"#,
        r#""images":[[]],"echo":false,"ignore_eos":false,"skip_special_tokens":true"#,
        r#""response_format":{"type":"text"},"tool_choice":"none","n":1,"best_of":1"#,
        r#""tool_choice":"auto","return_tokens_as_token_ids":false,"stream":false"#,
        r#""tools":[{"type":"function","function":{"name":"f"}}],"tool_choice":"none""#,
        r#""mirostat_lr":0.5,"mirostat_target":null,"dry_multiplier":0,"user":"u""#,
        r#""dry_base":3,"dry_allowed_length":0,"dry_sequence_breakers":["x"]"#,
        r#""suffix_mode":"fim","logprobs_mode":"raw","truncate_sequence":false"#,
    ] {
        let request = ok(&format!(r#""seed":1,{members}"#));
        assert_eq!(format!("{request:?}"), plain, "{members}");
    }
}

#[test]
fn case_015_unknown_fields() {
    let members = r#""foo":1,"x_bar":{"a":[]},"stream":true,"stream_options":{"x":1}"#;
    let body = format!(r#"{{"model":"m","prompt":"p",{members}}}"#);
    let mut heard = Vec::new();
    let hear = |name: &str| heard.push(name.to_owned());
    super::parse::parse(body.as_bytes(), &Switches::default(), hear).unwrap();
    assert_eq!(heard, ["foo", "x_bar", "stream_options.x"]);

    let strict = profile("openai");
    fails_with(UnknownParameter, "foo", r#""foo":null"#, &strict);
    fails_with(
        UnknownParameter,
        "stream_options.x",
        r#""stream":true,"stream_options":{"x":1}"#,
        &strict,
    );
    // Unknown fields come before the known ones (specification 2.3).
    fails_with(UnknownParameter, "foo", r#""n":0,"foo":1"#, &strict);
}
