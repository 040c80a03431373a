//! Random completions under constraints: every completion that ends is in the language.

use serde_json::{Map, json};

use super::*;

#[test]
fn completions_that_end_match_the_regular_expression() {
    let expressions = [
        "example",
        "[0-9]{3}-[0-9]{4}",
        "(yes|no|maybe)( please)?",
        r"\d{4}-\d\d-\d\dT\d\d:\d\dZ",
        "(?i)hello, (world|earth)!{0,3}",
        r"[\p{Greek}é日]{1,5}",
        r"(a|ab)(c|bcd)(d*)",
        ".{0,12}",
        r"[^\n]{3,9}(\n- [a-z ]*)?",
        "",
        r"(\{[a-z]*\}|\[[a-z]*\])+",
    ];
    let mut random = Random(1);
    for model in Model::made_and(&["stories260K", "gpt-2"]) {
        for expression in expressions {
            let grammar = model.grammar(&regex(expression));
            let judge = ::regex::Regex::new(&format!(r"\A(?:{expression})\z")).unwrap();
            for _ in 0..8 {
                let free_tokens = random.below(12);
                let walk = model.walk(&grammar, &mut random, free_tokens).unwrap();
                assert!(walk.is_finished, "{}: {expression}", model.name);
                assert!(
                    judge.is_match(&walk.text),
                    "{}: {expression}: {:?}",
                    model.name,
                    walk.text
                );
            }
        }
    }
}

#[test]
fn lark_walks_end_in_the_language() {
    let mut random = Random(2);
    let ab = "start: \"a\" start \"b\" | \"\"";
    for model in Model::made_and(&["llama-spm"]) {
        let grammar = model.grammar(&lark("start: \"yes\" | \"no\""));
        let nested = model.grammar(&lark(ab));
        for _ in 0..8 {
            let walk = model.walk(&grammar, &mut random, 10).unwrap();
            assert!(["yes", "no"].contains(&walk.text.as_str()), "{}", walk.text);
            let walk = model.walk(&nested, &mut random, 6).unwrap();
            let half = walk.text.len() / 2;
            assert!(walk.is_finished);
            assert_eq!(walk.text, "a".repeat(half) + &"b".repeat(half));
        }
    }
}

#[test]
fn json_objects_are_objects() {
    let mut random = Random(3);
    for model in Model::made_and(&["stories260K", "llama-spm", "gpt-2"]) {
        let grammar = model.grammar(&GrammarSource::JsonObject);
        let mut finished = 0;
        for _ in 0..12 {
            let free_tokens = random.below(40);
            let walk = model.walk(&grammar, &mut random, free_tokens).unwrap();
            if walk.is_finished {
                finished += 1;
                let value: Value = match serde_json::from_str(&walk.text) {
                    Ok(value) => value,
                    Err(error) if error.to_string().contains("number out of range") => continue,
                    Err(error) => panic!("{}: {error}: {:?}", model.name, walk.text),
                };
                assert!(value.is_object());
                assert!(white_space_is_limited(&walk.text), "{:?}", walk.text);
            }
        }
        assert!(finished > 8, "{}: {finished}", model.name);
    }
}

/// Number of random schemas.
const SCHEMAS: u64 = 200;

#[test]
fn no_random_schema_ever_yields_an_invalid_document() {
    let models = Model::made_and(&["stories260K", "llama-spm", "gpt-2", "qwen2"]);
    let (mut compiled, mut finished, mut refused) = (0, 0, 0);
    for seed in 0..SCHEMAS {
        let mut random = Random(1000 + seed);
        let value = random_schema(&mut random, 3);
        let judge = jsonschema::validator_for(&value)
            .unwrap_or_else(|error| panic!("{seed}: {value}: {error}"));
        // Each schema is tested with one vocabulary, because the large ones take long.
        let model = &models[random.below(models.len())];
        let grammar = match model.compiler.compile(
            &schema(value.clone()),
            *random.pick(&[Objects::Closed, Objects::Open]),
        ) {
            Ok(grammar) => grammar,
            Err(error) => {
                assert!(!error.message.starts_with("panic"), "{value}: {error:?}");
                refused += 1;
                continue;
            }
        };
        compiled += 1;
        for _ in 0..3 {
            let free_tokens = random.below(30);
            let walk = model
                .walk(&grammar, &mut random, free_tokens)
                .unwrap_or_else(|error| panic!("{seed}: {}: {value}: {error}", model.name));
            if !walk.is_finished {
                continue;
            }
            finished += 1;
            let document: Value = match serde_json::from_str(&walk.text) {
                Ok(document) => document,
                // Valid JSON, but a number is out of range for the validator.
                Err(error) if error.to_string().contains("number out of range") => continue,
                Err(error) => panic!("{seed}: {value}: {:?}: {error}", walk.text),
            };
            if let Err(error) = judge.validate(&document) {
                panic!("{seed}: {}: {value}: {document}: {error}", model.name);
            }
            assert!(white_space_is_limited(&walk.text), "{:?}", walk.text);
        }
    }
    println!("{compiled} compiled, {refused} refused, {finished} documents");
    assert!(compiled > SCHEMAS * 3 / 4, "{compiled}");
    assert!(finished > compiled * 2, "{finished} of {compiled}");
}

