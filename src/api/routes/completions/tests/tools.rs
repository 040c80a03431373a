//! Specification 9.4: tools and tool_choice.

use serde_json::{Value, json};

use super::*;
use crate::grammar::Tool;

fn function(name: &str) -> Value {
    json!({"type": "function", "function": {"name": name}})
}

fn members(tools: &Value, choice: &Value) -> String {
    format!(r#""tools":{tools},"tool_choice":{choice}"#)
}

/// The names of the usable tools and whether a call is forced; `None`: no constraint.
fn usable(choice: Value) -> Option<(Vec<String>, bool)> {
    let tools = json!([function("f"), function("g"), function("h")]);
    match ok(&members(&tools, &choice)).constraint {
        Constraint::Tools(calls) => Some((
            calls.tools.into_iter().map(|tool| tool.name).collect(),
            calls.is_forced,
        )),
        Constraint::None => None,
        other => panic!("{other:?}"),
    }
}

#[test]
fn tools_are_read_whole() {
    let parameters = json!({"type": "object", "properties": {"city": {"type": "string"}}});
    let tools = json!([
        {"type": "function", "function": {"name": "get_weather-2", "description": "d",
            "parameters": parameters, "strict": true}},
        {"type": "function", "function": {"name": "f", "description": null, "parameters": null,
            "strict": null}},
    ]);
    let expected = ToolCalls {
        tools: vec![
            Tool {
                name: "get_weather-2".to_owned(),
                parameters: Some(parameters),
                strict: true,
            },
            Tool {
                name: "f".to_owned(),
                parameters: None,
                strict: false,
            },
        ],
        is_forced: false,
    };
    let request = ok(&format!(r#""tools":{tools}"#));
    assert_eq!(request.constraint, Constraint::Tools(expected));
}

#[test]
fn case_111_wrong_tools() {
    let wrong = |expected, tools: Value| fails(expected, &format!(r#""tools":{tools}"#));
    for name in [
        json!(null),
        json!(""),
        json!("a b"),
        json!("é"),
        json!("f.g"),
        json!(3),
        json!("x".repeat(65)),
    ] {
        let function = json!({"type": "function", "function": {"name": name}});
        wrong(InvalidValue, json!([function]));
    }
    ok(&format!(r#""tools":[{}]"#, function(&"x".repeat(64))));
    wrong(InvalidValue, json!([{"type": "function"}]));
    wrong(
        InvalidValue,
        json!([{"type": "function", "function": null}]),
    );
    wrong(InvalidValue, json!([{"function": {"name": "f"}}]));
    wrong(InvalidValue, json!([{"type": "mystery"}]));
    wrong(
        InvalidValue,
        json!([{"type": "custom", "custom": {"name": "f"}}]),
    );
    wrong(InvalidValue, json!([function("f"), function("f")]));
    wrong(
        InvalidValue,
        json!([function("f"), {"type": "function", "function": {}}]),
    );
    wrong(InvalidType, json!([{"type": 1}]));
    wrong(InvalidType, json!([{"type": "function", "function": "f"}]));
    wrong(InvalidType, json!([null]));
    for (member, value, expected) in [
        ("strict", json!(1), InvalidType),
        ("description", json!(1), InvalidType),
        ("parameters", json!([]), InvalidSchema),
        ("parameters", json!(true), InvalidSchema),
        ("parameters", json!({"type": "string"}), InvalidSchema),
        ("parameters", json!({"type": ["string"]}), InvalidSchema),
        ("parameters", json!({"type": null}), InvalidSchema),
    ] {
        let mut tool = function("f");
        tool["function"][member] = value;
        wrong(expected, json!([tool]));
    }
    for parameters in [json!({}), json!({"type": ["null", "object"]})] {
        let mut tool = function("f");
        tool["function"]["parameters"] = parameters;
        ok(&format!(r#""tools":[{tool}]"#));
    }
}

#[test]
fn hosted_tools_are_not_supported() {
    for kind in ["web_search", "file_search", "code_interpreter", "mcp"] {
        let tool = json!({"type": kind});
        fails(UnsupportedParameter, &format!(r#""tools":[{tool}]"#));
        fails(UnsupportedParameter, &format!(r#""tool_choice":{tool}"#));
    }
}

#[test]
fn tool_choice_says_which_tools_and_whether() {
    let all = || vec!["f".to_owned(), "g".to_owned(), "h".to_owned()];
    assert_eq!(usable(json!(null)), Some((all(), false)));
    assert_eq!(usable(json!("auto")), Some((all(), false)));
    assert_eq!(usable(json!("required")), Some((all(), true)));
    assert_eq!(usable(json!("none")), None);
    let g = || vec!["g".to_owned()];
    for named in [
        json!({"type": "function", "name": "g"}),
        json!({"type": "function", "function": {"name": "g"}}),
    ] {
        assert_eq!(usable(named), Some((g(), true)));
    }
    let allowed = |mode: &str, names: &[&str]| {
        let tools: Vec<Value> = names
            .iter()
            .map(|name| json!({"type": "function", "name": name}))
            .collect();
        let nested =
            json!({"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": tools}});
        let flat = usable(json!({"type": "allowed_tools", "mode": mode, "tools": tools}));
        assert_eq!(usable(nested), flat);
        flat
    };
    assert_eq!(allowed("auto", &["g"]), Some((g(), false)));
    assert_eq!(allowed("required", &["g", "g"]), Some((g(), true)));
    // In the order of `tools`.
    let f_and_h = vec!["f".to_owned(), "h".to_owned()];
    assert_eq!(allowed("auto", &["h", "f"]), Some((f_and_h, false)));
    assert_eq!(allowed("auto", &[]), None);
}

#[test]
fn case_111_wrong_choices() {
    let f = json!([function("f")]);
    for (choice, expected) in [
        (json!("sometimes"), InvalidValue),
        (json!(""), InvalidValue),
        (json!(1), InvalidType),
        (json!([]), InvalidType),
        (json!({}), InvalidValue),
        (json!({"type": 1}), InvalidType),
        (json!({"type": "mystery"}), InvalidValue),
        (json!({"type": "function"}), InvalidValue),
        (json!({"type": "function", "name": "nope"}), InvalidValue),
        (json!({"type": "function", "name": 1}), InvalidValue),
        (
            json!({"type": "function", "function": {"name": "nope"}}),
            InvalidValue,
        ),
        (
            json!({"type": "allowed_tools", "mode": "auto"}),
            InvalidValue,
        ),
        (
            json!({"type": "allowed_tools", "mode": "auto", "tools": {}}),
            InvalidType,
        ),
        (
            json!({"type": "allowed_tools", "mode": "auto", "tools": ["f"]}),
            InvalidType,
        ),
        (
            json!({"type": "allowed_tools", "mode": "required", "tools": []}),
            InvalidValue,
        ),
        (
            json!({"type": "allowed_tools", "mode": "never", "tools": []}),
            InvalidValue,
        ),
        (json!({"type": "allowed_tools", "tools": []}), InvalidValue),
        (
            json!({"type": "allowed_tools", "mode": "auto",
                "tools": [{"type": "function", "name": "nope"}]}),
            InvalidValue,
        ),
        (
            json!({"type": "allowed_tools", "mode": "auto", "tools": [{"name": "f"}]}),
            InvalidValue,
        ),
    ] {
        fails_at(expected, "tool_choice", &members(&f, &choice));
    }
}

#[test]
fn case_111_choices_without_tools() {
    for tools in [json!(null), json!([])] {
        for choice in [json!("none"), json!("auto"), json!(null)] {
            assert_eq!(ok(&members(&tools, &choice)).constraint, Constraint::None);
        }
        for choice in [
            json!("required"),
            json!({"type": "function", "name": "f"}),
            json!({"type": "function", "function": {"name": "f"}}),
        ] {
            fails_at(InvalidValue, "tool_choice", &members(&tools, &choice));
        }
    }
    fails(InvalidValue, r#""tool_choice":"required""#);
}

#[test]
fn any_name_is_legal_for_mistralrs() {
    let named = |name: &str| format!(r#""tools":{}"#, json!([function(name)]));
    let long = "x".repeat(65);
    for name in ["weather.today", "a b", "été", &long] {
        fails_at(InvalidValue, "tools", &named(name));
        ok_with(&named(name), &profile("mistralrs"));
    }
    fails_with(InvalidValue, "tools", &named(""), &profile("mistralrs"));
}
