//! Every form of specification 9.2 and 9.3, and what each refuses (cases 101 to 107).

use serde_json::json;

use super::*;
use crate::Error;
use crate::sample::SamplingParams;

#[test]
fn a_regular_expression_must_match_from_end_to_end() {
    let model = Model::made();
    let example = model.grammar(&regex("example"));
    assert!(model.accepts(&example, "example"));
    assert!(!model.accepts(&example, "examples"));
    assert!(!model.accepts(&example, "an example"));
    let number = model.grammar(&regex("^[0-9]{3}-[0-9]{4}$"));
    assert!(model.accepts(&number, "555-0123"));
    assert!(!model.accepts(&number, "555-012"));
    let dot = model.grammar(&regex("a.c|d"));
    assert!(model.accepts(&dot, "aéc") && model.accepts(&dot, "d"));
    assert!(!model.accepts(&dot, "a\nc"));
    let slashes = model.grammar(&regex(r"a/b\/c\\/[/d]"));
    assert!(model.accepts(&slashes, r"a/b/c\//"));
    let verbose = model.grammar(&regex("(?x) a # the / first\n b"));
    assert!(model.accepts(&verbose, "ab"));
    assert!(!model.accepts(&verbose, "a\nb"));
    let case = model.grammar(&regex("(?i)yes"));
    assert!(model.accepts(&case, "YeS"));
}

#[test]
fn invalid_and_unsupported_regular_expressions_are_refused() {
    let model = Model::made();
    for (expression, word) in [
        ("(", "unclosed"),
        ("(?=a)a", "look-around"),
        (r"(a)\1", "backreferences"),
        (r"\bword\b", "lookaround"),
        ("a^b", "lookaround"),
        ("(?P<stop>a)b", "stop"),
        (r"[^\s\S]", "no sequence"),
    ] {
        let message = model.refusal(&regex(expression));
        assert!(message.contains(word), "{expression}: {message}");
    }
}

#[test]
fn a_language_of_only_the_empty_text_ends_at_once() {
    let model = Model::made();
    for source in [regex(""), regex("a{0}"), lark("start: \"\"")] {
        let mut matcher = model.grammar(&source).matcher();
        assert_eq!(matcher.next().unwrap(), Next::Finished, "{source:?}");
    }
}

#[test]
fn a_grammar_ends_where_nothing_may_follow_and_allows_every_end_of_text() {
    let model = Model::made();
    let ends = [model.special("</s>"), model.special("<|im_end|>")];
    assert!(ends.iter().all(|id| model.tokenizer.eos_ids().contains(id)));
    let grammar = model.grammar(&regex("ab*"));
    let mut matcher = grammar.matcher();
    for end in ends {
        assert!(!allows(&mut matcher, end).unwrap());
        assert!(matches!(
            grammar.matcher().accept(end),
            Err(Error::Internal(_))
        ));
    }
    matcher.accept(model.byte(b'a')).unwrap();
    for end in ends {
        assert!(allows(&mut matcher, end).unwrap());
        let mut matcher = grammar.matcher();
        matcher.accept(model.byte(b'a')).unwrap();
        matcher.accept(end).unwrap();
        assert_eq!(matcher.next().unwrap(), Next::Finished);
        assert!(matches!(
            matcher.accept(model.byte(b'b')),
            Err(Error::Internal(_))
        ));
    }
    let mut matcher = model.grammar(&regex("ab?")).matcher();
    for byte in *b"ab" {
        matcher.accept(model.byte(byte)).unwrap();
    }
    assert_eq!(matcher.next().unwrap(), Next::Finished);
}