/// A random schema from the keywords that llguidance supports. A few schemas contradict themselves.
fn random_schema(random: &mut Random, depth: usize) -> Value {
    let kinds = if depth == 0 { 6 } else { 10 };
    match random.below(kinds) {
        0 => json!({ "type": "boolean" }),
        1 => random_string(random),
        2 => random_number(random, "integer"),
        3 => random_number(random, "number"),
        4 => {
            let count = 1 + random.below(4);
            let values: Vec<Value> = (0..count).map(|_| random_constant(random, 1)).collect();
            json!({ "enum": values })
        }
        5 if random.one_in(3) => json!({ "type": ["null", "string"], "maxLength": 4 }),
        5 => json!({ "const": random_constant(random, 2) }),
        6 | 7 => random_object(random, depth),
        8 => random_array(random, depth),
        _ => {
            let count = 1 + random.below(3);
            let options: Vec<Value> = (0..count)
                .map(|_| random_schema(random, depth - 1))
                .collect();
            json!({ "anyOf": options })
        }
    }
}

fn random_string(random: &mut Random) -> Value {
    match random.below(6) {
        0 => json!({ "type": "string" }),
        1 => {
            let least = random.below(5);
            json!({ "type": "string", "minLength": least, "maxLength": least + random.below(6) })
        }
        2 => {
            let patterns = [
                "^[a-z]+$",
                "[0-9]{2}",
                r"^\w+@\w+\.(com|org)$",
                "^(é|日本)*$",
                r"^[^/]*/[a-z\d]+$",
                "\"|\\\\",
            ];
            json!({ "type": "string", "pattern": *random.pick(&patterns) })
        }
        3 => json!({ "type": "string", "pattern": "^[a-f]*$", "minLength": 2, "maxLength": 5 }),
        4 => {
            let formats = ["date", "date-time", "uuid", "ipv4", "time"];
            json!({ "type": "string", "format": *random.pick(&formats) })
        }
        _ => json!({ "type": "string", "minLength": random.below(4) }),
    }
}

fn random_number(random: &mut Random, kind: &str) -> Value {
    let mut members = Map::new();
    members.insert("type".to_owned(), kind.into());
    let low = random.below(400) as i64 - 200;
    let high = low + 1 + random.below(300) as i64;
    let fraction = if kind == "number" && random.one_in(2) {
        0.25
    } else {
        0.0
    };
    if random.one_in(2) {
        let keyword = *random.pick(&["minimum", "exclusiveMinimum"]);
        members.insert(keyword.to_owned(), number(low, fraction));
    }
    if random.one_in(2) {
        let keyword = *random.pick(&["maximum", "exclusiveMaximum"]);
        members.insert(keyword.to_owned(), number(high, fraction));
    }
    // Bounds keep the numbers small, because the validator divides in f64.
    if kind == "integer" && members.len() == 3 && random.one_in(2) {
        members.insert("multipleOf".to_owned(), (1 + random.below(7)).into());
    }
    Value::Object(members)
}

fn number(integer: i64, fraction: f64) -> Value {
    if fraction == 0.0 {
        integer.into()
    } else {
        (integer as f64 + fraction).into()
    }
}

fn random_constant(random: &mut Random, depth: usize) -> Value {
    match random.below(if depth == 0 { 5 } else { 7 }) {
        0 => Value::Null,
        1 => true.into(),
        2 => (random.below(2000) as i64 - 1000).into(),
        3 => (random.below(100) as f64 / 8.0).into(),
        4 => (*random.pick(&["", "a", "é\"\\\n", "日本語", "</tool_call>", "x y"])).into(),
        5 => (0..random.below(3))
            .map(|_| random_constant(random, depth - 1))
            .collect(),
        _ => json!({ "k": random_constant(random, depth - 1) }),
    }
}

