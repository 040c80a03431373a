//! Specification 9.1 to 9.3: response_format, grammar, and what excludes what.

use serde_json::{Value, json};

use super::*;
use crate::grammar::GrammarSource;

fn constraint(members: Value) -> Constraint {
    let members = members.to_string();
    ok(&members[1..members.len() - 1]).constraint
}

fn format_of(source: GrammarSource) -> Constraint {
    Constraint::Grammar {
        source,
        param: "response_format",
        is_schema: true,
    }
}

fn grammar_of(source: GrammarSource) -> Constraint {
    Constraint::Grammar {
        source,
        param: "grammar",
        is_schema: false,
    }
}

#[test]
fn case_105_response_formats() {
    let format = |format: Value| constraint(json!({"response_format": format}));
    assert_eq!(format(json!({"type": "text"})), Constraint::None);
    for members in [
        json!({"type": "json_object"}),
        json!({"type": "json_object", "schema": null}),
    ] {
        assert_eq!(format(members), format_of(GrammarSource::JsonObject));
    }
    for schema in [
        json!({"type": "object", "properties": {"b": {}, "a": {}}}),
        json!({}),
        json!(true),
        json!(false),
        // Looks like OpenAI's form but has no schema inside, so it is itself the schema.
        json!({"name": "x", "strict": true}),
    ] {
        let expected = format_of(GrammarSource::JsonSchema(schema.clone()));
        let with_schema = json!({"type": "json_object", "schema": schema});
        assert_eq!(format(with_schema), expected);
        let direct = json!({"type": "json_schema", "json_schema": schema});
        assert_eq!(format(direct), expected);
        for beside in [
            json!({}),
            json!({"name": "x", "description": "y", "strict": true}),
            json!({"name": null, "strict": false}),
        ] {
            let mut nested = beside;
            nested["schema"] = schema.clone();
            let nested = json!({"type": "json_schema", "json_schema": nested});
            assert_eq!(format(nested), expected);
        }
    }
}

#[test]
fn the_order_of_properties_is_kept() {
    let members = r#""response_format":{"type":"json_object","schema":{"properties":{"z":{},"a":{},"m":{}}}}"#;
    match ok(members).constraint {
        Constraint::Grammar {
            source: GrammarSource::JsonSchema(schema),
            ..
        } => {
            let properties = schema["properties"].as_object().unwrap();
            let names: Vec<&String> = properties.keys().collect();
            assert_eq!(names, ["z", "a", "m"]);
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn case_107_wrong_response_formats() {
    for (format, expected) in [
        (json!({}), MissingRequiredParameter),
        (json!({"type": null}), MissingRequiredParameter),
        (json!({"type": "json_schema"}), MissingRequiredParameter),
        (
            json!({"type": "json_schema", "json_schema": null}),
            MissingRequiredParameter,
        ),
        (
            json!({"type": "json_schema", "json_schema": {"name": "x", "schema": null}}),
            MissingRequiredParameter,
        ),
        (json!({"type": "xml"}), InvalidValue),
        (json!({"type": ""}), InvalidValue),
        (json!({"type": 1}), InvalidType),
        (
            json!({"type": "json_schema", "json_schema": {"name": 1, "schema": {}}}),
            InvalidType,
        ),
        (
            json!({"type": "json_schema", "json_schema": {"strict": "yes", "schema": {}}}),
            InvalidType,
        ),
        (json!({"type": "json_object", "schema": 3}), InvalidSchema),
        (json!({"type": "json_object", "schema": []}), InvalidSchema),
        (
            json!({"type": "json_schema", "json_schema": "x"}),
            InvalidSchema,
        ),
        (
            json!({"type": "json_schema", "json_schema": {"schema": []}}),
            InvalidSchema,
        ),
    ] {
        fails(expected, &format!(r#""response_format":{format}"#));
    }
}

#[test]
fn case_106_grammars() {
    let grammar =
        |kind: &str, value: Value| constraint(json!({"grammar": {"type": kind, "value": value}}));
    assert_eq!(
        grammar("regex", json!("example")),
        grammar_of(GrammarSource::Regex("example".to_owned()))
    );
    assert_eq!(
        grammar("lark", json!("start: \"x\"")),
        grammar_of(GrammarSource::Lark("start: \"x\"".to_owned()))
    );
    for schema in [json!({"enum": [1]}), json!(true)] {
        assert_eq!(
            grammar("json_schema", schema.clone()),
            grammar_of(GrammarSource::JsonSchema(schema))
        );
    }
    let value = json!({"grammars": [{"lark_grammar": "start: @v"}], "max_tokens": 5});
    assert_eq!(
        grammar("llguidance", value.clone()),
        grammar_of(GrammarSource::LlGuidance(value))
    );
}

#[test]
fn case_107_wrong_grammars() {
    for (grammar, expected) in [
        (json!({"type": "gbnf", "value": "x"}), InvalidValue),
        (json!({"type": "gbnf"}), InvalidValue),
        (json!({"type": "Regex", "value": "x"}), InvalidValue),
        (json!({"type": 1, "value": "x"}), InvalidType),
        (json!({"type": "regex", "value": {}}), InvalidType),
        (json!({"type": "regex", "value": 1}), InvalidType),
        (json!({"type": "json_schema", "value": "x"}), InvalidType),
        (json!({"type": "json_schema", "value": []}), InvalidType),
        (json!({"type": "lark", "value": {}}), InvalidType),
        (json!({"type": "llguidance", "value": "x"}), InvalidType),
        (json!({"type": "llguidance", "value": []}), InvalidType),
        (json!({"type": "regex"}), MissingRequiredParameter),
        (
            json!({"type": "regex", "value": null}),
            MissingRequiredParameter,
        ),
        (json!({"value": "x"}), MissingRequiredParameter),
        (json!({}), MissingRequiredParameter),
    ] {
        fails(expected, &format!(r#""grammar":{grammar}"#));
    }
}

#[test]
fn at_most_one_constraint() {
    const FORMAT: &str = r#""response_format":{"type":"json_object"}"#;
    const GRAMMAR: &str = r#""grammar":{"type":"regex","value":"x"}"#;
    const TOOLS: &str = r#""tools":[{"type":"function","function":{"name":"f"}}]"#;
    const FORCED: [&str; 3] = [
        r#""tool_choice":"required""#,
        r#""tool_choice":{"type":"function","name":"f"}"#,
        r#""tool_choice":{"type":"allowed_tools","mode":"required","tools":[{"type":"function","name":"f"}]}"#,
    ];
    // Whatever the order in the body.
    for members in [format!("{FORMAT},{GRAMMAR}"), format!("{GRAMMAR},{FORMAT}")] {
        fails_at(ConflictingParameters, "grammar", &members);
    }
    for forced in FORCED {
        for other in [FORMAT, GRAMMAR] {
            let members = format!("{TOOLS},{forced},{other}");
            fails_at(ConflictingParameters, "tool_choice", &members);
        }
    }
    // The text format and a tool that may be called constrain nothing.
    let text = r#""response_format":{"type":"text"}"#;
    ok(&format!("{text},{GRAMMAR}"));
    ok(&format!("{text},{TOOLS},{}", FORCED[0]));
    for free in [r#""tool_choice":"auto""#, r#""tool_choice":"none""#] {
        for (other, param) in [(FORMAT, "response_format"), (GRAMMAR, "grammar")] {
            let request = ok(&format!("{TOOLS},{free},{other}"));
            match request.constraint {
                Constraint::Grammar { param: given, .. } => assert_eq!(given, param),
                other => panic!("{other:?}"),
            }
        }
    }
}
