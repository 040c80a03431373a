//! Tool calls (specification 9.4, case 110).

use serde_json::json;

use super::*;
use crate::grammar::output::CallForm;

const fn form(calls: CallForm) -> OutputForm {
    OutputForm {
        reasoning: None,
        calls,
    }
}

const BARE: OutputForm = form(CallForm::Bare);
const LLAMA3: OutputForm = form(CallForm::Llama3);
const MISTRAL: OutputForm = form(CallForm::Mistral);
const HERMES: OutputForm = form(CallForm::Hermes {
    has_special_tags: false,
});

fn parse(form: OutputForm, text: &str) -> Option<ToolCall> {
    let mut tools = some_tools();
    tools.push(Tool {
        name: "f".to_owned(),
        parameters: None,
        strict: false,
    });
    parse_completion(form, &tools, text)
}

fn some_tools() -> Vec<Tool> {
    vec![
        Tool {
            name: "get_weather".to_owned(),
            parameters: Some(json!({
                "type": "object",
                "properties": { "city": { "$ref": "#/$defs/city" } },
                "required": ["city"],
                "additionalProperties": false,
                "$defs": { "city": { "type": "string" } }
            })),
            strict: true,
        },
        Tool {
            name: "add".to_owned(),
            parameters: Some(json!({ "properties": { "a": { "type": "integer" } } })),
            strict: false,
        },
        Tool {
            name: "now".to_owned(),
            parameters: None,
            strict: true,
        },
    ]
}

fn source(form: OutputForm, is_forced: bool) -> GrammarSource {
    GrammarSource::Tools {
        tools: some_tools(),
        is_forced,
        form,
    }
}

#[test]
fn a_forced_call_is_one_call_of_a_listed_tool() {
    let model = Model::made();
    let bare = model.grammar(&source(BARE, true));
    for right in [
        r#"{"name":"get_weather","arguments":{"city":"Oslo"}}"#,
        r#"{"name": "add", "arguments": {"a": 12}}"#,
        "{\n  \"name\": \"now\",\n  \"arguments\": {}\n}",
    ] {
        assert!(model.accepts(&bare, right), "{right}");
        let call = parse(BARE, right).unwrap();
        assert!(some_tools().iter().any(|tool| tool.name == call.name));
    }
    for wrong in [
        "text",
        r#"{"name":"get_weather","arguments":{"city":5}}"#,
        r#"{"name":"get_weather","arguments":{}}"#,
        r#"{"name":"nope","arguments":{}}"#,
        r#"{"name": "add", "arguments": {"a": "not an integer"}}"#,
        r#"{"name": "add", "arguments": {"b": 1}}"#,
        r#"{"name":"now","arguments":[]}"#,
        r#"{"name":"now","arguments":{},"id":1}"#,
        r#"{"name":"now","arguments":{}}{}"#,
        r#"{"name":"now","arguments":{}  }"#,
        r#"{"arguments":{},"name":"now"}"#,
        r#" {"name":"now","arguments":{}}"#,
    ] {
        assert!(!model.accepts(&bare, wrong), "{wrong}");
    }
    let llama = model.grammar(&source(LLAMA3, true));
    let text = r#"{"name": "now", "parameters": {"x": 1.50}}"#;
    assert!(model.accepts(&llama, text));
    assert_eq!(
        parse(LLAMA3, text),
        Some(ToolCall {
            name: "now".to_owned(),
            arguments: r#"{"x": 1.50}"#.to_owned(),
        })
    );
    let hermes = model.grammar(&source(HERMES, true));
    let text = "<tool_call>\n{\"name\": \"now\", \"arguments\": {}}\n</tool_call>";
    assert!(model.accepts(&hermes, text));
    assert!(!model.accepts(&hermes, &text[..text.len() - 1]));
    assert_eq!(parse(HERMES, text).unwrap().name, "now");
}