#[test]
fn tokens_that_straddle_parts_are_allowed_and_special_ones_are_not() {
    let model = Model::made();
    let source = schema(json!({
        "type": "object", "properties": { "name": {} }, "required": ["name"],
        "additionalProperties": false
    }));
    let mut matcher = model.grammar(&source).matcher();
    let allowed = |matcher: &mut Matcher| -> Vec<String> {
        let Next::OneOf(mask) = matcher.next().unwrap() else {
            panic!("nothing or anything");
        };
        let ids = 0..model.tokenizer.vocab_size() as u32;
        ids.filter(|&id| mask.allows(id))
            .map(|id| model.tokenizer.token_label(id))
            .collect()
    };
    // "{" occurs twice, as a piece and as a byte.
    assert_eq!(allowed(&mut matcher), ["{", "{", "{\"", "{\"name\":"]);
    let any = model.grammar(&regex("(?s).*"));
    let labels = allowed(&mut any.matcher());
    for special in ["<s>", "<|think|>", "<unk>", "[TOOL_CALLS]", ""] {
        assert!(!labels.iter().any(|label| label == special), "{special}");
    }
    assert!(labels.iter().any(|label| label == "<tool_call>"));
    assert!(labels.iter().any(|label| label == "</s>"));
    // The first byte of a character is allowed, but no byte that cannot begin one.
    let mut matcher = any.matcher();
    assert!(allows(&mut matcher, model.byte(0xC3)).unwrap());
    assert!(!allows(&mut matcher, model.byte(0x80)).unwrap());
    assert!(!allows(&mut matcher, model.byte(0xFF)).unwrap());
}

#[test]
fn ids_that_the_model_or_the_tokenizer_lacks_are_forbidden() {
    let model = Model::made();
    let size = model.tokenizer.vocab_size();
    let source = regex("(?s).*");
    for vocab_size in [size + 100, size - 20] {
        let compiler = Compiler::new(&model.tokenizer, vocab_size);
        let mut matcher = compiler
            .compile(&source, Objects::Closed)
            .unwrap()
            .matcher();
        let Next::OneOf(mask) = matcher.next().unwrap() else {
            panic!("not constrained");
        };
        let least = size.min(vocab_size) as u32;
        assert!((least..2 * size as u32).all(|id| !mask.allows(id)));
        assert!((0..least).any(|id| mask.allows(id)));
    }
}

