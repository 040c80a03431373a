//! Objects and tuples that a schema does not open (specification 9.2).

use serde_json::{Map, json};

use super::*;

#[test]
fn an_object_has_the_members_that_its_schema_names() {
    // Schemas, documents that are allowed, and documents that only the switch `openObjects` allows.
    let cases = [
        (
            json!({ "properties": { "a": { "type": "integer" } }, "type": "object" }),
            vec![r#"{"a":1}"#, "{}"],
            vec![r#"{"a":1,"b":2}"#, r#"{"b":2}"#],
        ),
        (
            json!({ "type": "object", "properties": {} }),
            vec!["{}"],
            vec![r#"{"b":2}"#],
        ),
        (
            json!({ "type": "array", "items": { "properties": { "a": {} }, "type": "object" } }),
            vec![r#"[{"a":1},{}]"#],
            vec![r#"[{"a":1,"b":1}]"#],
        ),
        (
            json!({
                "type": "object",
                "properties": { "n": { "$ref": "#/$defs/n" } },
                "$defs": { "n": { "type": "object", "properties": { "n": { "$ref": "#/$defs/n" } } } }
            }),
            vec![r#"{"n":{"n":{"n":{}}}}"#],
            vec![r#"{"n":{"n":{"n":{"x":1}}}}"#],
        ),
        (
            json!({ "type": "object", "patternProperties": { "^x": { "type": "integer" } } }),
            vec![r#"{"x1":1}"#],
            vec![r#"{"y":1}"#],
        ),
        // Required members are named.
        (
            json!({ "type": "object", "properties": { "a": {} }, "required": ["b"] }),
            vec![r#"{"a":1,"b":2}"#, r#"{"b":2}"#],
            vec![r#"{"b":2,"c":1}"#],
        ),
        (
            json!({ "type": "object", "properties": { "a": { "type": "null" } }, "minProperties": 1 }),
            vec![r#"{"a":null}"#],
            vec![],
        ),
        (
            json!({ "type": "array", "prefixItems": [{ "type": "integer" }] }),
            vec!["[1]", "[]"],
            vec!["[1,2]"],
        ),
    ];
    let model = Model::made();
    for (value, right, wrong) in cases {
        let closed = model.grammar(&schema(value.clone()));
        let open = model
            .compiler
            .compile(&schema(value.clone()), Objects::Open);
        for document in right {
            assert!(model.accepts(&closed, document), "{value}: {document}");
        }
        for document in wrong {
            assert!(!model.accepts(&closed, document), "{value}: {document}");
            let open = open.as_ref().unwrap();
            assert!(model.accepts(open, document), "{value}: {document}");
        }
    }
}

#[test]
fn a_schema_opens_its_objects() {
    let model = Model::made();
    for (value, right, wrong) in [
        (
            json!({ "type": "object" }),
            vec![r#"{"a":1}"#, "{}"],
            vec!["[]"],
        ),
        (
            json!({ "type": "object", "properties": { "a": {} }, "additionalProperties": true }),
            vec![r#"{"a":1,"b":2}"#],
            vec![],
        ),
        (
            json!({ "type": "object", "properties": {}, "additionalProperties": { "type": "null" } }),
            vec![r#"{"b":null}"#],
            vec![r#"{"b":2}"#],
        ),
        (
            json!({ "type": "object", "required": ["a"] }),
            vec![r#"{"a":1}"#, r#"{"a":1,"b":2}"#],
            vec!["{}"],
        ),
        (
            json!({ "properties": { "a": {} }, "const": { "a": 1, "b": 2 } }),
            vec![r#"{"a":1,"b":2}"#],
            vec![r#"{"a":1}"#],
        ),
        (
            json!({ "type": "array", "prefixItems": [{ "type": "integer" }], "items": {} }),
            vec![r#"[1,"x"]"#],
            vec![],
        ),
        (
            json!({ "type": "array", "prefixItems": [{ "type": "integer" }], "minItems": 2 }),
            vec![r#"[1,"x"]"#],
            vec!["[1]"],
        ),
        (
            json!({
                "allOf": [
                    { "type": "object", "properties": { "a": {} }, "additionalProperties": true },
                    { "properties": { "b": {} } }
                ]
            }),
            vec![r#"{"a":1,"b":1,"c":1}"#],
            vec!["[]"],
        ),
    ] {
        let grammar = model.grammar(&schema(value.clone()));
        for document in right {
            assert!(model.accepts(&grammar, document), "{value}: {document}");
        }
        for document in wrong {
            assert!(!model.accepts(&grammar, document), "{value}: {document}");
        }
    }
}

#[test]
fn subschemas_of_one_object_close_it_together() {
    let base = json!({ "type": "object", "properties": { "id": { "type": "integer" } }, "required": ["id"] });
    let cases = [
        // Inheritance, as OpenAPI writes it.
        (
            json!({
                "$defs": { "base": base },
                "allOf": [{ "$ref": "#/$defs/base" }, { "properties": { "x": { "type": "null" } } }]
            }),
            vec![r#"{"id":1,"x":null}"#, r#"{"id":1}"#],
            vec![r#"{"id":1,"x":null,"y":1}"#, r#"{"x":null}"#],
        ),
        // The base alone and in a combination.
        (
            json!({
                "$defs": { "base": base },
                "type": "object",
                "properties": {
                    "one": { "$ref": "#/$defs/base" },
                    "two": { "allOf": [{ "$ref": "#/$defs/base" }], "properties": { "x": {} } }
                }
            }),
            vec![r#"{"one":{"id":1},"two":{"id":1,"x":2}}"#],
            vec![r#"{"one":{"id":1,"x":2}}"#, r#"{"two":{"id":1,"y":2}}"#],
        ),
        // A union with a tag, and members of all branches beside it.
        (
            json!({
                "type": "object",
                "properties": { "id": { "type": "integer" } },
                "anyOf": [
                    { "properties": { "k": { "const": "a" }, "a": { "type": "null" } }, "required": ["k", "a"] },
                    { "properties": { "k": { "const": "b" }, "b": { "type": "null" } }, "required": ["k"] }
                ]
            }),
            vec![
                r#"{"id":1,"k":"a","a":null}"#,
                r#"{"id":1,"k":"b"}"#,
                r#"{"k":"b","b":null}"#,
            ],
            vec![
                r#"{"id":1,"k":"b","a":null}"#,
                r#"{"id":1,"k":"a","a":null,"z":1}"#,
                r#"{"id":1}"#,
            ],
        ),
        // Branches that only demand.
        (
            json!({
                "type": "object",
                "properties": { "a": { "type": "null" }, "b": { "type": "null" } },
                "anyOf": [{ "required": ["a"] }, { "required": ["b"] }]
            }),
            vec![r#"{"a":null}"#, r#"{"b":null}"#, r#"{"a":null,"b":null}"#],
            vec!["{}", r#"{"a":null,"c":1}"#],
        ),
        (
            json!({
                "type": "object",
                "properties": { "a": { "type": "null" } },
                "anyOf": [{ "properties": { "b": { "type": "null" } } }, { "required": ["a"] }]
            }),
            vec![r#"{"a":null}"#, r#"{"a":null,"b":null}"#],
            vec![r#"{"a":null,"c":1}"#],
        ),
        // Alternatives, each closed on its own.
        (
            json!({
                "$defs": { "base": base },
                "anyOf": [{ "$ref": "#/$defs/base" }, { "type": "null" }]
            }),
            vec![r#"{"id":1}"#, "null"],
            vec![r#"{"id":1,"x":1}"#],
        ),
        // A part with alternatives beside another part.
        (
            json!({
                "allOf": [
                    { "anyOf": [{ "properties": { "a": {} } }, { "properties": { "b": {} } }] },
                    { "type": "object", "properties": { "c": {} } }
                ]
            }),
            vec![r#"{"a":1,"c":1}"#, r#"{"b":1,"c":1}"#],
            vec![r#"{"a":1,"b":1,"c":1}"#, r#"{"d":1}"#],
        ),
    ];
    let model = Model::made();
    for (value, right, wrong) in cases {
        let judge = jsonschema::validator_for(&value).unwrap();
        let grammar = model.grammar(&schema(value.clone()));
        for document in right {
            assert!(model.accepts(&grammar, document), "{value}: {document}");
            assert!(judge.is_valid(&serde_json::from_str(document).unwrap()));
        }
        for document in wrong {
            assert!(!model.accepts(&grammar, document), "{value}: {document}");
        }
    }
}

#[test]
fn copies_of_combined_parts_are_bounded() {
    let model = Model::made();
    let mut definitions = Map::new();
    definitions.insert("d0".into(), json!({ "properties": { "a": {} } }));
    for level in 1..20 {
        let below = format!("#/$defs/d{}", level - 1);
        definitions.insert(
            format!("d{level}"),
            json!({ "allOf": [{ "$ref": below }, { "$ref": below }], "properties": { format!("p{level}"): {} } }),
        );
    }
    let value = json!({ "$defs": definitions, "$ref": "#/$defs/d19", "properties": { "x": {} } });
    let message = model.refusal(&schema(value));
    assert!(
        message.contains("parts") || message.contains("combines"),
        "{message}"
    );
}
