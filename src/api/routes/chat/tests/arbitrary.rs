//! Arbitrary bodies never panic, and every refusal names its parameter.

use proptest::prelude::*;
use serde_json::{Map, Value};

use super::{known_fields, parse_body};
use crate::api::routes::arbitrary;
use crate::api::switches::Switches;

/// Words that the fields know, so that values get past the first checks.
const WORDS: &[&str] = &[
    "role",
    "user",
    "assistant",
    "tool",
    "content",
    "type",
    "text",
    "function",
    "name",
    "arguments",
    "tool_calls",
    "{}",
    "json_schema",
    "schema",
    "refusal",
    "image_url",
    "auto",
    "low",
    "messages",
    "\u{fdd0}",
];

fn message() -> impl Strategy<Value = Value> {
    let role = prop::sample::select(&["system", "user", "assistant", "tool", "x"][..]);
    (role, arbitrary::json(WORDS), arbitrary::json(WORDS)).prop_map(|(role, content, calls)| {
        serde_json::json!({"role": role, "content": content, "tool_calls": calls})
    })
}

proptest! {
    #[test]
    fn any_body_is_accepted_or_refused_by_name(
        members in prop::collection::vec((arbitrary::field(known_fields(), WORDS), arbitrary::json(WORDS)), 0..5),
        messages in prop::collection::vec(prop_oneof![message(), arbitrary::json(WORDS)], 0..4),
    ) {
        let mut body: Map<String, Value> = members.into_iter().collect();
        body.entry("model").or_insert("m".into());
        body.entry("messages").or_insert(messages.into());
        let body = Value::Object(body).to_string();
        match parse_body(body.as_bytes(), &Switches::default()) {
            Ok(plan) => prop_assert!(plan.n >= 1 && plan.best_of >= plan.n && plan.prompts.len() == 1),
            Err(error) => arbitrary::assert_refused_by_name(&body, &error)?,
        }
    }
}
