//! Hostile sources are refused or compiled in bounded time and stack, without a panic.

use std::time::{Duration, Instant};

use proptest::prelude::*;
use serde_json::json;

use super::*;

/// Half the stack of a wasm module (1 MiB). Native stack frames are at least as large.
const STACK_BYTES: usize = 1 << 19;

/// Compiles on a small stack and, if that works, computes masks.
fn survives(source: GrammarSource) -> Duration {
    let thread = std::thread::Builder::new().stack_size(STACK_BYTES);
    let run = move || {
        let model = Model::made();
        let started = Instant::now();
        match model.compiler.compile(&source, Objects::Closed) {
            Err(error) => assert!(!error.message.starts_with("panic"), "{error:?}"),
            Ok(grammar) => {
                // llguidance may reach its limits only in a mask.
                let _ = model.walk(&grammar, &mut Random(1), 20);
            }
        }
        started.elapsed()
    };
    thread.spawn(run).unwrap().join().unwrap()
}

fn nested(depth: usize, wrap: impl Fn(Value) -> Value) -> Value {
    (0..depth).fold(json!({ "type": "null" }), |inner, _| wrap(inner))
}

/// Longest time that a source may take here, masks included. The estimate of work allows about 2 s; busy
/// machines are slower.
const PATIENCE: Duration = Duration::from_secs(20);

#[test]
fn deep_and_wide_schemas_fit_the_stack_or_are_refused() {
    let chain = |length: usize| {
        let mut definitions = serde_json::Map::new();
        for index in 0..length {
            let next = json!({ "items": { "$ref": format!("#/$defs/d{}", index + 1) } });
            definitions.insert(format!("d{index}"), next);
        }
        definitions.insert(format!("d{length}"), json!({ "type": "null" }));
        json!({ "$ref": "#/$defs/d0", "$defs": definitions })
    };
    let wide = |count: usize, is_required: bool| {
        let names: Vec<String> = (0..count).map(|index| format!("p{index}")).collect();
        let properties: serde_json::Map<String, Value> = names
            .iter()
            .map(|name| (name.clone(), json!({ "type": "boolean" })))
            .collect();
        let required = if is_required { names } else { Vec::new() };
        json!({ "type": "object", "properties": properties, "required": required })
    };
    let constant = |depth: usize| json!({ "const": nested(depth, |inner| json!([inner])) });
    for size in [20, 60, 64, 65, 120, 250, 500, 600, 5000] {
        // JSON text cannot be deeper.
        let depth = size.min(120);
        for value in [
            nested(depth, |inner| json!({ "items": inner })),
            nested(depth, |inner| json!({ "properties": { "a": inner } })),
            nested(
                depth,
                |inner| json!({ "anyOf": [inner, { "type": "null" }] }),
            ),
            nested(
                depth,
                |inner| json!({ "allOf": [inner], "type": ["null", "array"] }),
            ),
            chain(size),
            wide(size, true),
            wide(size, false),
            constant(depth),
            json!({ "enum": (0..size * 4).map(|index| format!("v{index}")).collect::<Vec<_>>() }),
        ] {
            let text: String = value.to_string().chars().take(60).collect();
            let time = survives(schema(value));
            println!("{size} {text}: {time:?}");
            assert!(time < PATIENCE, "{size} {text}: {time:?}");
        }
    }
}

