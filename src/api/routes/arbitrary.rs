//! Arbitrary strings and JSON for the tests of several routes, and a check of refusals. The values contain the words of a
//! route, so that they get past the first checks.

use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use serde_json::{Map, Value};

use crate::Error;

/// One of `words`, or a short string.
pub(super) fn word(words: &'static [&'static str]) -> impl Strategy<Value = String> {
    prop_oneof![
        prop::sample::select(words).prop_map(str::to_owned),
        "[a-z<|>]{0,6}"
    ]
}

/// The name of a field of a route, or a [`word`].
pub(super) fn field(
    known: impl Iterator<Item = &'static str>,
    words: &'static [&'static str],
) -> impl Strategy<Value = String> {
    prop_oneof![
        prop::sample::select(known.collect::<Vec<_>>()).prop_map(str::to_owned),
        word(words)
    ]
}

/// Fails unless the body was refused as one of the client's, with a short message that names a field.
pub(super) fn assert_refused_by_name(body: &str, error: &Error) -> Result<(), TestCaseError> {
    let Error::Request { param, message, .. } = error else {
        return Err(TestCaseError::fail(format!("{body}: {error}")));
    };
    prop_assert!(param.is_some(), "{body}: {message}");
    prop_assert!(message.len() < 2000);
    Ok(())
}

/// A JSON value whose strings and names of members are of [`word`].
pub(super) fn json(words: &'static [&'static str]) -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        word(words).prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 40, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec((word(words), inner), 0..5)
                .prop_map(|members| Value::Object(members.into_iter().collect::<Map<_, _>>())),
        ]
    })
}
