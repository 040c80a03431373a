//! Arbitrary bodies never panic, and every refusal names its parameter.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::{known_fields, parse_body};
use crate::api::fields::compaction;
use crate::api::routes::arbitrary;
use crate::api::switches::Switches;

/// Words that the fields know, so that values get past the first checks.
const WORDS: &[&str] = &[
    "role",
    "user",
    "assistant",
    "content",
    "type",
    "text",
    "input_text",
    "message",
    "function",
    "function_call",
    "function_call_output",
    "reasoning",
    "summary",
    "encrypted_content",
    "call_id",
    "name",
    "arguments",
    "output",
    "{}",
    "format",
    "json_schema",
    "schema",
    "strict",
    "effort",
    "verbosity",
    "auto",
    "low",
    "required",
    "inpage:a",
    "message.output_text.logprobs",
    "\u{fdd0}",
];

/// An item of the input, and one like it that is wrong somewhere.
fn item() -> impl Strategy<Value = Value> {
    let items = vec![
        json!({"role": "user", "content": "a"}),
        json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "b"}]}),
        json!({"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "c"}]}),
        json!({"type": "reasoning", "summary": [{"type": "summary_text", "text": "d"}], "encrypted_content": "inpage:e"}),
        json!({"type": "function_call", "call_id": "f", "name": "g", "arguments": "{\"h\":1}"}),
        json!({"type": "function_call_output", "call_id": "f", "output": "i"}),
        json!({"type": "compaction", "encrypted_content": compaction::encode("j")}),
    ];
    let change = prop::option::of((arbitrary::word(WORDS), arbitrary::json(WORDS)));
    (prop::sample::select(items), change).prop_map(|(mut item, change)| {
        if let Some((name, value)) = change {
            item[name] = value;
        }
        item
    })
}

proptest! {
    #[test]
    fn any_body_is_accepted_or_refused_by_name(
        members in prop::collection::vec((arbitrary::field(known_fields(), WORDS), arbitrary::json(WORDS)), 0..5),
        input in prop::collection::vec(prop_oneof![item(), arbitrary::json(WORDS)], 0..5),
    ) {
        let mut body: Map<String, Value> = members.into_iter().collect();
        body.entry("model").or_insert("m".into());
        body.entry("input").or_insert(input.into());
        let body = Value::Object(body).to_string();
        match parse_body(body.as_bytes(), &Switches::default()) {
            Ok((plan, _)) => prop_assert!(plan.n == 1 && plan.best_of == 1 && plan.prompts.len() == 1),
            Err(error) => arbitrary::assert_refused_by_name(&body, &error)?,
        }
    }
}