fn random_object(random: &mut Random, depth: usize) -> Value {
    let names = ["name", "age", "é", "a b", "x\"y", "tags"];
    let mut properties = Map::new();
    let mut required = Vec::new();
    for name in names {
        if random.one_in(2) {
            properties.insert(name.to_owned(), random_schema(random, depth - 1));
            if random.one_in(2) {
                required.push(name);
            }
        }
    }
    let mut object = json!({ "type": "object", "properties": properties, "required": required });
    match random.below(4) {
        0 => object["additionalProperties"] = random_schema(random, 0),
        1 => object["patternProperties"] = json!({ "^z[0-9]$": random_schema(random, 0) }),
        _ => object["additionalProperties"] = false.into(),
    }
    if random.one_in(6) {
        object["$defs"] = json!({ "d": random_schema(random, 0) });
    }
    object
}

fn random_array(random: &mut Random, depth: usize) -> Value {
    let mut array = json!({ "type": "array", "items": random_schema(random, depth - 1) });
    if random.one_in(2) {
        array["minItems"] = random.below(4).into();
        array["maxItems"] = (3 + random.below(4)).into();
    }
    if random.one_in(4) {
        let count = 1 + random.below(2);
        let prefix: Vec<Value> = (0..count).map(|_| random_schema(random, 0)).collect();
        array["prefixItems"] = prefix.into();
        if random.one_in(2) {
            array["items"] = false.into();
            array.as_object_mut().unwrap().shift_remove("minItems");
        }
    }
    array
}

#[test]
fn an_object_may_have_hundreds_of_optional_properties() {
    let properties: Map<String, Value> = (0..500)
        .map(|index| (format!("property {index}"), json!({ "type": "boolean" })))
        .collect();
    let value = json!({ "type": "object", "properties": properties });
    let judge = jsonschema::validator_for(&value).unwrap();
    let model = Model::made();
    let grammar = model.grammar(&schema(value));
    let mut random = Random(6);
    let mut most = 0;
    for _ in 0..4 {
        let walk = model.walk(&grammar, &mut random, 60).unwrap();
        let document: Value = serde_json::from_str(&walk.text).unwrap();
        assert!(judge.is_valid(&document), "{document}");
        most = most.max(document.as_object().unwrap().len());
    }
    assert!(most > 1, "{most}");
}

#[test]
fn references_are_followed() {
    let mut random = Random(5);
    let value = json!({
        "$defs": {
            "tree": {
                "type": "object",
                "properties": {
                    "value": { "type": "integer", "maximum": 9 },
                    "children": { "type": "array", "items": { "$ref": "#/$defs/tree" } }
                },
                "required": ["value", "children"],
                "additionalProperties": false
            }
        },
        "allOf": [{ "$ref": "#/$defs/tree" }, { "properties": { "value": { "minimum": 7 } } }]
    });
    let judge = jsonschema::validator_for(&value).unwrap();
    let model = Model::made();
    let grammar = model.grammar(&schema(value));
    for _ in 0..10 {
        let walk = model.walk(&grammar, &mut random, 30).unwrap();
        assert!(walk.is_finished);
        let document: Value = serde_json::from_str(&walk.text).unwrap();
        assert!(judge.is_valid(&document), "{document}");
        let deeper = json!({ "value": 6, "children": [] });
        assert!(!judge.is_valid(&deeper));
    }
}

/// In each element an array repeats itself.
fn an_array_of_repetitions_is_closed(model: &Model) {
    let part = json!({ "type": "object", "properties": { "a": {} }, "required": ["a"] });
    let parts = json!({ "type": "array", "items": part });
    let element = json!({ "type": "object", "properties": { "n": {}, "parts": parts, "z": {} } });
    let document = json!({
        "type": "object",
        "properties": { "items": { "type": "array", "items": element }, "more": {} }
    });
    let grammar = model.grammar(&schema(document));
    let mut matcher = grammar.matcher();
    let mut write = |text: &str| {
        for byte in text.bytes() {
            let is_allowed = allows(&mut matcher, model.byte(byte)).unwrap();
            assert!(is_allowed, "{} of {text}", char::from(byte));
            matcher.accept(model.byte(byte)).unwrap();
        }
        let mut next = |byte: u8| allows(&mut matcher, model.byte(byte)).unwrap();
        (next(b','), next(b']'))
    };
    write("{\"items\":[");
    let filler = "{\"a\":1}".to_owned() + &",{\"a\":1}".repeat(20);
    for n in 0..2 {
        let begin = if n == 0 { "" } else { "," };
        let repeated = format!("{begin}{{\"n\":{n},\"parts\":[{filler}");
        assert_eq!(write(&repeated), (false, true));
        // Text that does not repeat may go on.
        let is_last = n == 1;
        assert_eq!(write("]").0, !is_last);
        assert_eq!(write("}"), (!is_last, true));
    }
    // Only the array is closed.
    assert!(write("]").0);
    write(",\"more\":1}");
}