#[test]
fn json_forms_accept_valid_documents() {
    let model = Model::made();
    let object = model.grammar(&GrammarSource::JsonObject);
    assert!(model.accepts(&object, r#"{"a":[1,{"b":null}],"c":"é"}"#));
    assert!(model.accepts(&object, "{}"));
    assert!(!model.accepts(&object, "[]"));
    for always in [json!(true), json!({})] {
        let any = model.grammar(&schema(always));
        assert!(model.accepts(&any, "[1.5e3]") && model.accepts(&any, "null"));
    }
    let person = model.grammar(&schema(json!({
        "type": "object",
        "properties": {
            "name": { "type": "string", "maxLength": 10 },
            "age": { "type": "integer", "minimum": 0, "maximum": 150 }
        },
        "required": ["name", "age"],
        "additionalProperties": false
    })));
    assert!(model.accepts(&person, r#"{"name":"x","age":150}"#));
    assert!(!model.accepts(&person, r#"{"name":"x","age":151}"#));
    assert!(!model.accepts(&person, r#"{"name":"x"}"#));
    assert!(!model.accepts(&person, r#"{"name":"x","age":1,"b":2}"#));
    // Keys come in the order of `properties`.
    assert!(!model.accepts(&person, r#"{"age":1,"name":"x"}"#));
}

#[test]
fn white_space_in_json_is_one_space_or_one_short_indentation() {
    let model = Model::made();
    let value = json!({ "type": "object", "properties": { "a": { "type": "array" } } });
    let sources = [
        schema(value.clone()),
        lark(&format!("start: %json {value}")),
        GrammarSource::LlGuidance(json!({ "grammars": [{ "json_schema": value }] })),
    ];
    for source in sources {
        let grammar = model.grammar(&source);
        let indented = format!("{{\n{}\"a\" :\n[ 1,\n2 ]\n}}", " ".repeat(16));
        assert!(model.accepts(&grammar, &indented), "{source:?}");
        for wrong in [
            " {}",
            "{} ",
            "\n{}",
            "{}\n",
            "{  }",
            "{\t}",
            "{\r\n}",
            "{ \n}",
            "{\n\n}",
            "{\"a\":[1,  2]}",
        ] {
            assert!(!model.accepts(&grammar, wrong), "{source:?}: {wrong:?}");
        }
        let too_deep = format!("{{\n{}}}", " ".repeat(17));
        assert!(!model.accepts(&grammar, &too_deep), "{source:?}");
    }
}

#[test]
fn invalid_and_unsupported_schemas_are_refused() {
    let model = Model::made();
    for (value, word) in [
        (json!("x"), "object or boolean"),
        (json!(7), "object or boolean"),
        (json!(false), "false"),
        (json!({ "type": "nonsense" }), "nonsense"),
        (json!({ "not": {} }), "not"),
        (json!({ "uniqueItems": true }), "uniqueItems"),
        (json!({ "if": {}, "then": {} }), "if"),
        (json!({ "contains": {} }), "contains"),
        (json!({ "propertyNames": {} }), "propertyNames"),
        (json!({ "dependentRequired": {} }), "dependentRequired"),
        (
            json!({ "unevaluatedProperties": false }),
            "unevaluatedProperties",
        ),
        (
            json!({ "oneOf": [{ "minimum": 1 }, { "maximum": 5 }] }),
            "oneOf",
        ),
        (
            json!({ "type": "string", "format": "nonsense" }),
            "nonsense",
        ),
        (json!({ "pattern": "(?=a)a" }), "look-around"),
        (json!({ "pattern": "(" }), "unclosed"),
        (json!({ "$ref": "https://example.org/s" }), "$ref"),
        (json!({ "$ref": "#/$defs/none" }), "none"),
        (
            json!({ "type": "integer", "minimum": 3, "maximum": 2 }),
            "minimum",
        ),
        (json!({ "minimum": "x" }), "minimum"),
        (json!({ "multipleOf": 0 }), "multipleOf"),
        (json!({ "const": 9007199254740993i64 }), "digits"),
        (json!({ "properties": 5 }), "properties"),
        (
            json!({ "properties": { "a": { "items": { "type": 5 } } } }),
            "type",
        ),
    ] {
        let message = model.refusal(&schema(value.clone()));
        assert!(message.contains(word), "{value}: {message}");
    }
}

#[test]
fn a_schema_cannot_loosen_its_own_compilation() {
    let model = Model::made();
    let lenient = json!({ "uniqueItems": true, "x-guidance": { "lenient": true } });
    for source in [
        schema(lenient.clone()),
        lark(&format!("start: %json {lenient}")),
        GrammarSource::LlGuidance(json!({ "grammars": [{ "json_schema": lenient }] })),
    ] {
        assert!(model.refusal(&source).contains("uniqueItems"), "{source:?}");
    }
}

#[test]
fn a_schema_chooses_its_own_spacing() {
    let model = Model::made();
    let spaced = |options: Value| {
        let properties = json!({ "a": { "const": 1 }, "b": { "const": 2 } });
        json!({ "type": "object", "properties": properties, "required": ["a", "b"], "x-guidance": options })
    };
    // The body that guidance's `json` sends.
    let strict = spaced(json!({
        "whitespace_flexible": false, "whitespace_pattern": null, "item_separator": ", ", "key_separator": ": ",
        "coerce_one_of": true, "lenient": false,
    }));
    for source in [
        schema(strict.clone()),
        lark(&format!("start: %json {strict}")),
        GrammarSource::LlGuidance(json!({ "grammars": [{ "json_schema": strict }] })),
    ] {
        let grammar = model.grammar(&source);
        assert!(model.accepts(&grammar, r#"{"a": 1, "b": 2}"#), "{source:?}");
        for other in [
            r#"{"a":1,"b":2}"#,
            r#"{ "a": 1, "b": 2}"#,
            r#"{"a": 1,  "b": 2}"#,
        ] {
            assert!(!model.accepts(&grammar, other), "{source:?}: {other}");
        }
    }
    let dashes = model.grammar(&schema(spaced(json!({ "whitespace_pattern": "-" }))));
    assert!(model.accepts(&dashes, r#"{-"a":-1,"b":2-}"#));
    assert!(!model.accepts(&dashes, r#"{ "a":1,"b":2}"#));
    // The white space of a request has precedence over that of its schema.
    let compact = model.grammar(&GrammarSource::SpacedJsonSchema {
        schema: spaced(json!({ "whitespace_flexible": true })),
        whitespace: Whitespace::None,
    });
    assert!(!model.accepts(&compact, r#"{"a": 1,"b":2}"#));
    for (options, word) in [
        (json!({ "whitespace_flexible": 1 }), "whitespace_flexible"),
        (json!({ "whitespace_pattern": 1 }), "whitespace_pattern"),
        (json!({ "key_separator": [] }), "key_separator"),
        (json!({ "item_separator": "(" }), "unclosed"),
        (json!({ "item_separator": "(?P<stop>x)" }), "stop"),
    ] {
        let message = model.refusal(&schema(spaced(options.clone())));
        assert!(message.contains(word), "{options}: {message}");
    }
}

#[test]
fn lark_in_llguidances_dialect() {
    let model = Model::made();
    let words = model.grammar(&lark("start: \"yes\" | \"no\""));
    assert!(model.accepts(&words, "yes") && model.accepts(&words, "no"));
    assert!(!model.accepts(&words, "yesno"));
    let sums = model.grammar(&lark(
        "%ignore / +/\nstart: term (\"+\" term)*\nterm: NUMBER | \"(\" start \")\"\nNUMBER: /[0-9]+/",
    ));
    assert!(model.accepts(&sums, "1 + (2+3)+4"));
    assert!(!model.accepts(&sums, "1 + (2"));
    let named = model.grammar(&lark("start: \"a\" <|think|> \"b\""));
    let mut matcher = named.matcher();
    matcher.accept(model.byte(b'a')).unwrap();
    assert!(!allows(&mut matcher, model.byte(b'b')).unwrap());
    matcher.accept(model.special("<|think|>")).unwrap();
    matcher.accept(model.byte(b'b')).unwrap();
    assert_eq!(matcher.next().unwrap(), Next::Finished);
    let nested = model.grammar(&lark("start: \"x\" %json { \"enum\": [\"a\", 1] } \"y\""));
    assert!(model.accepts(&nested, "x\"a\"y") && model.accepts(&nested, "x1y"));
    for (text, word) in [
        ("rule: \"a\"", "start"),
        ("start: other", "other"),
        ("start: <|nonsense|>", "nonsense"),
        ("start: \"a", "lexer error"),
        ("start: /(?=a)a/", "look-around"),
        ("start: %json {\"not\": {}}", "not"),
        ("start[temperature=-1]: /a/", "temperature"),
        ("start[temperature=inf]: /a/", "temperature"),
        ("start[temperature=]: /a/", "temperature"),
        ("start[temperature=1]: \"a\" \"b\"+ | other", "other"),
        ("start: %json", "JSON"),
        ("", "start"),
    ] {
        let message = model.refusal(&lark(text));
        assert!(message.contains(word), "{text}: {message}");
    }
}

#[test]
fn lark_sets_temperatures() {
    let model = Model::made();
    let text = "start: \"x\" warm json cold \"z\"\nwarm[temperature=0.75]: /[0-9]{2}/\n\
        json[temperature = 1e0]: %json { \"type\": \"boolean\" }\ncold[temperature=0.0]: /[a-b]/";
    let nested = GrammarSource::LlGuidance(json!({ "grammars": [{ "lark_grammar": text }] }));
    for source in [lark(text), nested] {
        let grammar = model.grammar(&source);
        assert!(grammar.may_set_temperatures());
        let mut matcher = grammar.matcher();
        let mut found = vec![matcher.temperature()];
        for byte in b"x12truea" {
            matcher.next().unwrap();
            matcher.accept(model.byte(*byte)).unwrap();
            found.push(matcher.temperature());
        }
        let [x, one, two, json @ .., a, z] = &found[..] else {
            unreachable!()
        };
        assert_eq!([*x, *z], [None, None], "{found:?}");
        assert_eq!([*one, *two], [Some(0.75); 2], "{found:?}");
        assert!(json.iter().all(|it| *it == Some(1.0)), "{found:?}");
        let a = a.expect("0 is a temperature");
        assert!(a > 0.0 && a < SamplingParams::GREEDY_BELOW, "{found:?}");
    }
    // The highest temperature of the terminals that may come next decides.
    let either = model.grammar(&lark(
        "start: a | b\na[temperature=0.5]: \"ax\"\nb[temperature=1.5]: \"bx\"",
    ));
    assert_eq!(either.matcher().temperature(), Some(1.5));
    let plain = model.grammar(&lark("start: \"a\""));
    assert!(!plain.may_set_temperatures());
    assert_eq!(plain.matcher().temperature(), None);
}

#[test]
fn llguidances_own_form() {
    let model = Model::made();
    let source = GrammarSource::LlGuidance(json!({
        "grammars": [
            { "lark_grammar": "start: @v" },
            { "name": "v", "json_schema": { "enum": ["a", "b"] } }
        ],
        "max_tokens": 7
    }));
    let grammar = model.grammar(&source);
    assert!(model.accepts(&grammar, "\"a\"") && model.accepts(&grammar, "\"b\""));
    assert!(!model.accepts(&grammar, "\"c\""));
    assert_eq!(grammar.max_tokens(), Some(7));
    assert_eq!(model.grammar(&regex("a")).max_tokens(), None);
    for (value, word) in [
        (json!([]), "object"),
        (json!({}), "grammars"),
        (json!({ "grammars": [] }), "grammars"),
        (json!({ "grammars": [{}] }), "lark_grammar or json_schema"),
        (json!({ "grammars": [{ "regex": "a" }] }), "regex"),
        (
            json!({ "grammars": [{ "lark_grammar": 5 }] }),
            "lark_grammar",
        ),
        (
            json!({ "grammars": [{ "lark_grammar": "start: @w" }] }),
            "w",
        ),
        (
            json!({ "grammars": [{ "lark_grammar": "start: \"a\"" }], "max_tokens": -1 }),
            "max_tokens",
        ),
        (
            json!({ "grammars": [{ "lark_grammar": "start: \"a\"", "json_schema": true }] }),
            "both",
        ),
        (
            json!({ "grammars": [{ "json_schema": { "not": {} } }] }),
            "not",
        ),
    ] {
        let message = model.refusal(&GrammarSource::LlGuidance(value.clone()));
        assert!(message.contains(word), "{value}: {message}");
    }
}

#[test]
fn candidates_do_not_disturb_each_other() {
    let model = Model::made();
    let grammar = model.grammar(&regex("(ab|ba)*c"));
    let mut one = grammar.clone().matcher();
    let mut other = grammar.matcher();
    for _ in 0..3 {
        one.accept(model.byte(b'a')).unwrap();
        other.accept(model.byte(b'b')).unwrap();
        assert!(!allows(&mut one, model.byte(b'a')).unwrap());
        assert!(!allows(&mut other, model.byte(b'b')).unwrap());
        one.accept(model.byte(b'b')).unwrap();
        other.accept(model.byte(b'a')).unwrap();
    }
    one.accept(model.byte(b'c')).unwrap();
    assert_eq!(one.next().unwrap(), Next::Finished);
    assert!(allows(&mut other, model.byte(b'c')).unwrap());
}

#[test]
fn a_dead_end_reports_its_position() {
    let model = Model::made();
    // A vocabulary that ends with the letter b.
    let compiler = Compiler::new(&model.tokenizer, 3 + usize::from(b'b') + 1);
    let grammar = compiler
        .compile(&regex("a(b|c)?(c|d)"), Objects::Closed)
        .unwrap();
    let mut matcher = grammar.matcher();
    matcher.accept(model.byte(b'a')).unwrap();
    matcher.accept(model.byte(b'b')).unwrap();
    assert_eq!(
        matcher.next().unwrap_err(),
        Error::GrammarDeadEnd { position: 2 }
    );
}
