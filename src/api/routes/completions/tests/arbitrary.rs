//! For any body, parsing ends without a panic and gives a valid plan or an error of the catalogue.
//! `INPAGE_FUZZ_CASES` sets the number of bodies per property.

use std::collections::BTreeSet;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

use super::*;
use crate::api::Failure;
use crate::api::fields::{KeptTokens, TruncationSide};
use crate::api::switches::SamplingBounds;

fn config() -> ProptestConfig {
    let cases = std::env::var("INPAGE_FUZZ_CASES");
    ProptestConfig {
        cases: cases.map_or(1000, |cases| cases.parse().expect("a number of cases")),
        max_shrink_iters: 2000,
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

fn field_names() -> Vec<&'static str> {
    known_fields().collect()
}

/// Numbers on both sides of every bound.
#[rustfmt::skip]
const NUMBERS: &[&str] = &[
    "0", "-0", "-0.0", "1", "1.0", "1e0", "2", "3", "4", "5", "6", "7", "19", "20", "21", "64",
    "65", "127", "128", "129", "-1", "-2", "-2.0001", "2.0001", "0.5", "0.0001", "1e-6", "1e-45",
    "1e-320", "1e-999", "100", "100.01", "-100", "-100.01", "1023", "1024", "1025", "4294967295",
    "4294967296", "9007199254740993", "9223372036854775807", "9223372036854775808",
    "-9223372036854775808", "-9223372036854775809", "18446744073709551615",
    "18446744073709551616", "1e18", "1e19", "1e38", "3.5e38", "1e300", "-1e300", "1.7976931348623157e308",
    "123456789012345678901234567890123456789012345678901234567890",
];

/// Fragments that look like JSON.
#[rustfmt::skip]
const BROKEN: &[&str] = &[
    "1e309", "-1e400", "00", "1.", ".5", "+1", "0x10", "NaN", "Infinity", "1e", "--1", "nul", "'x'",
    r#""\ud800""#, r#""\udc00x""#, r#""\ud83c\ud83c""#, r#""\uD8""#, r#""\x""#, "\"\u{0}\"",
    "\"\n\"", r#""x"#, "[1,]", r#"{"a"}"#,
];

#[rustfmt::skip]
const STRINGS: &[&str] = &[
    r#""""#, r#""x""#, r#""1""#, r#""true""#, r#""\u0000""#, r#""\ud83c\udf89""#,
    r#""a\nb\t\"\\\/""#, r#""é終👩‍👩‍👧""#, "\"\u{feff}\u{202e}\"", r#""truncate""#,
    r#""error""#, r#""append""#, r#""fim""#, r#""reject""#, r#""raw""#, r#""processed""#,
    r#""none""#, r#""auto""#, r#""required""#, r#""text""#, r#""json_object""#,
    r#""json_schema""#, r#""regex""#, r#""lark""#, r#""llguidance""#, r#""function""#,
    r#""allowed_tools""#, r#""web_search""#, r#""data:image/png;base64,AAAA""#,
    r#""data:image/png;base64,é""#, r#""datä""#,
];

/// Members that are valid or nearly valid by themselves. Some exclude each other.
const MEMBERS: &[(&str, &str)] = &[
    ("model", r#""""#),
    ("model", "null"),
    ("prompt", r#"["a","b"]"#),
    ("prompt", "[1,2,3]"),
    ("prompt", "[[1],[2,3]]"),
    ("prompt", "null"),
    ("logprobs", "true"),
    ("n_predict", "-1"),
    ("n_predict", "4"),
    ("repeat_penalty", "1.1"),
    ("logit_bias", r#"[[7,1],["a",-2],[8,false],["b",false]]"#),
    ("json_schema", r#"{"type":"integer"}"#),
    ("grammar", r#""root ::= [a-z]""#),
    ("prompt", r#"["a",1]"#),
    ("prompt", r#"["a",[1,"b"]]"#),
    ("typical_p", "0.5"),
    ("echo_last", "2"),
    ("xtc_probability", "0"),
    ("xtc_threshold", "0.1"),
    ("samplers", "[]"),
    ("prompt_logprobs", "1"),
    ("stop_token_ids", "[7,8]"),
    ("min_tokens", "3"),
    ("allowed_token_ids", "[7,8,9]"),
    ("bad_words", r#"["a"," b"]"#),
    ("truncate_prompt_tokens", "-1"),
    ("truncate_prompt_tokens", "3"),
    ("structured_outputs", r#"{"choice":["a","b"]}"#),
    ("structured_outputs", r#"{"json":{},"regex":"a"}"#),
    ("guided_json", r#""{}""#),
    ("guided_grammar", r#""root ::= [a-z]""#),
    ("top_logprobs", "2"),
    ("suffix", r#""x""#),
    ("suffix_mode", r#""fim""#),
    ("suffix_mode", r#""append""#),
    ("images", r#"["data:image/png;base64,AAAA"]"#),
    ("max_tokens", "4"),
    ("max_completion_tokens", "5"),
    ("n", "2"),
    ("n", "65"),
    ("best_of", "3"),
    ("stream", "true"),
    ("stream_options", r#"{"include_usage":true,"x":1}"#),
    ("stop", r#"["a","b"]"#),
    ("logit_bias", r#"{"7":100,"8":-100}"#),
    ("mirostat_target", "1.5"),
    ("dry_multiplier", "1e-300"),
    ("dry_sequence_breakers", r#"["a","ab","\n"]"#),
    ("response_format", r#"{"type":"json_object"}"#),
    ("response_format", r#"{"type":"json_object","schema":3}"#),
    ("response_format", r#"{"type":"json_schema"}"#),
    (
        "response_format",
        r#"{"type":"json_schema","json_schema":{"schema":{}}}"#,
    ),
    ("grammar", r#"{"type":"regex","value":"a+"}"#),
    ("grammar", r#"{"type":"lark"}"#),
    (
        "tools",
        r#"[{"type":"function","function":{"name":"f","strict":true}}]"#,
    ),
    (
        "tools",
        r#"[{"type":"function","function":{"name":"f","parameters":[]}}]"#,
    ),
    ("tools", r#"[{"type":"web_search"}]"#),
    ("tool_choice", r#""required""#),
    ("tool_choice", r#"{"type":"function","name":"f"}"#),
    (
        "tool_choice",
        r#"{"type":"allowed_tools","mode":"auto","tools":[{"type":"function","name":"f"}]}"#,
    ),
];

/// Member names of nested objects.
const KEYS: &[&str] = &[
    r#""type""#,
    r#""value""#,
    r#""schema""#,
    r#""json_schema""#,
    r#""name""#,
    r#""function""#,
    r#""parameters""#,
    r#""strict""#,
    r#""mode""#,
    r#""tools""#,
    r#""include_usage""#,
    r#""continuous_usage_stats""#,
    r#""0""#,
    r#""7""#,
    r#""01""#,
    r#""4294967295""#,
    r#""99999999999999999999""#,
    r#""""#,
    r#""\u0000""#,
];

fn words(words: &'static [&'static str]) -> impl Strategy<Value = String> + Clone {
    select(words).prop_map(str::to_owned)
}

/// JSON text of a value, sometimes broken.
fn value() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        4 => words(NUMBERS),
        3 => words(STRINGS),
        2 => select(MEMBERS).prop_map(|(_, value)| value.to_owned()),
        2 => words(&["null", "true", "false", "{}", "[]"]),
        1 => words(BROKEN),
        1 => any::<f64>().prop_map(|number| number.to_string()),
        1 => any::<i64>().prop_map(|number| number.to_string()),
        1 => any::<String>().prop_map(|text| serde_json::to_string(&text).unwrap()),
        1 => "\\PC{0,8}".prop_map(|text| text),
        1 => (1..300_usize, select(&["[", "{\"a\":", "[[1],"][..]))
            .prop_map(|(depth, open)| open.repeat(depth)),
        1 => (1..300_usize)
            .prop_map(|depth| format!("{}{}", "[".repeat(depth), "]".repeat(depth))),
        1 => (100..140_usize, words(NUMBERS))
            .prop_map(|(count, number)| format!("[{}]", vec![number; count].join(","))),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(|list| format!("[{}]", list.join(","))),
            vec((words(KEYS), inner), 0..4).prop_map(|members| object(&members)),
        ]
    })
}

fn object(members: &[(String, String)]) -> String {
    let members: Vec<String> = members
        .iter()
        .map(|(name, value)| format!("{name}:{value}"))
        .collect();
    format!("{{{}}}", members.join(","))
}

/// A body of known and a few unknown fields; most have a model and a prompt.
fn body() -> impl Strategy<Value = String> {
    let quoted = |name: &str| format!("\"{name}\"");
    let member = prop_oneof![
        4 => select(MEMBERS).prop_map(move |(name, value)| (quoted(name), value.to_owned())),
        4 => (select(field_names()).prop_map(quoted), value()),
        1 => (words(KEYS), value()),
    ];
    let required = vec![
        ("\"model\"".to_owned(), "\"m\"".to_owned()),
        ("\"prompt\"".to_owned(), "\"p\"".to_owned()),
    ];
    (vec(member, 0..6), 0..8_u8).prop_map(move |(mut members, leave_out)| {
        if leave_out > 0 {
            members.splice(0..0, required.clone());
        }
        object(&members)
    })
}

/// One change of a body's bytes.
#[derive(Debug, Clone)]
enum Change {
    Replace(Index, u8),
    Insert(Index, u8),
    Remove(Index),
    Repeat(Index, Index),
    Cut(Index),
}

fn change() -> impl Strategy<Value = Change> {
    let byte = prop_oneof![
        any::<u8>(),
        select(&b"{}[]\",:\\0123456789.-+eEtfnu \n\0\xff\xc3"[..]),
    ];
    prop_oneof![
        (any::<Index>(), byte.clone()).prop_map(|(at, byte)| Change::Replace(at, byte)),
        (any::<Index>(), byte).prop_map(|(at, byte)| Change::Insert(at, byte)),
        any::<Index>().prop_map(Change::Remove),
        any::<(Index, Index)>().prop_map(|(from, to)| Change::Repeat(from, to)),
        any::<Index>().prop_map(Change::Cut),
    ]
}

fn apply(body: &mut Vec<u8>, change: &Change) {
    if body.is_empty() {
        return;
    }
    match change {
        Change::Replace(at, byte) => *at.get_mut(body) = *byte,
        Change::Insert(at, byte) => body.insert(at.index(body.len()), *byte),
        Change::Remove(at) => drop(body.remove(at.index(body.len()))),
        Change::Repeat(from, to) => {
            let (from, to) = (from.index(body.len()), to.index(body.len()));
            let part = body[from.min(to)..from.max(to)].to_vec();
            body.splice(from..from, part);
        }
        Change::Cut(at) => body.truncate(at.index(body.len())),
    }
}

/// Parses `body` and checks what must hold of any answer.
#[track_caller]
fn check(body: &[u8], switches: &Switches) {
    let error = match parse_body(body, switches) {
        Ok((plan, streaming)) => return check_plan(&plan, streaming, switches),
        Err(error) => error,
    };
    let failure = Failure::from(&error);
    assert_eq!(failure.status, 400, "{failure:?}");
    assert!(
        (1..400).contains(&failure.message.chars().count()),
        "{failure:?}"
    );
    match (failure.code, failure.param.as_deref()) {
        ("invalid_json" | "invalid_body", param) => assert_eq!(param, None),
        ("unknown_parameter", param) => assert!(param.is_some()),
        (_, param) => assert!(field_names().contains(&param.unwrap()), "{failure:?}"),
    }
    serde_json::from_slice::<serde_json::Value>(&failure.body()).unwrap();
}

fn check_plan(request: &Plan, streaming: Streaming, switches: &Switches) {
    assert!(!request.model.is_empty());
    assert!((1..=switches.max_prompts).contains(&request.prompts.len()));
    assert!((1..=switches.max_n as usize).contains(&request.n));
    assert!(request.best_of >= request.n);
    assert!(request.prompts.len() * request.best_of <= switches.max_sequences);
    assert!(!(streaming.stream && request.best_of > request.n));
    assert!(request.logprobs.top <= Some(switches.max_logprobs as usize));
    for prompt in &request.prompts {
        assert!(!matches!(prompt, Prompt::Tokens(ids) if ids.is_empty()));
        let is_mixed = matches!(prompt, Prompt::Mixed(_));
        assert!(!is_mixed || switches.mixed_prompts);
    }
    match &request.suffix {
        Suffix::None => {}
        Suffix::Append(text) | Suffix::FillInMiddle(text) => assert!(!text.is_empty()),
    }
    assert!(request.length.stop.len() <= switches.max_stop_sequences);
    assert!(request.length.stop.iter().all(|stop| !stop.is_empty()));
    if let Constraint::Tools(calls) = &request.constraint {
        assert!(!calls.tools.is_empty());
    }
    assert!(request.restrictions.allowed_token_ids.as_deref() != Some(&[]));
    assert!(request.prompt_tokens.kept != KeptTokens::AtMost(0, TruncationSide::Left));
    check_sampling(&request.sampling, switches);
}

fn check_sampling(sampling: &Sampling, switches: &Switches) {
    thread_local! {
        static TOKENIZER: crate::text::Tokenizer = sampling::tokenizer();
    }
    let defaults = SamplingDefaults::default();
    let params = TOKENIZER.with(|tokenizer| sampling.params(&defaults, tokenizer).unwrap());
    let is_open = switches.sampling_bounds == SamplingBounds::Open;
    let within = |number: f32, most: f32| number.abs() <= if is_open { 1e6 } else { most };
    assert!(params.temperature >= 0.0 && within(params.temperature, 2.0));
    assert!((0.0..=1.0).contains(&params.top_p) && (0.0..=1.0).contains(&params.min_p));
    assert!(params.top_k != Some(0));
    assert!(params.repetition_penalty > 0.0 && within(params.repetition_penalty, 2.0));
    for penalty in [params.frequency_penalty, params.presence_penalty] {
        assert!(within(penalty, 2.0));
    }
    // Biases of one token add up.
    let terms = sampling.most_biases_of_a_token() as f32;
    for (_, bias) in &params.logit_bias {
        assert!(within(*bias / terms, 100.0));
    }
    if let Some(mirostat) = params.mirostat {
        assert!(mirostat.target_bits >= 0.0 && mirostat.target_bits.is_finite());
        assert!(mirostat.learning_rate > 0.0 && mirostat.learning_rate <= 1.0);
    }
    if let Some(dry) = params.dry {
        assert!(dry.multiplier > 0.0 && dry.multiplier.is_finite());
        assert!(dry.base >= 1.0 && dry.base.is_finite());
        assert!(dry.breakers.is_sorted());
    }
}

fn switches() -> impl Strategy<Value = Switches> {
    select(
        &[
            "default",
            "openai",
            "jiekou",
            "fireworks",
            "vllm",
            "mistralrs",
            "llamacpp",
        ][..],
    )
    .prop_map(profile)
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn structured_bodies(body in body(), switches in switches()) {
        check(body.as_bytes(), &switches);
    }

    #[test]
    fn mutated_bodies(body in body(), changes in vec(change(), 1..4)) {
        let mut body = body.into_bytes();
        for change in &changes {
            apply(&mut body, change);
        }
        check(&body, &Switches::default());
    }

    #[test]
    fn single_fields(field in select(field_names()), value in value()) {
        let body = format!(r#"{{"model":"m","prompt":"p","{field}":{value}}}"#);
        check(body.as_bytes(), &Switches::default());
    }

    #[test]
    fn arbitrary_bytes(body in vec(any::<u8>(), 0..200)) {
        check(&body, &Switches::default());
    }
}

/// The generated bodies cover every kind of answer.
#[test]
fn generated_bodies_reach_every_answer() {
    let mut runner = TestRunner::deterministic();
    let bodies = body();
    let mut accepted = 0;
    let mut codes = BTreeSet::new();
    for _ in 0..2000 {
        let body = bodies.new_tree(&mut runner).unwrap().current();
        match parse_body(body.as_bytes(), &profile("openai")) {
            Ok(_) => accepted += 1,
            Err(error) => drop(codes.insert(Failure::from(&error).code)),
        }
    }
    assert!(accepted > 200, "{accepted}");
    let expected = [
        "conflicting_parameters",
        "invalid_json",
        "invalid_schema",
        "invalid_type",
        "invalid_value",
        "missing_required_parameter",
        "out_of_range",
        "unknown_parameter",
        "unsupported_parameter",
    ];
    assert_eq!(Vec::from_iter(codes), expected);
}