#[test]
fn forced_walks_parse_and_satisfy_strict_parameters() {
    let mut random = Random(7);
    let tools = some_tools();
    let strict = jsonschema::validator_for(tools[0].parameters.as_ref().unwrap()).unwrap();
    for model in Model::made_and(&["gpt-2"]) {
        let mut seen = std::collections::HashSet::new();
        for format in [BARE, LLAMA3, HERMES] {
            let grammar = model.grammar(&source(format, true));
            let mut finished = 0;
            for _ in 0..6 {
                let walk = model.walk(&grammar, &mut random, 30).unwrap();
                if !walk.is_finished {
                    continue;
                }
                finished += 1;
                let call = parse(format, &walk.text)
                    .unwrap_or_else(|| panic!("{}: {:?}", model.name, walk.text));
                let arguments: Value = serde_json::from_str(&call.arguments).unwrap();
                assert!(arguments.is_object());
                assert!(white_space_is_limited(&walk.text), "{:?}", walk.text);
                if call.name == "get_weather" {
                    assert!(strict.is_valid(&arguments), "{}", walk.text);
                }
                seen.insert(call.name);
            }
            assert!(finished > 3, "{}: {format:?}: {finished}", model.name);
        }
        assert!(seen.len() > 1, "{}: {seen:?}", model.name);
    }
}

#[test]
fn a_strict_tool_with_an_unsupported_schema_is_refused_by_name() {
    let model = Model::made();
    for parameters in [json!({ "not": {} }), json!({ "type": "string" }), json!(5)] {
        let tool = |strict| Tool {
            name: "odd".to_owned(),
            parameters: Some(parameters.clone()),
            strict,
        };
        let source = |strict| GrammarSource::Tools {
            tools: vec![tool(strict)],
            is_forced: true,
            form: BARE,
        };
        let message = model.refusal(&source(true));
        assert!(
            message.contains("odd") || message.contains("not"),
            "{message}"
        );
        model.grammar(&source(false));
    }
}

fn feed(model: &Model, matcher: &mut Matcher, pieces: &[&str]) {
    for piece in pieces {
        let id = (0..model.tokenizer.vocab_size() as u32)
            .find(|&id| model.tokenizer.token_bytes(id) == piece.as_bytes())
            .unwrap_or_else(|| panic!("no token {piece:?}"));
        assert!(allows(matcher, id).unwrap(), "{piece:?}");
        matcher.accept(id).unwrap();
    }
}

#[test]
fn text_is_free_until_it_begins_with_the_opener() {
    let model = Model::made();
    let grammar = model.grammar(&source(HERMES, false));
    // Text.
    let mut matcher = grammar.matcher();
    assert_eq!(matcher.next().unwrap(), Next::Free);
    feed(&model, &mut matcher, &["a", "<tool_call>", "b", "}}"]);
    assert_eq!(matcher.next().unwrap(), Next::Free);
    matcher.accept(model.special("</s>")).unwrap();
    assert_eq!(matcher.next().unwrap(), Next::Free);
    // The opener as one token, and in pieces of which the last may contain more than the opener.
    for pieces in [
        &["<tool_call>"][..],
        &["<tool", "_call>"][..],
        &["<tool", "_", "c", "a", "l", "l", ">"][..],
    ] {
        let mut matcher = grammar.matcher();
        feed(&model, &mut matcher, pieces);
        assert!(matches!(matcher.next().unwrap(), Next::OneOf(_)));
        assert!(!allows(&mut matcher, model.byte(b'a')).unwrap());
        feed(&model, &mut matcher, &["\n", "{\"name\":", "\"", "n"]);
        assert!(!allows(&mut matcher, model.byte(b'a')).unwrap());
        feed(&model, &mut matcher, &["o", "w", "\",", "\"", "a"]);
        for byte in *b"rguments\":{}}</tool_call>" {
            matcher.accept(model.byte(byte)).unwrap();
        }
        assert_eq!(matcher.next().unwrap(), Next::Finished);
    }
    // A token that continues beyond the opener must fit the call. Any other token is allowed.
    let mut matcher = grammar.matcher();
    feed(&model, &mut matcher, &["<tool", "_", "c", "a", "l", "l"]);
    let id = |text: &str| {
        (0..model.tokenizer.vocab_size() as u32)
            .find(|&id| model.tokenizer.token_bytes(id) == text.as_bytes())
            .unwrap()
    };
    assert!(allows(&mut matcher, id(">\n{\"")).unwrap());
    assert!(!allows(&mut matcher, id(">x")).unwrap());
    assert!(allows(&mut matcher, id("日")).unwrap());
    assert!(allows(&mut matcher, model.special("</s>")).unwrap());
    let mut other = grammar.matcher();
    feed(&model, &mut other, &["<tool", "_", "a"]);
    assert_eq!(other.next().unwrap(), Next::Free);
    feed(&model, &mut matcher, &[">\n{\"", "name"]);
    assert!(!allows(&mut matcher, model.byte(b'}')).unwrap());
}

