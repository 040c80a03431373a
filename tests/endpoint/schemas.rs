//! The demands of a schema on the output, on every route that takes one (specification 9.2). The meaning of schemas in
//! detail is tested in `src/grammar`.

use inpage::api::Request;
use serde_json::{Value, json};

use crate::chat::HERMES;
use crate::fixture::*;

/// A request with a schema, and the document of its answer.
type Form = (fn(&Value) -> Request, fn(&Value) -> Option<&str>);

const TEXTS: [Form; 7] = [
    (
        |schema| completion(&of_prompt(json!({"response_format": named(schema)}))),
        text_of_completion,
    ),
    (
        |schema| completion(&of_prompt(json!({"json_schema": schema}))),
        text_of_completion,
    ),
    (
        |schema| completion(&of_prompt(json!({"structured_outputs": {"json": schema}}))),
        text_of_completion,
    ),
    (
        |schema| {
            let grammar = json!({"type": "json_schema", "value": schema});
            completion(&of_prompt(json!({"grammar": grammar})))
        },
        text_of_completion,
    ),
    (
        |schema| chat(&of_message(json!({"response_format": named(schema)}))),
        |object| object["choices"][0]["message"]["content"].as_str(),
    ),
    (
        |schema| {
            let format = json!({"type": "json_schema", "name": "n", "schema": schema});
            responses(&with_bias(
                json!({"input": "q", "text": {"format": format}}),
            ))
        },
        |object| object["output"][0]["content"][0]["text"].as_str(),
    ),
    (
        |schema| {
            let format = json!({"type": "json_schema", "schema": schema});
            let members = json!({"output_config": {"format": format}, "max_tokens": 50});
            messages(&of_message(members))
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

/// A schema in OpenAI's form.
fn named(schema: &Value) -> Value {
    json!({"type": "json_schema", "json_schema": {"name": "n", "schema": schema}})
}

/// The body with its model. Where the output cannot be what the model says, it ends rather than going on with white space.
fn with_bias(mut members: Value) -> String {
    members["model"] = json!("default");
    let ends = bytes("]}\"").into_iter().chain([EOS, PRE + 1]);
    members["logit_bias"] = ends.map(|id| (id.to_string(), json!(5))).collect();
    members.to_string()
}

fn of_prompt(mut members: Value) -> String {
    members["prompt"] = json!("q");
    members["max_tokens"] = json!(50);
    members["temperature"] = json!(0);
    with_bias(members)
}

fn of_message(mut members: Value) -> String {
    members["messages"] = json!([{"role": "user", "content": "q"}]);
    with_bias(members)
}

fn text_of_completion(object: &Value) -> Option<&str> {
    object["choices"][0]["text"].as_str()
}

/// The document of the answer to a request of this form, of a model that says `said`.
async fn document(server: &Server, form: Form, schema: &Value, said: Vec<u32>) -> String {
    let (request, document) = form;
    server.plan.say(said);
    let reply = server.send(request(schema)).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    let object = reply.json();
    let found = document(&object).unwrap_or_else(|| panic!("{object}"));
    found.to_owned()
}

/// A call with these arguments.
fn call(arguments: &str) -> Vec<u32> {
    let text = format!("{{\"name\":\"f\",\"arguments\":{arguments}}}");
    [vec![PRE], bytes(&text), vec![PRE + 1]].concat()
}

/// Makes the tags of calls one token each, so that calls fit the context.
fn with_short_tags(server: &Server) {
    server.set_template_with(Some(HERMES), ["<tool_call>", "</tool_call>", "<MID>"]);
}

#[test]
fn a_schema_opens_what_is_open() {
    let schema = json!({
        "type": "object",
        "properties": {"t": {"type": "array", "prefixItems": [{"enum": [1]}]}},
        "required": ["t"],
    });
    let mut open = schema.clone();
    open["additionalProperties"] = json!(true);
    open["properties"]["t"]["items"] = json!({});
    let says = "{\"t\":[1,2],\"b\":3}";
    for (switches, expected) in [
        (json!({}), "{\"t\":[1]}"),
        (json!({"openObjects": true}), says),
    ] {
        serve(switches, async |server| {
            with_short_tags(server);
            for form in TEXTS {
                assert_eq!(document(server, form, &schema, bytes(says)).await, expected);
                assert_eq!(document(server, form, &open, bytes(says)).await, says);
            }
            assert_eq!(document(server, CALL, &schema, call(says)).await, expected);
            assert_eq!(document(server, CALL, &open, call(says)).await, says);
        });
    }
}

#[test]
fn numbers_and_strings_end() {
    serve_default(async |server| {
        with_short_tags(server);
        let digits = "7".repeat(60);
        for (schema, says, expected) in [
            (json!({"type": "integer"}), digits.clone(), "7".repeat(20)),
            (
                json!({"type": "number"}),
                format!("0.{digits}"),
                format!("0.{}", "7".repeat(20)),
            ),
            (
                json!({"type": "string"}),
                format!("\"{}", "x".repeat(60)),
                format!("\"{}\"", "x".repeat(32)),
            ),
        ] {
            for form in TEXTS {
                assert_eq!(
                    document(server, form, &schema, bytes(&says)).await,
                    expected
                );
            }
        }
        let schema = json!({
            "type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"],
        });
        let says = format!("{{\"a\":{digits}");
        let expected = format!("{{\"a\":{}}}", "7".repeat(20));
        assert_eq!(document(server, CALL, &schema, call(&says)).await, expected);
    });
}
