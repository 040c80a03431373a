//! The rules of specification 19 that need no model.

use super::parse::{Encoding, Plan, parse};
use crate::api::fields::Prompt;
use crate::api::switches::{Switches, UnknownFields};
use crate::{Error, RequestFault, Result};
use RequestFault::{
    InvalidType, InvalidValue, MissingRequiredParameter, OutOfRange, UnknownParameter,
};

fn plan(body: &str) -> Result<Plan> {
    parse(body.as_bytes(), &Switches::default(), |_| {})
}

#[track_caller]
fn fails(body: &str, fault_wanted: RequestFault, param_wanted: &str) {
    match plan(body) {
        Err(Error::Request { fault, param, .. }) => {
            assert_eq!(
                (fault, param.as_deref()),
                (fault_wanted, Some(param_wanted)),
                "{body}"
            );
        }
        other => panic!("{body}: {other:?}"),
    }
}

#[test]
fn the_four_shapes_of_input() {
    let text = |text: &str| Prompt::Text(text.to_owned());
    for (input, expected) in [
        (r#""a b""#, vec![text("a b")]),
        (r#"["a","b"]"#, vec![text("a"), text("b")]),
        ("[1,2]", vec![Prompt::Tokens(vec![1, 2])]),
        (
            "[[1],[2,3]]",
            vec![Prompt::Tokens(vec![1]), Prompt::Tokens(vec![2, 3])],
        ),
    ] {
        let parsed = plan(&format!(r#"{{"model":"m","input":{input}}}"#)).unwrap();
        assert_eq!(parsed.inputs, expected);
        assert_eq!(
            (parsed.encoding, parsed.dimensions),
            (Encoding::Float, None)
        );
    }
}

#[test]
fn other_fields() {
    let body = r#"{"model":"m","input":"a","encoding_format":"base64","dimensions":7,"user":"u"}"#;
    let parsed = plan(body).unwrap();
    assert_eq!(
        (parsed.encoding, parsed.dimensions),
        (Encoding::Base64, Some(7))
    );
    let nulls = r#"{"model":"m","input":"a","encoding_format":null,"dimensions":null,"user":null}"#;
    assert_eq!(plan(nulls).unwrap().dimensions, None);
}

#[test]
fn invalid_fields_are_named() {
    let with = |members: &str| format!(r#"{{"model":"m","input":"a",{members}}}"#);
    fails(&with(r#""dimensions":0"#), OutOfRange, "dimensions");
    fails(&with(r#""dimensions":-1"#), OutOfRange, "dimensions");
    fails(&with(r#""dimensions":1.5"#), InvalidType, "dimensions");
    fails(
        &with(r#""encoding_format":"hex""#),
        InvalidValue,
        "encoding_format",
    );
    fails(
        &with(r#""encoding_format":1"#),
        InvalidType,
        "encoding_format",
    );
    fails(&with(r#""user":1"#), InvalidType, "user");
    fails(r#"{"input":"a"}"#, MissingRequiredParameter, "model");
    fails(r#"{"model":"m"}"#, MissingRequiredParameter, "input");
    fails(
        r#"{"model":"m","input":null}"#,
        MissingRequiredParameter,
        "input",
    );
    fails(r#"{"model":"m","input":[]}"#, InvalidValue, "input");
    fails(r#"{"model":"m","input":[[]]}"#, InvalidValue, "input");
    fails(r#"{"model":"m","input":["a",1]}"#, InvalidValue, "input");
    fails(r#"{"model":"m","input":[-1]}"#, OutOfRange, "input");
    fails(r#"{"model":"m","input":{}}"#, InvalidType, "input");
    fails(r#"{"model":"m","input":3}"#, InvalidType, "input");
}

#[test]
fn at_most_2048_inputs() {
    let body = |count: usize| format!(r#"{{"model":"m","input":{:?}}}"#, vec!["a"; count]);
    assert_eq!(plan(&body(2048)).unwrap().inputs.len(), 2048);
    fails(&body(2049), OutOfRange, "input");
}

#[test]
fn unknown_fields_follow_the_switch() {
    let body = r#"{"model":"m","input":"a","prompt":"b"}"#;
    let mut warned = Vec::new();
    let switches = Switches::default();
    parse(body.as_bytes(), &switches, |name| {
        warned.push(name.to_owned())
    })
    .unwrap();
    assert_eq!(warned, ["prompt"]);
    let strict = Switches {
        unknown_fields: UnknownFields::Error,
        ..switches
    };
    match parse(body.as_bytes(), &strict, |_| {}) {
        Err(Error::Request { fault, .. }) => assert_eq!(fault, UnknownParameter),
        other => panic!("{other:?}"),
    }
}
