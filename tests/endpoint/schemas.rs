//! What a schema demands of the output, on every route that takes one (specification 9.2). The meaning of schemas in
//! detail is tested in `src/grammar`.

use inpage::api::Request;
use serde_json::{Value, json};

use crate::chat::HERMES;
use crate::fixture::*;

/// Where a request has its schema: the request with the schema in it, and the document of its answer.
type Form = (fn(&Value) -> Request, fn(&Value) -> Option<&str>);

const TEXTS: [Form; 7] = [
    (
        |schema| {
            let format =
                json!({"type": "json_schema", "json_schema": {"name": "n", "schema": schema}});
            completion(&of_prompt(json!({"response_format": format})))
        },
        |object| object["choices"][0]["text"].as_str(),
    ),
    (
        |schema| completion(&of_prompt(json!({"json_schema": schema}))),
        |object| object["choices"][0]["text"].as_str(),
    ),
    (
        |schema| completion(&of_prompt(json!({"structured_outputs": {"json": schema}}))),
        |object| object["choices"][0]["text"].as_str(),
    ),
    (
        |schema| {
            let grammar = json!({"type": "json_schema", "value": schema});
            completion(&of_prompt(json!({"grammar": grammar})))
        },
        |object| object["choices"][0]["text"].as_str(),
    ),
    (
        |schema| {
            let format =
                json!({"type": "json_schema", "json_schema": {"name": "n", "schema": schema}});
            chat(&of_message(json!({"response_format": format})))
        },
        |object| object["choices"][0]["message"]["content"].as_str(),
    ),
    (
        |schema| {
            let format = json!({"type": "json_schema", "name": "n", "schema": schema});
            responses(
                &json!({"model": "default", "input": "q", "text": {"format": format}}).to_string(),
            )
        },
        |object| object["output"][0]["content"][0]["text"].as_str(),
    ),
    (
        |schema| {
            let format = json!({"type": "json_schema", "schema": schema});
            messages(&of_message(
                json!({"output_config": {"format": format}, "max_tokens": 50}),
            ))
        },
        |object| object["content"][0]["text"].as_str(),
    ),
];

/// A forced call, whose tool is not strict.
const CALL: Form = (
    |schema| {
        let function = json!({"name": "f", "parameters": schema});
        chat(&of_message(json!({
            "tools": [{"type": "function", "function": function}], "tool_choice": "required",
            "parallel_tool_calls": false,
        })))
    },
    |object| object["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"].as_str(),
);

fn of_prompt(members: Value) -> String {
    let mut members = members;
    members["prompt"] = json!("q");
    members["max_tokens"] = json!(50);
    members["temperature"] = json!(0);
    body(members)
}

fn of_message(members: Value) -> String {
    let mut members = members;
    members["model"] = json!("default");
    members["messages"] = json!([{"role": "user", "content": "q"}]);
    members.to_string()
}

/// The document that a request of this form gets.
async fn document(server: &Server, (request, document): Form, schema: &Value) -> String {
    let reply = server.send(request(schema)).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    let object = reply.json();
    document(&object)
        .unwrap_or_else(|| panic!("{object}"))
        .to_owned()
}

#[test]
fn a_schema_opens_what_is_open() {
    let schema = json!({
        "type": "object",
        "properties": {"t": {"type": "array", "prefixItems": [{"enum": [1]}]}},
        "required": ["t"],
    });
    for (switches, expected) in [
        (json!({}), json!({"t": [1]})),
        (json!({"openObjects": true}), json!({"t": [1, 2], "b": 3})),
    ] {
        serve(switches, async |server| {
            server.set_template_with(Some(HERMES), ["<tool_call>", "</tool_call>", "<MID>"]);
            server.plan.say(bytes("{\"t\":[1,2],\"b\":3}"));
            for form in TEXTS.into_iter().chain([CALL]) {
                let text = document(server, form, &schema).await;
                assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), expected);
            }
            let mut open = schema.clone();
            open["additionalProperties"] = json!(true);
            open["properties"]["t"]["items"] = json!({});
            for form in TEXTS.into_iter().chain([CALL]) {
                let text = document(server, form, &open).await;
                assert_eq!(text, "{\"t\":[1,2],\"b\":3}");
            }
        });
    }
}

#[test]
fn numbers_and_strings_end() {
    serve_default(async |server| {
        for (schema, says, expected) in [
            (json!({"type": "integer"}), "7".repeat(60), "7".repeat(20)),
            (
                json!({"type": "number"}),
                format!("0.{}", "3".repeat(60)),
                format!("0.{}", "3".repeat(20)),
            ),
            (
                json!({"type": "string"}),
                format!("\"{}", "x".repeat(60)),
                format!("\"{}\"", "x".repeat(32)),
            ),
        ] {
            server.plan.say(bytes(&says));
            for form in TEXTS {
                assert_eq!(document(server, form, &schema).await, expected);
            }
        }
        server.set_template_with(Some(HERMES), ["<tool_call>", "</tool_call>", "<MID>"]);
        let schema =
            json!({"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]});
        server
            .plan
            .say(bytes(&format!("{{\"a\":{}", "7".repeat(60))));
        let text = document(server, CALL, &schema).await;
        assert_eq!(text.trim_end(), format!("{{\"a\":{}}}", "7".repeat(20)));
    });
}