#[test]
fn without_an_opener_the_name_of_a_tool_begins_a_call() {
    let model = Model::made();
    for (format, member) in [(BARE, "arguments"), (LLAMA3, "parameters")] {
        let grammar = model.grammar(&source(format, false));
        let call = |arguments: &str| format!("{{\"name\": \"add\", \"{member}\": {arguments}}}");
        for right in [
            "text\n\n<tool_call>",
            "{{",
            r#"{"name""#,
            r#"{"name": "Bob", "age": "x"}"#,
            r#"{"name": "adder"}"#,
            r#"[{"name": "add", "a": 1}"#,
            &format!("Look: {}", call("1")),
            &call(r#"{"a": 12}"#),
            &format!(" \n{}", call("{}")),
        ] {
            assert!(model.accepts(&grammar, right), "{format:?}: {right}");
        }
        for wrong in [
            call(r#"{"a": "x"}"#),
            call(r#"{"b": 1}"#),
            call("{}") + "x",
            r#"{"name": "add"}"#.to_owned(),
            r#"{"name" : "now", "id": 1}"#.to_owned(),
        ] {
            assert!(!model.accepts(&grammar, &wrong), "{format:?}: {wrong}");
        }
    }
}

#[test]
fn an_opener_that_is_a_special_token_is_not_recognized_as_text() {
    let model = Model::made();
    let grammar = model.grammar(&source(MISTRAL, false));
    let opener = model.special("[TOOL_CALLS]");
    let mut spelled = grammar.matcher();
    "[TOOL_CALLS]"
        .bytes()
        .for_each(|byte| spelled.accept(model.byte(byte)).unwrap());
    assert_eq!(spelled.next().unwrap(), Next::Free);
    let mut late = grammar.matcher();
    feed(&model, &mut late, &["a"]);
    late.accept(opener).unwrap();
    assert_eq!(late.next().unwrap(), Next::Free);
    let forced = model.grammar(&source(MISTRAL, true));
    assert!(!allows(&mut forced.matcher(), model.byte(b'[')).unwrap());
    for grammar in [grammar, forced] {
        let mut matcher = grammar.matcher();
        assert!(allows(&mut matcher, opener).unwrap());
        matcher.accept(opener).unwrap();
        let text = " [{\"name\": \"now\", \"arguments\": {}}]";
        for byte in text.bytes() {
            assert!(allows(&mut matcher, model.byte(byte)).unwrap());
            matcher.accept(model.byte(byte)).unwrap();
        }
        assert_eq!(matcher.next().unwrap(), Next::Finished);
        // The text may or may not contain the tag itself.
        assert_eq!(parse(MISTRAL, text).unwrap().name, "now");
        let shown = format!("[TOOL_CALLS]{text}");
        assert_eq!(parse(MISTRAL, &shown).unwrap().name, "now");
    }
}

#[test]
fn only_whole_calls_are_parsed() {
    let whole = r#"{"name": "f", "arguments": {"n": 12345678901234567890123, "s": "}"}}"#;
    let call = parse(BARE, whole).unwrap();
    assert_eq!(
        call.arguments,
        r#"{"n": 12345678901234567890123, "s": "}"}"#
    );
    for cut in 0..whole.len() {
        assert_eq!(parse(BARE, &whole[..cut]), None, "{cut}");
    }
    let tagged = format!("<tool_call>\n{whole}\n</tool_call>");
    assert_eq!(parse(HERMES, &tagged), Some(call.clone()));
    assert_eq!(parse(HERMES, whole), None);
    assert_eq!(parse(HERMES, &tagged[..tagged.len() - 12]), None);
    let hidden = form(CallForm::Hermes {
        has_special_tags: true,
    });
    assert_eq!(parse(hidden, &format!("\n{whole}\n")), Some(call.clone()));
    assert_eq!(parse(hidden, &tagged), Some(call));
    for wrong in [
        "",
        "text",
        r#"{"name": "f", "arguments": "{}"}"#,
        r#"{"name": 5, "arguments": {}}"#,
        r#"{"name": "f", "arguments": {}} and more"#,
        r#"{"name": "f", "parameters": {}}"#,
        "é",
    ] {
        assert_eq!(parse(BARE, wrong), None, "{wrong}");
    }
}

#[test]
fn the_format_is_read_from_the_chat_template() {
    let with_template = |template: &str, special: &str, kind: i32| {
        let mut metadata = Metadata::new();
        let strings = ["<unk>", "<s>", "</s>", special]
            .map(str::to_owned)
            .to_vec();
        metadata.insert("tokenizer.ggml.model", "llama");
        metadata.insert("tokenizer.ggml.scores", vec![-1.0f32; strings.len()]);
        metadata.insert("tokenizer.ggml.token_type", vec![2, 3, 3, kind]);
        metadata.insert("tokenizer.ggml.tokens", strings);
        metadata.insert("tokenizer.chat_template", template);
        OutputForm::of(&Tokenizer::from_gguf(&metadata).unwrap()).calls
    };
    // The same template, escaped as in Jinja.
    let hermes = r#"<tool_call>\n{\"name\": <n>, \"arguments\": <a>}\n</tool_call>"#;
    assert_eq!(
        with_template(hermes, "<tool_call>", 4),
        CallForm::Hermes {
            has_special_tags: false
        }
    );
    assert_eq!(
        with_template(hermes, "<tool_call>", 3),
        CallForm::Hermes {
            has_special_tags: true
        }
    );
    let coder = "<tool_call>\n<function=f>\n arguments";
    assert_eq!(with_template(coder, "<tool_call>", 4), CallForm::QwenMarkup);
    let mistral = "{{ '[TOOL_CALLS] [' }}";
    assert_eq!(with_template(mistral, "[TOOL_CALLS]", 3), CallForm::Mistral);
    assert_eq!(with_template(mistral, "x", 1), CallForm::Bare);
    let later = "[TOOL_CALLS]name[ARGS]{}";
    assert_eq!(
        with_template(later, "[TOOL_CALLS]", 3),
        CallForm::MistralNamed { has_ids: false }
    );
    let llama = "<|python_tag|> {\"name\": n, \"parameters\": p}";
    assert_eq!(with_template(llama, "<|python_tag|>", 3), CallForm::Llama3);
    let fourth = "<|python_start|> {\"name\": n, \"parameters\": p}";
    assert_eq!(
        with_template(fourth, "<|python_start|>", 3),
        CallForm::Llama3
    );
    assert_eq!(with_template("{{ text }}", "x", 1), CallForm::Bare);
    // A template without tools, of a model that has their tags.
    assert_eq!(
        OutputForm::of(&Model::made().tokenizer).calls,
        CallForm::Hermes {
            has_special_tags: false
        }
    );
}

#[test]
fn calls_of_every_family_are_parsed_without_their_special_tokens() {
    let named = CallForm::MistralNamed { has_ids: true };
    for (calls, text) in [
        (named, "[TOOL_CALLS]now[CALL_ID]abcdefgh1[ARGS]{}"),
        (named, "now{}"),
        (CallForm::Granite, r#"[{"name": "now", "arguments": {}}]"#),
        (CallForm::Lfm2, "[now()]"),
        (
            CallForm::Lfm2,
            "<|tool_call_start|>[now()]<|tool_call_end|>",
        ),
        (
            CallForm::QwenMarkup,
            "<tool_call>\n<function=now>\n</function>\n</tool_call>",
        ),
        (CallForm::QwenMarkup, "\n<function=now>\n</function>\n"),
        (CallForm::Glm, "<tool_call>now\n</tool_call>"),
        (CallForm::MiniCpm, "<function name=\"now\"></function>"),
        (CallForm::Harmony, r#"{"name": "now", "arguments": {}}"#),
        (CallForm::Gemma4, r#"{"name": "now", "arguments": {}}"#),
    ] {
        let expected = ToolCall {
            name: "now".to_owned(),
            arguments: "{}".to_owned(),
        };
        assert_eq!(parse(form(calls), text), Some(expected), "{text}");
        assert_eq!(
            parse(form(calls), &format!("{text} and more")),
            None,
            "{text}"
        );
        assert_eq!(parse(form(calls), &text[..text.len() / 2]), None, "{text}");
    }
}