#[test]
fn numbers_end_and_repeated_text_is_closed() {
    let model = Model::made();
    let object = json!({ "type": "object", "properties": { "a": { "type": "number" }, "b": {} } });
    for (source, before, repeated, closer, most) in [
        (schema(object.clone()), "{\"a\":", "1", b'}', 20),
        (schema(object.clone()), "{\"a\":-0.", "0", b'}', 20),
        (
            schema(json!({ "type": "integer", "minimum": 0 })),
            "",
            "7",
            b'1',
            20,
        ),
        (schema(object.clone()), "{\"b\":\"", "ab", b'"', 34),
        (schema(object.clone()), "{\"b\":\"", "y", b'"', 32),
        (
            schema(json!({ "type": "string", "format": "email" })),
            "\"",
            "y",
            b'1',
            32,
        ),
        (schema(object.clone()), "{\"b\":[0", ",0", b']', 160),
        (schema(object), "{\"b\":[{}", ",{}", b']', 162),
    ] {
        let grammar = model.grammar(&source);
        let mut matcher = grammar.matcher();
        for byte in before.bytes() {
            matcher.accept(model.byte(byte)).unwrap();
        }
        let mut count = 0;
        for byte in repeated.bytes().cycle().take(400) {
            if !allows(&mut matcher, model.byte(byte)).unwrap() {
                break;
            }
            matcher.accept(model.byte(byte)).unwrap();
            count += 1;
        }
        assert!(count <= most, "{before}: {count}");
        assert!(count + 3 >= most, "{before}: {count}");
        if closer != b'1' {
            assert!(
                allows(&mut matcher, model.byte(closer)).unwrap(),
                "{before}"
            );
        }
    }
    an_array_of_repetitions_is_closed(&model);
    // Elements that tokens begin before the last one has ended.
    let objects = json!({
        "type": "array",
        "items": {
            "type": "object",
            "properties": { "a": { "type": "string" } },
            "required": ["a"]
        }
    });
    let strings = json!({ "type": "array", "items": { "enum": ["ab", "cd"] } });
    for (value, begin, repeated) in [
        (objects, "[", r#"{"a":"b"},"#),
        (strings.clone(), "[", r#""ab","#),
        (
            json!({ "type": "object", "properties": { "list": strings } }),
            r#"{"list":["#,
            r#""ab","#,
        ),
    ] {
        let grammar = model.grammar(&schema(value));
        let mut matcher = grammar.matcher();
        let text = begin.bytes().chain(repeated.bytes().cycle());
        let mut count = 0;
        for byte in text.take(400) {
            if !allows(&mut matcher, model.byte(byte)).unwrap() {
                break;
            }
            matcher.accept(model.byte(byte)).unwrap();
            count += 1;
        }
        assert!(count < 160 + 3 * repeated.len(), "{repeated}: {count}");
        // Open arrays and objects are closed, and nothing else begins.
        let mut closed = Vec::new();
        for byte in [b'"', b'}', b']'] {
            if allows(&mut matcher, model.byte(byte)).unwrap() {
                matcher.accept(model.byte(byte)).unwrap();
                closed.push(byte);
            }
        }
        assert_eq!(closed.last(), Some(&b']'), "{repeated}");
    }
    // The array gets as many elements as the schema requires.
    for (value, before, repeated) in [
        (json!({ "type": "string", "pattern": "^y{90}$" }), "\"", "y"),
        (
            json!({ "type": "array", "minItems": 90, "items": { "const": 0 } }),
            "[0",
            ",0",
        ),
        (json!({ "type": "string", "pattern": "^0{90}$" }), "\"", "0"),
    ] {
        let grammar = model.grammar(&schema(value));
        let mut matcher = grammar.matcher();
        let text = before.bytes().chain(repeated.bytes().cycle().take(88));
        for byte in text {
            assert!(
                allows(&mut matcher, model.byte(byte)).unwrap(),
                "{before}{repeated}"
            );
            matcher.accept(model.byte(byte)).unwrap();
        }
    }
}

/// Forced tokens are allowed one by one, and asking for them changes nothing.
#[test]
fn forced_text_is_allowed() {
    let model = Model::made();
    let grammar = model.grammar(&regex(r#""name": (12|true), .*"#));
    let mut matcher = grammar.matcher();
    let forced = matcher.forced(100);
    assert_eq!(matcher.forced(2), forced[..2]);
    let bytes = forced
        .iter()
        .flat_map(|id| model.tokenizer.token_bytes(*id));
    let text = String::from_utf8(bytes.copied().collect()).unwrap();
    assert_eq!(text, "\"name\": ");
    assert!(forced.len() <= 4, "the longest tokens: {forced:?}");
    for id in forced {
        assert!(allows(&mut matcher, id).unwrap(), "{id}");
        matcher.accept(id).unwrap();
    }
    assert!(matcher.forced(100).is_empty());
}
