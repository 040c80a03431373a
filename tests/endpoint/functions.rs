//! `functions` and `function_call`, the older form of tools (specification 18.10).

use serde_json::{Value, json};

use crate::chat::{HERMES, append, reply, streamed, whole};
use crate::fixture::*;

fn functions() -> Value {
    json!([{"name": "f", "parameters": {"type": "object", "properties": {"a": {"enum": [12]}}, "required": ["a"]}}])
}

/// The message that the chunks make, and the reason of its end.
fn joined(chunks: &[Value]) -> (Value, Value) {
    let (mut call, mut reason) = (json!({}), Value::Null);
    for choice in chunks.iter().filter_map(|chunk| chunk["choices"].get(0)) {
        assert!(choice["delta"].get("tool_calls").is_none());
        let delta = &choice["delta"]["function_call"];
        if !delta.is_null() {
            // Only the first one has the name.
            assert_eq!(
                delta.get("name").is_some(),
                call["name"].is_null(),
                "{delta}"
            );
        }
        for name in ["name", "arguments"] {
            append(&mut call[name], &delta[name]);
        }
        append(&mut reason, &choice["finish_reason"]);
    }
    (call, reason)
}

#[test]
fn calls_have_the_older_form() {
    serve_default(async |server| {
        server.set_template(Some(HERMES));
        let call = "<tool_call>{\"name\":\"f\",\"arguments\":{\"a\":12}}</tool_call>";
        server.plan.say(bytes(&[call, call].concat()));
        for choice in [Value::Null, json!("auto"), json!({"name": "f"})] {
            let members =
                json!({"max_tokens": null, "functions": functions(), "function_call": choice});
            let object = whole(server, &members).await;
            let message = &object["choices"][0]["message"];
            let expected = json!({"name": "f", "arguments": "{\"a\":12}"});
            assert_eq!(message["function_call"], expected, "{object}");
            assert!(message.get("tool_calls").is_none());
            assert_eq!(message["content"], Value::Null);
            assert_eq!(finish_of(&object), "function_call");
            let chunks = streamed(server, &members).await;
            assert_eq!(joined(&chunks), (expected, json!("function_call")));
        }
        // With "none" the template sees no functions, and nothing is a call.
        let members = json!({"max_tokens": 40, "functions": functions(), "function_call": "none"});
        let object = whole(server, &members).await;
        let message = &object["choices"][0]["message"];
        assert!(message.get("function_call").is_none(), "{object}");
        // A call that is cut off.
        let members =
            json!({"max_tokens": 20, "functions": functions(), "function_call": {"name": "f"}});
        let object = whole(server, &members).await;
        assert_eq!(finish_of(&object), "length");
        assert_eq!(
            object["choices"][0]["message"]["function_call"]["name"],
            "f"
        );
    });
}

#[test]
fn past_calls_and_results_have_ids_for_templates() {
    serve_default(async |server| {
        server.set_template(Some(
            "{# tool_calls tools #}{% for message in messages %}{{ message.role[0] }}{% for call in message.tool_calls or [] %}{{ call.function.name }}{{ call.id }}{% endfor %}{{ message.tool_call_id }}{% endfor %}{% if tools %}.{% endif %}",
        ));
        let messages = json!([
            {"role": "user", "content": "q"},
            {"role": "assistant", "content": null, "function_call": {"name": "f", "arguments": "{}"}},
            {"role": "function", "name": "f", "content": "sun"},
        ]);
        let members = json!({"messages": messages, "return_token_ids": true, "max_tokens": 1});
        let object = whole(server, &members).await;
        let expected = server.ids("uafcall00001tcall00001");
        assert_eq!(object["prompt_token_ids"], json!(expected));
    });
}

#[test]
fn wrong_functions_are_refused_by_their_own_names() {
    serve_default(async |server| {
        let tool = json!([{"type": "function", "function": {"name": "f"}}]);
        let is =
            |members: Value, code: &str, param: &str| (members, code.to_owned(), param.to_owned());
        for (members, code, param) in [
            is(json!({"functions": {}}), "invalid_type", "functions"),
            is(json!({"functions": [1]}), "invalid_type", "functions"),
            is(json!({"functions": [{}]}), "invalid_value", "functions"),
            is(
                json!({"functions": [{"name": "f", "parameters": {"type": "object", "properties": {"a": {"type": "int"}}}}]}),
                "invalid_schema",
                "functions",
            ),
            is(
                json!({"functions": functions(), "function_call": 1}),
                "invalid_type",
                "function_call",
            ),
            is(
                json!({"functions": functions(), "function_call": "required"}),
                "invalid_value",
                "function_call",
            ),
            is(
                json!({"functions": functions(), "function_call": {"name": "g"}}),
                "invalid_value",
                "function_call",
            ),
            is(
                json!({"function_call": {"name": "f"}}),
                "invalid_value",
                "function_call",
            ),
            is(
                json!({"functions": functions(), "tools": tool}),
                "conflicting_parameters",
                "functions",
            ),
            is(
                json!({"tools": tool, "function_call": "auto"}),
                "conflicting_parameters",
                "function_call",
            ),
        ] {
            let error = reply(server, &members).await.error();
            assert_eq!(error, (400, code, Some(param)), "{members}");
        }
        whole(server, &json!({"functions": [], "function_call": "none"})).await;
    });
}
