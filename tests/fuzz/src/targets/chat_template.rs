//! A chat template, and after a zero byte the messages of a conversation as JSON. Without readable JSON the conversation is
//! a fixed one, so that changes of the template are tried with it.

use inpage::text::{LocalTime, Marker, TemplateInput, render};
use serde_json::{Map, Value, json};

/// The bytes that a template may write, from docs/specification.md.
const BASE_OUTPUT_BYTES: usize = 4 << 20;
const OUTPUT_BYTES_PER_INPUT_BYTE: usize = 8;

pub fn run(input: &[u8]) {
    let end = input.iter().position(|byte| *byte == 0);
    let (template, messages) = input.split_at(end.unwrap_or(input.len()));
    let template = String::from_utf8_lossy(template);
    let messages: Option<Vec<Value>> =
        serde_json::from_slice(messages.get(1..).unwrap_or_default()).ok();
    let messages = messages.unwrap_or_else(|| {
        vec![
            json!({"role": "system", "content": "a"}),
            json!({"role": "user", "content": "Add 1 and 2"}),
            json!({"role": "assistant", "content": null, "tool_calls": [
                {"type": "function", "id": "c1", "function": {"name": "add", "arguments": {"a": 1, "b": [2]}}}]}),
            json!({"role": "tool", "tool_call_id": "c1", "content": "3"}),
        ]
    });
    let tools = [
        json!({"type": "function", "function": {"name": "add", "description": "adds", "parameters":
        {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "array", "items": {}}}}}}),
    ];
    let rendered = render(
        &template,
        &TemplateInput {
            messages: &messages,
            tools: Some(&tools),
            add_generation_prompt: true,
            bos_token: "<s>",
            eos_token: "</s>",
            variables: &Map::new(),
            now: LocalTime::new(1_700_000_000, 60),
            marker: Marker::absent_from([]).expect("there is a character that no text contains"),
        },
    );
    if let Ok(text) = rendered {
        let given: usize = input.len() + 1024;
        assert!(text.len() <= BASE_OUTPUT_BYTES + OUTPUT_BYTES_PER_INPUT_BYTE * given);
    }
}