#[test]
fn schemas_that_multiply_are_bounded() {
    let options = |count: usize| -> Vec<Value> {
        (0..count)
            .map(|index| json!({ "properties": { format!("a{index}"): { "type": "string" } } }))
            .collect()
    };
    let patterns: serde_json::Map<String, Value> = (0..40)
        .map(|index| (format!("^(a|b)*x{index}.*(c|d)+$"), json!({})))
        .collect();
    for value in [
        json!({ "allOf": [{ "anyOf": options(40) }, { "anyOf": options(40) }] }),
        json!({ "allOf": [{ "anyOf": options(300) }, { "anyOf": options(300) }] }),
        json!({ "allOf": (0..12).map(|_| json!({ "anyOf": options(3) })).collect::<Vec<_>>() }),
        json!({ "oneOf": options(300) }),
        json!({ "patternProperties": patterns }),
        json!({ "type": "string", "pattern": "^(a{1,500}b{1,500}){1,500}$", "maxLength": 400 }),
        json!({ "type": "string", "minLength": 100000, "maxLength": 100000 }),
        json!({ "type": "string", "maxLength": u64::MAX }),
        json!({ "type": "array", "minItems": 1000000, "items": {} }),
        json!({ "type": "array", "maxItems": u64::MAX, "items": {} }),
        json!({ "minProperties": 100000 }),
        json!({ "multipleOf": 99999999 }),
        json!({ "multipleOf": 1e-300 }),
        json!({ "multipleOf": 1e300 }),
        json!({ "multipleOf": 0.07 }),
        json!({ "allOf": [{ "multipleOf": 65521 }, { "multipleOf": 65537 }, { "multipleOf": 99991 }] }),
        json!({ "minimum": i64::MIN, "maximum": u64::MAX, "type": "integer" }),
        json!({ "minimum": i64::MIN + 1, "maximum": i64::MAX, "type": "integer" }),
        json!({ "exclusiveMaximum": -9.2e18, "type": "integer" }),
        json!({ "minimum": 1e300 }),
        json!({ "maximum": -1e300 }),
        json!({ "minimum": -1e-300, "maximum": 1e-300 }),
        json!({ "minimum": 5e-324, "exclusiveMaximum": 1.7976931348623157e308 }),
        json!({ "$ref": "#" }),
        json!({ "allOf": [{ "$ref": "#" }] }),
        json!({ "anyOf": [{ "$ref": "#" }, { "type": "null" }] }),
        json!({ "type": "é".repeat(200) }),
        json!({ "minimum": "é".repeat(200) }),
        json!({ "pattern": ["é".repeat(200)] }),
        json!({ "required": "é".repeat(200) }),
        json!({ "const": { "é".repeat(300): 1e308 } }),
    ] {
        let text: String = value.to_string().chars().take(60).collect();
        let time = survives(schema(value));
        println!("{text}: {time:?}");
        assert!(time < PATIENCE, "{text}: {time:?}");
    }
}

#[test]
fn expressions_of_every_kind_are_bounded() {
    let words: Vec<String> = (0..50_000).map(|index| format!("w{index}x")).collect();
    for expression in [
        "(".repeat(240) + "a" + &")*".repeat(240),
        "(".repeat(5000) + "a" + &")".repeat(5000),
        "((a{1,1000}){1,1000}){1,1000}".to_owned(),
        "(a?){1000}(a{1000})".to_owned(),
        "(x+x+)+y".to_owned(),
        ".*a.{20}".to_owned(),
        "(.*a.{12}|.*b.{12}|.*c.{12}){3}".to_owned(),
        r"(\p{L}\p{N}){400}".to_owned(),
        r"\w".repeat(20_000),
        "ab".repeat(400_000),
        "(a|b)c".repeat(20_000),
        words.join("|"),
        "a".repeat((1 << 20) + 1),
        "[^a]{4294967295}".to_owned(),
        "a{99999999999}".to_owned(),
    ] {
        let text: String = expression.chars().take(40).collect();
        let time = survives(regex(&expression));
        println!("{text}: {time:?}");
        assert!(time < PATIENCE, "{text}: {time:?}");
    }
}

