//! The demands of Open Responses (version 2026-04-24, openresponses.org) on a response, its items and its events, and on a
//! compaction: required members and types, in a notation of this file. It knows nothing of requests and of what the values mean.
//!
//! The published schema differs from itself in two places; here is what OpenAI's clients read: the events of reasoning are called
//! `reasoning_text`, and the repeated `schema` of a format is an object.

use serde_json::Value;

/// Objects by their names. Each line is a member and its types: a type of JSON, `'word'`, the name of an object, or `[T]`, an array
/// of it. A member with `?` may be absent. Other members are allowed.
const OBJECTS: &[(&str, &str)] = &[
    (
        "Response",
        "id string
        object 'response'
        created_at integer
        completed_at integer | null
        status 'completed' | 'incomplete' | 'in_progress' | 'failed'
        incomplete_details IncompleteDetails | null
        model string
        previous_response_id string | null
        instructions string | null
        output [Message | FunctionCall | Reasoning]
        error Error | null
        tools [Tool]
        tool_choice 'none' | 'auto' | 'required' | NamedTool | AllowedTools
        truncation 'auto' | 'disabled'
        parallel_tool_calls boolean
        text Text
        top_p number
        presence_penalty number
        frequency_penalty number
        top_logprobs integer
        temperature number
        reasoning ReasoningOptions | null
        usage Usage | null
        max_output_tokens integer | null
        max_tool_calls integer | null
        store boolean
        background boolean
        service_tier string
        metadata object
        safety_identifier string | null
        prompt_cache_key string | null",
    ),
    ("IncompleteDetails", "reason string"),
    ("Error", "code string\nmessage string"),
    (
        "Tool",
        "type 'function'
        name string
        description string | null
        parameters object | null
        strict boolean | null",
    ),
    ("NamedTool", "type 'function'\nname? string"),
    (
        "AllowedTools",
        "type 'allowed_tools'\ntools [NamedTool]\nmode 'none' | 'auto' | 'required'",
    ),
    (
        "Text",
        "format PlainFormat | SchemaFormat\nverbosity? 'low' | 'medium' | 'high'",
    ),
    ("PlainFormat", "type 'text' | 'json_object'"),
    (
        "SchemaFormat",
        "type 'json_schema'
        name string
        description string | null
        schema object
        strict boolean",
    ),
    (
        "ReasoningOptions",
        "effort 'none' | 'low' | 'medium' | 'high' | 'xhigh' | null
        summary 'concise' | 'detailed' | 'auto' | null",
    ),
    (
        "Usage",
        "input_tokens integer
        output_tokens integer
        total_tokens integer
        input_tokens_details InputTokens
        output_tokens_details OutputTokens",
    ),
    ("InputTokens", "cached_tokens integer"),
    ("OutputTokens", "reasoning_tokens integer"),
    (
        "Message",
        "type 'message'
        id string
        status 'in_progress' | 'completed' | 'incomplete'
        role 'assistant'
        content [OutputText]",
    ),
    (
        "FunctionCall",
        "type 'function_call'
        id string
        call_id string
        name string
        arguments string
        status 'in_progress' | 'completed' | 'incomplete'",
    ),
    (
        "Reasoning",
        "type 'reasoning'
        id string
        summary [object]
        content? [ReasoningText]
        encrypted_content? string",
    ),
    (
        "OutputText",
        "type 'output_text'\ntext string\nannotations [object]\nlogprobs [TokenLogprob]",
    ),
    ("ReasoningText", "type 'reasoning_text'\ntext string"),
    (
        "Compaction",
        "id string
        object 'response.compaction'
        created_at integer
        output [UserMessage | CompactionItem]
        usage Usage",
    ),
    (
        "UserMessage",
        "type 'message'
        id string
        status 'completed'
        role 'user'
        content [InputText | InputImage]",
    ),
    ("InputText", "type 'input_text'\ntext string"),
    (
        "InputImage",
        "type 'input_image'\nimage_url string | null\ndetail 'low' | 'high' | 'auto'",
    ),
    (
        "CompactionItem",
        "type 'compaction'\nid string\nencrypted_content string",
    ),
    (
        "TokenLogprob",
        "token string\nlogprob number\nbytes [integer]\ntop_logprobs [TopLogprob]",
    ),
    (
        "TopLogprob",
        "token string\nlogprob number\nbytes [integer]",
    ),
    (
        "ErrorPayload",
        "type string\ncode string | null\nmessage string\nparam string | null",
    ),
];