#[test]
fn lark_grammars_of_every_kind_are_bounded() {
    let chain = |length: usize, name: &str, more: &str| {
        let mut text = format!("start: {name}0\n");
        for index in 0..length {
            text += &format!("{name}{index}: {more} {name}{}\n", index + 1);
        }
        text + &format!("{name}{length}: \"x\"\n")
    };
    let mut sources = vec![
        format!("start: {}\"a\"{}", "(".repeat(28), ")".repeat(28)),
        format!("start: {}\"a\"{}", "(".repeat(5000), ")".repeat(5000)),
        format!(
            "start: {}start: \"a\"{}",
            "%lark {\n".repeat(27),
            "\n}".repeat(27)
        ),
        format!(
            "start: {}start: \"a\"{}",
            "%lark {\n".repeat(500),
            "\n}".repeat(500)
        ),
        "start: %json {} ".to_owned() + &"%json {} ".repeat(300),
        (0..7900).fold("start: ".to_owned(), |text, index| {
            text + &format!("\"w{index}\" ")
        }),
        "start: \"a\"{1,2000000000}".to_owned(),
        "start: (\"a\"? \"b\"?){1000} ".to_owned(),
        "start: start start | \"a\"".to_owned(),
        "start: start | \"a\"".to_owned(),
        "start: a\na: b\nb: a".to_owned(),
        "start: /a*/ /a*/ /a*/ /(a|b)*/".to_owned(),
        "start: \"\"*".to_owned(),
        "start: (\"\")+ a\na: (b?)*\nb: \"\"|c*\nc: \"c\"?".to_owned(),
        "start: A\nA: B\nB: A".to_owned(),
        "%ignore /a*/\nstart: \"b\"".to_owned(),
        "%ignore //\nstart: \"b\"".to_owned(),
        "start: <[0-99999999]>".to_owned(),
        "start: <[5-3]>".to_owned(),
        "start: <[^*]>".to_owned(),
        "start: <[*]>{3}".to_owned(),
        "start: <[^0-5]>".to_owned(),
        "start: ~\"a\"".to_owned(),
        "start: \"a\"..\"\"".to_owned(),
        "start[max_tokens=3]: /.*/".to_owned(),
        "start[stop=\"x\"]: /.*/".to_owned(),
        "start[stop=\"\"]: /.*/".to_owned(),
        "start[lazy]: /.*/".to_owned(),
        "start[suffix=/b+/]: /a.*/".to_owned(),
        "start: a b\na[max_tokens=0]: /x/\nb[temperature=1]: /y/".to_owned(),
        "start::_: \"a\"".to_owned(),
        "start: a::0\na::_: \"x\" %if lt(_, 3) | \"y\" a::incr(_)".to_owned(),
        "start: @a".to_owned(),
        "start: %regex { \"substring_chars\": \"abcabc\" }".to_owned(),
        format!(
            "start: %regex {{ \"substring_words\": \"{}\" }}",
            "ab cd ".repeat(20_000)
        ),
        "%llguidance { \"allow_invalid_utf8\": true }\nstart: /(?s-u:.)*/".to_owned(),
        "%import common.INT\nstart: INT".to_owned(),
        "start: \"é".to_owned(),
        "é".repeat(100),
        "start: %json".to_owned(),
        "start: %json 5".to_owned(),
        "start: %json {\"a\"".to_owned(),
        "start: \"a\"i \"b\"i".to_owned(),
        "start: %jsontrue".to_owned(),
        "\0".to_owned(),
        ":".repeat(1000),
        "start: ".repeat(1000),
    ];
    for length in [20, 60, 90, 200, 3000] {
        sources.push(chain(length, "r", ""));
        sources.push(chain(length, "T", ""));
        sources.push(chain(length, "r", "\"y\" |"));
        sources.push(chain(length, "r", "\"y\" (((( \"z\" ))))"));
        sources.push(chain(length, "r", "\"y\" [").replace('\n', "]\n"));
        sources.push(chain(length, "r", "\"y\" (([(").replace('\n', "))])\n"));
        sources.push(chain(length, "r", "\"y\" |").replace(':', "::_:"));
    }
    for text in sources {
        let time = survives(lark(&text));
        let text: String = text.chars().take(60).collect();
        println!("{text:?}: {time:?}");
        assert!(time < PATIENCE, "{text}: {time:?}");
    }
}

#[test]
fn grammars_that_name_each_other_are_bounded() {
    let lark = |name: &str, text: &str| json!({ "name": name, "lark_grammar": text });
    for grammars in [
        json!([lark("a", "start: @a")]),
        json!([lark("a", "start: @b"), lark("b", "start: @a")]),
        json!([
            lark("a", "start: \"x\" @b | \"\""),
            lark("b", "start: \"y\" @a")
        ]),
        json!([lark("a", "start: \"x\""), lark("a", "start: \"y\"")]),
        // Many nested grammars in each.
        (0..100)
            .map(|index| {
                let one = format!("%lark {{\n%ignore /{index}/\nstart: \"x\"\n}}\n");
                lark(&format!("g{index}"), &format!("start: {}", one.repeat(4)))
            })
            .collect(),
        (0..100)
            .map(|index| {
                let words = (0..1000).map(|word| format!("\"{index}-{word}\""));
                let words = words.collect::<Vec<_>>().join(" ");
                lark(&format!("g{index}"), &format!("start: {words}"))
            })
            .collect(),
        json!([lark("a", "start: @a1"), lark("a1", "start: @5")]),
        (0..400)
            .map(|index| lark(&format!("g{index}"), &format!("start: @g{}", index + 1)))
            .collect(),
        (0..120)
            .map(|index| match index {
                119 => lark("g119", "start: \"x\""),
                _ => lark(
                    &format!("g{index}"),
                    &format!("%ignore /{index}/\nstart[max_tokens=9]: @g{}", index + 1),
                ),
            })
            .collect(),
    ] {
        let time = survives(GrammarSource::LlGuidance(json!({ "grammars": grammars })));
        assert!(time < PATIENCE, "{grammars}: {time:?}");
    }
}

#[test]
fn odd_tokens_do_not_break_masks() {
    let mut metadata = Metadata::new();
    let strings = ["<0xFF>", "</s>", "[5]", "a", "a", ""].map(str::to_owned);
    let strings = [strings.to_vec(), vec!["b".repeat(5000), "ab".to_owned()]].concat();
    metadata.insert("tokenizer.ggml.model", "llama");
    metadata.insert("tokenizer.ggml.scores", vec![-1.0f32; strings.len()]);
    metadata.insert("tokenizer.ggml.token_type", vec![6, 3, 3, 1, 1, 3, 1, 1]);
    metadata.insert("tokenizer.ggml.tokens", strings);
    metadata.insert("tokenizer.ggml.eos_token_id", 1u32);
    let model = Model::new("odd", Tokenizer::from_gguf(&metadata).unwrap());
    let grammar = model.grammar(&lark("start: /[ab]*/ <[2]>"));
    let mut matcher = grammar.matcher();
    let allowed: Vec<bool> = (0..8).map(|id| allows(&mut matcher, id).unwrap()).collect();
    assert_eq!(
        allowed,
        [false, false, true, true, true, false, false, true]
    );
    matcher.accept(4).unwrap();
    matcher.accept(2).unwrap();
    assert_eq!(matcher.next().unwrap(), Next::Finished);
}

#[test]
fn more_than_a_mebibyte_is_over_budget() {
    let model = Model::made();
    let long = "a".repeat((1 << 20) + 1);
    for source in [
        regex(&long),
        lark(&format!("start: \"{long}\"")),
        schema(json!({ "const": long })),
        GrammarSource::LlGuidance(json!({ "grammars": [{ "lark_grammar": long }] })),
    ] {
        let error = model
            .compiler
            .compile(&source, Objects::Closed)
            .unwrap_err();
        assert!(error.is_over_budget, "{error:?}");
    }
    assert!(
        !model
            .compiler
            .compile(&regex("("), Objects::Closed)
            .unwrap_err()
            .is_over_budget
    );
}

fn json_value() -> impl Strategy<Value = Value> {
    const KEYWORDS: &[&str] = &[
        "type",
        "properties",
        "items",
        "prefixItems",
        "enum",
        "const",
        "anyOf",
        "oneOf",
        "allOf",
        "$ref",
        "$defs",
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "multipleOf",
        "minLength",
        "maxLength",
        "pattern",
        "format",
        "required",
        "additionalProperties",
        "minItems",
        "maxItems",
        "patternProperties",
        "minProperties",
        "maxProperties",
        "not",
        "$id",
        "$schema",
    ];
    const WORDS: &[&str] = &[
        "object",
        "array",
        "string",
        "integer",
        "number",
        "null",
        "boolean",
        "#",
        "#/$defs/a",
        "^a+$",
        "[",
        "date",
        "a",
        "é",
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-9i64..9).prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        prop::sample::select(WORDS).prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 40, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((prop::sample::select(KEYWORDS), inner), 0..5).prop_map(
                |members| Value::Object(
                    members
                        .into_iter()
                        .map(|(key, value)| (key.to_owned(), value))
                        .collect()
                )
            ),
        ]
    })
}

thread_local! {
    static MADE: Model = Model::made();
}

/// Compiles on the current stack and, if that works, computes a few masks.
fn try_out(source: GrammarSource) {
    MADE.with(
        |model| match model.compiler.compile(&source, Objects::Closed) {
            Err(error) => assert!(!error.message.starts_with("panic"), "{source:?}: {error:?}"),
            Ok(grammar) => match model.walk(&grammar, &mut Random(1), 5) {
                Ok(_) | Err(crate::Error::GrammarDeadEnd { .. }) => {}
                Err(error) => panic!("{source:?}: {error}"),
            },
        },
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn any_text_is_an_expression_or_refused(
        text in r#"(\\PC|[a-c]|\\[dwsbpPx1]|[\[\](){}|*+?^$.,0-9-]|\(\?[imsx:=!<P]){0,20}"#,
    ) {
        try_out(regex(&text));
    }

    #[test]
    fn any_text_is_a_lark_grammar_or_refused(
        text in r#"(start: )?("[a-c]*"|/[a-c.*+|]{1,5}/|[a-cA-C]|[a-c]: |[A-C]: |\n|[|()\[\]{}+*?~&:%<>@!-]|[0-9]|%json \{\}|<\|think\|>|%ignore |\PC){0,20}"#,
    ) {
        try_out(lark(&text));
    }

    #[test]
    fn any_value_is_a_schema_or_refused(value in json_value()) {
        try_out(schema(value));
    }

    #[test]
    fn any_value_is_llguidances_form_or_refused(value in json_value()) {
        try_out(GrammarSource::LlGuidance(json!({ "grammars": [value.clone()] })));
        try_out(GrammarSource::LlGuidance(value));
    }
}