/// Events by their types, without `type` and `sequence_number`, which all of them have.
const EVENTS: &[(&str, &str)] = &[
    ("response.created", "response Response"),
    ("response.in_progress", "response Response"),
    ("response.completed", "response Response"),
    ("response.incomplete", "response Response"),
    ("response.failed", "response Response"),
    (
        "response.output_item.added",
        "output_index integer\nitem Message | FunctionCall | Reasoning",
    ),
    (
        "response.output_item.done",
        "output_index integer\nitem Message | FunctionCall | Reasoning",
    ),
    (
        "response.content_part.added",
        "item_id string\noutput_index integer\ncontent_index integer\npart OutputText | ReasoningText",
    ),
    (
        "response.content_part.done",
        "item_id string\noutput_index integer\ncontent_index integer\npart OutputText | ReasoningText",
    ),
    (
        "response.output_text.delta",
        "item_id string\noutput_index integer\ncontent_index integer\ndelta string\nlogprobs [TokenLogprob]",
    ),
    (
        "response.output_text.done",
        "item_id string\noutput_index integer\ncontent_index integer\ntext string\nlogprobs [TokenLogprob]",
    ),
    (
        "response.reasoning_text.delta",
        "item_id string\noutput_index integer\ncontent_index integer\ndelta string",
    ),
    (
        "response.reasoning_text.done",
        "item_id string\noutput_index integer\ncontent_index integer\ntext string",
    ),
    (
        "response.function_call_arguments.delta",
        "item_id string\noutput_index integer\ndelta string",
    ),
    (
        "response.function_call_arguments.done",
        "item_id string\noutput_index integer\narguments string",
    ),
    ("error", "error ErrorPayload"),
];

/// Fails unless `value` is an object of this name, or an event of this type.
#[track_caller]
pub fn check(name: &str, value: &Value) {
    let found = match EVENTS.iter().find(|(event, _)| *event == name) {
        Some((_, members)) => {
            let common = format!("type '{name}'\nsequence_number integer\n{members}");
            fault_of_members(&common, value)
        }
        None => fault_of_type(name, value),
    };
    if let Some(fault) = found {
        panic!("{name}: {fault} in {value}");
    }
}

/// The first fault of the members of an object.
fn fault_of_members(members: &str, value: &Value) -> Option<String> {
    let Some(object) = value.as_object() else {
        return Some(format!("{value} is no object"));
    };
    members.lines().find_map(|line| {
        let (name, types) = line.trim().split_once(' ').unwrap();
        let (name, is_optional) = match name.strip_suffix('?') {
            Some(name) => (name, true),
            None => (name, false),
        };
        match object.get(name) {
            None if is_optional => None,
            None => Some(format!("there is no {name}")),
            Some(member) => fault_of_types(types, member).map(|fault| format!("{name}: {fault}")),
        }
    })
}

/// The fault of a value that has none of several types: that for the last type.
fn fault_of_types(types: &str, value: &Value) -> Option<String> {
    if let Some(of) = types.strip_prefix('[').and_then(|it| it.strip_suffix(']')) {
        let Some(elements) = value.as_array() else {
            return Some(format!("{value} is no array"));
        };
        return elements
            .iter()
            .find_map(|element| fault_of_types(of, element));
    }
    let faults = types.split(" | ").map(|one| fault_of_type(one, value));
    faults.reduce(|before, fault| before.and(fault)).flatten()
}

fn fault_of_type(name: &str, value: &Value) -> Option<String> {
    let fits = match name {
        "string" => value.is_string(),
        "integer" => value.is_i64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        "object" => value.is_object(),
        word if word.starts_with('\'') => value.as_str() == Some(word.trim_matches('\'')),
        name => {
            let object = OBJECTS.iter().find(|(object, _)| *object == name);
            let (_, members) = object.unwrap_or_else(|| panic!("no object {name}"));
            return fault_of_members(members, value);
        }
    };
    (!fits).then(|| format!("{value} is no {name}"))
}

#[test]
fn faults_are_found() {
    let text =
        serde_json::json!({"type": "output_text", "text": "a", "annotations": [], "logprobs": []});
    assert_eq!(fault_of_type("OutputText", &text), None);
    for (member, wrong, expected) in [
        ("text", Value::Null, "text: null is no string"),
        ("type", "x".into(), "type: \"x\" is no 'output_text'"),
        (
            "logprobs",
            serde_json::json!([{}]),
            "logprobs: there is no token",
        ),
    ] {
        let mut object = text.clone();
        object[member] = wrong;
        assert_eq!(
            fault_of_type("OutputText", &object).as_deref(),
            Some(expected)
        );
    }
    assert_eq!(fault_of_types("string | null", &Value::Null), None);
    assert!(fault_of_types("string | null", &1.into()).is_some());
}
