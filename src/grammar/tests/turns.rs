//! Turns with tools: what the mask enforces in each form is what the reader reads.

use serde_json::json;

use super::*;
use crate::grammar::output::CallForm;

const HERMES: CallForm = CallForm::Hermes {
    has_special_tags: false,
};

fn tools() -> Vec<Tool> {
    let strict = json!({
        "type": "object",
        "properties": {
            "city": { "type": "string" },
            "days": { "type": "integer", "minimum": 1, "maximum": 14 },
            "unit": { "enum": ["celsius", "kelvin"] },
            "when": { "anyOf": [{ "type": "string" }, { "type": "null" }] },
            "more": { "$ref": "#/$defs/more" }
        },
        "required": ["city", "days"],
        "additionalProperties": false,
        "$defs": {
            "more": {
                "type": "object",
                "properties": {
                    "tags": { "type": "array", "items": { "type": "string" } },
                    "deep": { "type": "boolean" }
                },
                "required": ["deep"],
                "additionalProperties": false
            }
        }
    });
    let tool = |name: &str, parameters: Option<Value>, strict| Tool {
        name: name.to_owned(),
        parameters,
        strict,
    };
    vec![
        tool("weather", Some(strict), true),
        tool(
            "add",
            Some(json!({ "properties": { "a": { "type": "integer" } } })),
            false,
        ),
        tool("now", None, true),
    ]
}

/// A form, the text of a call of `weather` with all parameters in it and of one of `now`, and what
/// stands around and between calls.
struct Written {
    form: CallForm,
    around: [&'static str; 3],
    weather: &'static str,
    now: &'static str,
}

fn written() -> Vec<Written> {
    let json = |form, around| Written {
        form,
        around,
        weather: r#"{"name": "weather", "arguments": {"city": "Oslo", "days": 2, "unit": "kelvin", "when": null, "more": {"tags": ["a"], "deep": true}}}"#,
        now: r#"{"name": "now", "arguments": {}}"#,
    };
    vec![
        json(CallForm::Bare, ["", "", ""]),
        Written {
            weather: r#"{"name": "weather", "parameters": {"city": "Oslo", "days": 2, "unit": "kelvin", "when": null, "more": {"tags": ["a"], "deep": true}}}"#,
            now: r#"{"name": "now", "parameters": {}}"#,
            ..json(CallForm::Llama3, ["", "", ""])
        },
        json(
            HERMES,
            [
                "<tool_call>\n",
                "\n</tool_call>\n<tool_call>\n",
                "\n</tool_call>",
            ],
        ),
        json(CallForm::Mistral, ["[TOOL_CALLS] [", ", ", "]"]),
        json(CallForm::Granite, ["<|tool_call|>[", ", ", "]"]),
        json(CallForm::Phi4, ["<|tool_call|>[", ", ", "]<|/tool_call|>"]),
        Written {
            form: CallForm::MistralNamed { has_ids: false },
            around: ["[TOOL_CALLS]", "[TOOL_CALLS]", ""],
            weather: r#"weather[ARGS]{"city": "Oslo", "days": 2, "unit": "kelvin", "when": null, "more": {"tags": ["a"], "deep": true}}"#,
            now: "now[ARGS]{}",
        },
        Written {
            form: CallForm::MistralNamed { has_ids: true },
            around: ["[TOOL_CALLS]", "[TOOL_CALLS]", ""],
            weather: r#"weather[CALL_ID]abcdefgh1[ARGS]{"city": "Oslo", "days": 2, "unit": "kelvin", "when": null, "more": {"tags": ["a"], "deep": true}}"#,
            now: "now[CALL_ID]abcdefgh2[ARGS]{}",
        },
        Written {
            form: CallForm::QwenMarkup,
            around: ["<tool_call>\n", "\n<tool_call>\n", ""],
            weather: "<function=weather>\n<parameter=city>\nOslo\n</parameter>\n<parameter=days>\n2\n</parameter>\n<parameter=unit>\nkelvin\n</parameter>\n<parameter=when>\nnull\n</parameter>\n<parameter=more>\n{\"tags\": [\"a\"], \"deep\": true}\n</parameter>\n</function>\n</tool_call>",
            now: "<function=now>\n</function>\n</tool_call>",
        },
        Written {
            form: CallForm::Glm,
            around: ["<tool_call>", "\n<tool_call>", ""],
            weather: "weather\n<arg_key>city</arg_key>\n<arg_value>Oslo</arg_value>\n<arg_key>days</arg_key>\n<arg_value>2</arg_value>\n<arg_key>unit</arg_key>\n<arg_value>kelvin</arg_value>\n<arg_key>when</arg_key>\n<arg_value>null</arg_value>\n<arg_key>more</arg_key>\n<arg_value>{\"tags\": [\"a\"], \"deep\": true}</arg_value>\n</tool_call>",
            now: "now\n</tool_call>",
        },
        Written {
            form: CallForm::MiniCpm,
            around: ["<function name=\"", "\n<function name=\"", ""],
            weather: "weather\"><param name=\"city\">Oslo</param><param name=\"days\">2</param><param name=\"unit\">kelvin</param><param name=\"when\">null</param><param name=\"more\">{\"tags\": [\"a\"], \"deep\": true}</param></function>",
            now: "now\"></function>",
        },
        Written {
            form: CallForm::Lfm2,
            around: ["<|tool_call_start|>[", ", ", "]<|tool_call_end|>"],
            weather: "weather(city=\"Oslo\", days=2, unit=\"kelvin\", when=null, more={\"tags\": [\"a\"], \"deep\": true})",
            now: "now()",
        },
        Written {
            form: CallForm::Gemma4,
            around: ["<|tool_call>", "<tool_call|><|tool_call>", "<tool_call|>"],
            weather: "call:weather{city:<|\"|>Oslo<|\"|>,days:2,unit:<|\"|>kelvin<|\"|>,when:null,more:{tags:[<|\"|>a<|\"|>],deep:true}}",
            now: "call:now{}",
        },
        Written {
            form: CallForm::FunctionGemma,
            around: [
                "<start_function_call>",
                "<end_function_call><start_function_call>",
                "<end_function_call>",
            ],
            weather: "call:weather{city:<escape>Oslo<escape>,days:2,unit:<escape>kelvin<escape>,when:null,more:{tags:[<escape>a<escape>],deep:true}}",
            now: "call:now{}",
        },
        Written {
            form: CallForm::DeepSeek,
            around: ["<｜tool▁calls▁begin｜>", "\n", "<｜tool▁calls▁end｜>"],
            weather: "<｜tool▁call▁begin｜>function<｜tool▁sep｜>weather\n```json\n{\"city\": \"Oslo\", \"days\": 2, \"unit\": \"kelvin\", \"when\": null, \"more\": {\"tags\": [\"a\"], \"deep\": true}}\n```<｜tool▁call▁end｜>",
            now: "<｜tool▁call▁begin｜>function<｜tool▁sep｜>now\n```json\n{}\n```<｜tool▁call▁end｜>",
        },
        Written {
            form: CallForm::Harmony,
            around: ["<|channel|>commentary to=functions.", "", "<|call|>"],
            weather: r#"weather <|constrain|>json<|message|>{"city": "Oslo", "days": 2, "unit": "kelvin", "when": null, "more": {"tags": ["a"], "deep": true}}"#,
            now: "now <|constrain|>json<|message|>{}",
        },
    ]
}

impl Written {
    fn output_form(&self, reasons: bool) -> OutputForm {
        let template = if reasons { "<think>" } else { "" };
        OutputForm {
            calls: self.form,
            ..OutputForm::judged(template, &|_| false, &|_| false)
        }
    }

    fn turn(&self, is_forced: bool, is_parallel: bool) -> Turn {
        Turn {
            tools: tools(),
            is_forced,
            is_parallel,
            form: self.output_form(false),
            prompt_tail: String::new(),
        }
    }

    fn once(&self, call: &str) -> String {
        let [before, _, after] = self.around;
        format!("{before}{call}{after}")
    }

    /// Whether the form has several calls in a turn.
    fn is_parallel(&self) -> bool {
        !matches!(
            self.form,
            CallForm::Bare | CallForm::Llama3 | CallForm::Harmony
        )
    }
}

/// Tags that are special tokens in some vocabularies; of two with the same beginning, the longer first.
const TAGS: [&str; 29] = [
    "[TOOL_CALLS]",
    "[ARGS]",
    "[CALL_ID]",
    "<think>",
    "</think>",
    "<tool_call|>",
    "<tool_call>",
    "</tool_call>",
    "<|tool_call|>",
    "<|/tool_call|>",
    "<|tool_call_start|>",
    "<|tool_call_end|>",
    "<|tool_call>",
    "<|\"|>",
    "<start_function_call>",
    "<end_function_call>",
    "<escape>",
    "<｜tool▁calls▁begin｜>",
    "<｜tool▁calls▁end｜>",
    "<｜tool▁call▁begin｜>",
    "<｜tool▁call▁end｜>",
    "<｜tool▁sep｜>",
    "<|start|>",
    "<|channel|>",
    "<|message|>",
    "<|end|>",
    "<|constrain|>",
    "<|call|>",
    "<|return|>",
];

/// A vocabulary in which tags are text, and one in which they are special tokens.
fn vocabularies() -> [Model; 2] {
    [Model::made(), Model::made_with(&TAGS[1..])]
}

/// The parts that are read from `text`, without the reasoning.
fn read(turn: &Turn, text: &str) -> (String, Vec<(String, String)>) {
    let mut reader = OutputReader::new(&turn.form, &turn.tools, &turn.prompt_tail);
    let mut content = String::new();
    let mut calls: Vec<(String, String)> = Vec::new();
    let mut parts = reader.push(text);
    parts.extend(reader.finish());
    for part in parts {
        match part {
            OutputPart::Content(text) => content += &text,
            OutputPart::Reasoning(_) => {}
            OutputPart::CallStart { name, .. } => calls.push((name, String::new())),
            OutputPart::CallArguments { index, json } => calls[index].1 += &json,
        }
    }
    (content, calls)
}

/// The arguments of the calls that `text` consists of; they must be as declared.
fn checked(turn: &Turn, text: &str) -> Vec<(String, Value)> {
    let (content, calls) = read(turn, text);
    assert_eq!(content, "", "{text:?}");
    assert!(!calls.is_empty(), "{text:?}");
    let check = |(name, json): (String, String)| {
        let arguments: Value =
            serde_json::from_str(&json).unwrap_or_else(|error| panic!("{text:?}: {json}: {error}"));
        let tool = turn.tools.iter().find(|tool| tool.name == name).unwrap();
        assert!(arguments.is_object(), "{text:?}");
        if let Some(schema) = &tool.parameters {
            let validator = jsonschema::validator_for(schema).unwrap();
            assert!(validator.is_valid(&arguments), "{text:?}: {json}");
        }
        (name, arguments)
    };
    calls.into_iter().map(check).collect()
}

impl Model {
    /// Same as `accepts`; tags that are special tokens are one.
    fn takes(&self, grammar: &Grammar, text: &str) -> bool {
        let mut matcher = grammar.matcher();
        let mut rest = text;
        while let Some(&byte) = rest.as_bytes().first() {
            let is_special = |tag: &&str| self.tokenizer.special_id(tag).is_some();
            let mut tags = TAGS.into_iter().filter(is_special);
            let tag = tags.find(|tag| rest.starts_with(tag));
            let (id, length) = match tag {
                Some(tag) => (self.special(tag), tag.len()),
                None => (self.byte(byte), 1),
            };
            if self.tokenizer.eos_ids().contains(&id) {
                return rest.len() == length && self.may_end(&mut matcher);
            }
            if !allows(&mut matcher, id).unwrap() || matcher.accept(id).is_err() {
                return false;
            }
            // A character's other bytes.
            let mut end = length;
            while !rest.is_char_boundary(end) {
                let id = self.byte(rest.as_bytes()[end]);
                if !allows(&mut matcher, id).unwrap() || matcher.accept(id).is_err() {
                    return false;
                }
                end += 1;
            }
            rest = &rest[end..];
        }
        self.may_end(&mut matcher)
    }
}

#[test]
fn a_forced_turn_is_calls_in_the_form_and_is_read_as_such() {
    for model in vocabularies() {
        let expected = json!({
            "city": "Oslo", "days": 2, "unit": "kelvin", "when": null,
            "more": { "tags": ["a"], "deep": true }
        });
        for written in written() {
            let one = written.turn(true, false);
            let many = written.turn(true, true);
            let single = model.grammar(&GrammarSource::Turn(one.clone()));
            let several = model.grammar(&GrammarSource::Turn(many.clone()));
            let weather = written.once(written.weather);
            for grammar in [&single, &several] {
                assert!(
                    model.takes(grammar, &weather),
                    "{:?}: {weather:?}",
                    written.form
                );
                assert!(!model.takes(grammar, "Sunny."), "{:?}", written.form);
                let cut = weather.trim_end_matches("<|call|>");
                let cut = &cut[..cut.len() - 1];
                assert!(!model.takes(grammar, cut), "{cut:?}");
                for (from, to) in [("Oslo", "Oslo\u{e9} x"), ("kelvin", "celsius"), ("2", "14")] {
                    let other = weather.replacen(from, to, 1);
                    assert!(model.takes(grammar, &other), "{other:?}");
                    checked(&one, &other);
                }
                for (from, to) in [
                    ("kelvin", "rankine"),
                    ("2", "15"),
                    ("2", "two"),
                    ("weather", "whether"),
                    ("true", "1"),
                    ("days", "nights"),
                ] {
                    let other = weather.replacen(from, to, 1);
                    assert!(!model.takes(grammar, &other), "{other:?}");
                }
            }
            let calls = checked(&one, &weather);
            assert_eq!(calls, [("weather".to_owned(), expected.clone())]);
            let now = written.once(written.now);
            assert!(model.takes(&single, &now), "{now:?}");
            assert_eq!(checked(&one, &now), [("now".to_owned(), json!({}))]);
            if written.is_parallel() {
                let [before, between, after] = written.around;
                let both = format!("{before}{}{between}{}{after}", written.now, written.weather);
                assert!(!model.takes(&single, &both), "{both:?}");
                assert!(model.takes(&several, &both), "{both:?}");
                assert_eq!(checked(&many, &both).len(), 2);
            }
        }
    }
}

#[test]
fn changed_calls_that_the_mask_takes_are_read_and_valid() {
    let model = Model::made();
    let mut random = Random(11);
    let pieces = [
        "\"",
        "\n",
        " ",
        "<",
        ">",
        "{",
        "}",
        "1",
        "e",
        ",",
        "null",
        "\\",
        "'",
        "]",
        "é",
        "</parameter>",
    ];
    for written in written() {
        let turn = written.turn(true, true);
        let grammar = model.grammar(&GrammarSource::Turn(turn.clone()));
        let mut taken = 0;
        for round in 0..48 {
            let call = if round % 4 == 0 {
                written.now
            } else {
                written.weather
            };
            let mut text: Vec<char> = written.once(call).chars().collect();
            for _ in 0..1 + random.below(2) {
                // Half of the changes are made to a string.
                let whole: String = text.iter().collect();
                let string = whole.find("Oslo").filter(|_| random.one_in(2));
                let string = string.map(|start| whole[..start].chars().count());
                let at = match string {
                    Some(start) => start + random.below(4),
                    None => random.below(text.len()),
                };
                let at = at.min(text.len());
                let end = (at + random.below(3)).min(text.len());
                let piece: Vec<char> = random.pick(&pieces).chars().collect();
                text.splice(at..end, piece);
            }
            let text: String = text.into_iter().collect();
            if model.takes(&grammar, &text) {
                taken += 1;
                checked(&turn, &text);
            }
        }
        assert!(taken > 2, "{:?}: {taken}", written.form);
    }
}

#[test]
fn walks_through_forced_turns_are_read_and_valid() {
    let model = Model::made();
    let mut random = Random(5);
    for written in written() {
        let ends_by_chance = matches!(
            written.form,
            CallForm::Bare | CallForm::Llama3 | CallForm::Granite | CallForm::Lfm2
        ) || written.form == HERMES;
        if !ends_by_chance {
            continue;
        }
        let turn = written.turn(true, true);
        let grammar = model.grammar(&GrammarSource::Turn(turn.clone()));
        let mut finished = 0;
        for _ in 0..6 {
            let walk = model.walk(&grammar, &mut random, 20).unwrap();
            if walk.is_finished {
                finished += 1;
                checked(&turn, &walk.text);
            }
        }
        assert!(finished > 1, "{:?}: {finished}", written.form);
    }
}

#[test]
fn reasoning_may_come_before_a_forced_call() {
    for model in vocabularies() {
        for written in written() {
            if written.form == CallForm::Harmony {
                continue;
            }
            let call = written.once(written.now);
            let mut turn = written.turn(true, false);
            turn.form = written.output_form(true);
            let free = model.grammar(&GrammarSource::Turn(turn.clone()));
            // As text, a tag inside of reasoning is reasoning.
            let aside = if model.tokenizer.special_id("<think>").is_none() {
                "<tool_call>"
            } else {
                ""
            };
            let thought = format!("<think>\nHm, {{{aside}.\n</think>\n\n{call}");
            assert!(model.takes(&free, &call), "{call:?}");
            assert!(model.takes(&free, &thought), "{thought:?}");
            assert_eq!(checked(&turn, &thought).len(), 1);
            assert!(!model.takes(&free, "<think>\nHm.\n</think>\n\n21"));
            turn.prompt_tail = "<|im_start|>assistant\n<think>\n".to_owned();
            let open = model.grammar(&GrammarSource::Turn(turn.clone()));
            let rest = format!("Hm.\n</think>\n\n{call}");
            assert!(model.takes(&open, &rest), "{rest:?}");
            assert_eq!(checked(&turn, &rest).len(), 1);
            assert!(!model.takes(&open, "Hm."), "{:?}", written.form);
            turn.prompt_tail += "\n</think>\n\n";
            let closed = model.grammar(&GrammarSource::Turn(turn.clone()));
            assert!(model.takes(&closed, &call));
            assert!(!model.takes(&closed, &thought));
        }
    }
}

#[test]
fn content_may_come_before_a_strict_call_that_is_not_forced() {
    for model in vocabularies() {
        for written in written() {
            let mut turn = written.turn(false, true);
            turn.form = written.output_form(true);
            assert!(turn.needs_grammar());
            if written.form == CallForm::Harmony || is_untagged(written.form) {
                continue;
            }
            let grammar = model.grammar(&GrammarSource::Turn(turn.clone()));
            let call = written.once(written.weather);
            for before in [
                "",
                "Let me look.\n",
                "<think>\nHm. \n</think>\n\n",
                "<think>a</think>b c\n",
            ] {
                let text = format!("{before}{call}");
                assert!(model.takes(&grammar, &text), "{text:?}");
                assert_eq!(read(&turn, &text).1.len(), 1, "{text:?}");
                assert!(model.takes(&grammar, before), "{before:?}");
                let wrong = text.replacen("kelvin", "rankine", 1);
                assert!(!model.takes(&grammar, &wrong), "{wrong:?}");
            }
        }
    }
}

fn is_untagged(form: CallForm) -> bool {
    matches!(form, CallForm::Bare | CallForm::Llama3)
}

#[test]
fn untagged_calls_are_told_from_content_by_their_tool() {
    for model in vocabularies() {
        for written in written().iter().filter(|it| is_untagged(it.form)) {
            let call = written.once(written.weather);
            for (reasons, before) in [
                (false, ""),
                (false, " \n"),
                (true, ""),
                (true, "\n"),
                (true, "<think>\nHm. \n</think>\n\n"),
            ] {
                let mut turn = written.turn(false, true);
                turn.form = written.output_form(reasons);
                let grammar = model.grammar(&GrammarSource::Turn(turn.clone()));
                let typed = call.replacen('{', "{\"type\": \"function\", ", 1);
                for right in [&call, &typed, &format!("{call}; {call}")] {
                    let text = format!("{before}{right}");
                    assert!(model.takes(&grammar, &text), "{text:?}");
                    let calls = if right.contains(';') { 2 } else { 1 };
                    assert_eq!(read(&turn, &text).1.len(), calls, "{text:?}");
                    let wrong = text.replace("kelvin", "rankine");
                    assert!(!model.takes(&grammar, &wrong), "{wrong:?}");
                }
                for content in ["Sunny.", "{\"name\": \"Bob\"}", &format!("So: {call}")] {
                    let text = format!("{before}{content}");
                    assert!(model.takes(&grammar, &text), "{text:?}");
                    assert!(read(&turn, &text).1.is_empty(), "{text:?}");
                }
                turn.is_parallel = false;
                let single = model.grammar(&GrammarSource::Turn(turn));
                let text = format!("{before}{call}");
                assert!(model.takes(&single, &text));
                assert!(!model.takes(&single, &format!("{text}; {call}")));
            }
        }
    }
}

#[test]
fn lists_of_llama_are_enforced() {
    for model in vocabularies() {
        let written = written();
        let llama = written.iter().find(|it| it.form == CallForm::Llama3);
        let mut turn = llama.unwrap().turn(false, true);
        let grammar = model.grammar(&GrammarSource::Turn(turn.clone()));
        let list = r#"[weather(city="Oslo", days=2, unit="kelvin"), add(a=1), now()]"#;
        for before in ["", " \n"] {
            let text = format!("{before}{list}");
            assert!(model.takes(&grammar, &text), "{text:?}");
            assert_eq!(read(&turn, &text).1.len(), 3, "{text:?}");
            let wrong = text.replace("kelvin", "rankine");
            assert!(!model.takes(&grammar, &wrong), "{wrong:?}");
        }
        for content in ["[1, 2]", "[other()]", "[weather]", "So: [now()]"] {
            assert!(model.takes(&grammar, content), "{content:?}");
            assert!(read(&turn, content).1.is_empty(), "{content:?}");
        }
        turn.is_parallel = false;
        let single = model.grammar(&GrammarSource::Turn(turn));
        assert!(model.takes(&single, "[now()]"));
        assert!(!model.takes(&single, "[now(), now()]"));
    }
}

fn loose_turn(parameters: Value, form: CallForm, is_forced: bool) -> Turn {
    Turn {
        tools: vec![Tool {
            name: "f".to_owned(),
            parameters: Some(parameters),
            strict: false,
        }],
        is_forced,
        is_parallel: false,
        form: OutputForm {
            calls: form,
            ..OutputForm::default()
        },
        prompt_tail: String::new(),
    }
}

#[test]
fn parameters_are_enforced_also_of_tools_that_are_not_strict() {
    let model = Model::made();
    let hermes = |arguments: &str| {
        format!("<tool_call>\n{{\"name\": \"f\", \"arguments\": {arguments}}}\n</tool_call>")
    };
    let a = json!({ "type": "integer" });
    for parameters in [
        json!({ "type": "object", "properties": { "a": a } }),
        // Keywords that the compiler lacks are left out.
        json!({ "type": "object", "properties": { "a": a }, "not": {}, "dependentRequired": {} }),
        json!({ "type": "object", "properties": { "a": a, "b": { "uniqueItems": true } } }),
    ] {
        for is_forced in [true, false] {
            let turn = loose_turn(parameters.clone(), HERMES, is_forced);
            assert!(turn.needs_grammar());
            let grammar = model.grammar(&GrammarSource::Turn(turn));
            assert!(
                model.takes(&grammar, &hermes(r#"{"a": 1}"#)),
                "{parameters}"
            );
            for wrong in [r#"{"a": "x"}"#, r#"{"c": 1}"#, r#"{"a": 1"#] {
                assert!(
                    !model.takes(&grammar, &hermes(wrong)),
                    "{parameters}: {wrong}"
                );
            }
        }
    }
    // A schema that cannot be enforced at all allows any object, and concerns no other tool.
    let pattern = json!({ "type": "object", "properties": { "x": { "pattern": "(?=a)a" } } });
    let mut turn = loose_turn(pattern, HERMES, true);
    turn.tools.push(Tool {
        name: "g".to_owned(),
        parameters: Some(json!({ "type": "object", "properties": { "a": a } })),
        strict: false,
    });
    let grammar = model.grammar(&GrammarSource::Turn(turn));
    assert!(model.takes(&grammar, &hermes(r#"{"y": [1]}"#)));
    let g = hermes(r#"{"y": 1}"#).replace("\"f\"", "\"g\"");
    assert!(!model.takes(&grammar, &g));
    // The same call written in tags.
    let parameters = json!({ "type": "object", "properties": { "a": a }, "required": ["a"], "maxProperties": 5 });
    let tags = |a: &str| {
        format!(
            "<tool_call>\n<function=f>\n<parameter=a>\n{a}\n</parameter>\n</function>\n</tool_call>"
        )
    };
    for (parameters, is_checked) in [
        (
            json!({ "type": "object", "properties": { "a": a }, "required": ["a"] }),
            true,
        ),
        (parameters, false),
    ] {
        let turn = loose_turn(parameters, CallForm::QwenMarkup, true);
        let grammar = model.grammar(&GrammarSource::Turn(turn));
        assert!(model.takes(&grammar, &tags("12")));
        assert_eq!(model.takes(&grammar, &tags("x")), !is_checked);
    }
}

#[test]
fn a_forced_call_is_a_call_wherever_the_output_ends() {
    let read = |turn: &Turn, text: &str| {
        let Turn { form, tools, .. } = turn;
        let mut reader = OutputReader::of_turn(form, tools, "", true);
        let mut parts = reader.push(text);
        parts.extend(reader.finish());
        parts
    };
    for written in written() {
        if written.form == CallForm::Harmony {
            continue;
        }
        let mut turn = written.turn(true, false);
        let whole = written.once(written.weather);
        for is_only in [false, true] {
            if is_only {
                turn.tools.truncate(1);
            }
            let mut had_name = false;
            for end in (1..whole.len()).filter(|&end| whole.is_char_boundary(end)) {
                let parts = read(&turn, &whole[..end]);
                let mut calls = 0;
                for part in &parts {
                    match part {
                        OutputPart::CallStart { name, .. } => {
                            assert_eq!(name, "weather");
                            calls += 1;
                        }
                        OutputPart::CallArguments { .. } => {}
                        part => panic!("{:?}: {:?}: {part:?}", written.form, &whole[..end]),
                    }
                }
                assert!(
                    calls <= 1 && (calls == 1 || !had_name && !is_only),
                    "{:?}",
                    &whole[..end]
                );
                had_name |= calls == 1;
            }
            assert!(had_name);
        }
    }
}

/// The form of Qwen 3 has calls in `<tool_call>`, after reasoning in `<think>`.
#[test]
fn white_space_may_come_before_the_reasoning_of_a_turn_with_a_strict_tool() {
    for model in vocabularies() {
        let written = written().into_iter().find(|it| it.form == HERMES).unwrap();
        let mut turn = written.turn(false, true);
        turn.form = written.output_form(true);
        let grammar = model.grammar(&GrammarSource::Turn(turn.clone()));
        let call = written.once(written.weather);
        let wrong = call.replacen("kelvin", "rankine", 1);
        let thought = "<think>\nHm.\n</think>";
        for space in ["", "\n", "\n\n", "  \n\t\u{a0}\n \n\n"] {
            for (before, content) in [
                (format!("{space}{thought}"), ""),
                (
                    format!("{space}{thought}{space}Let me look.\n"),
                    "Let me look.",
                ),
                (format!("{space}Let me look."), "Let me look."),
                (space.to_owned(), ""),
            ] {
                assert!(model.takes(&grammar, &before), "{before:?}");
                let text = format!("{before}{space}{call}");
                assert!(model.takes(&grammar, &text), "{text:?}");
                let (read, calls) = read(&turn, &text);
                assert_eq!((read.trim(), calls.len()), (content, 1), "{text:?}");
                let text = format!("{before}{space}{wrong}");
                assert!(!model.takes(&grammar, &text), "{text:?}");
            }
            // Text that is read as reasoning is no content.
            let again = format!("{space}{thought}{space}{thought}");
            assert!(!model.takes(&grammar, &again), "{again:?}");
        }
    }
}

#[test]
fn messages_of_gpt_oss_come_in_order() {
    for model in vocabularies() {
        let written = written().pop().unwrap();
        assert_eq!(written.form, CallForm::Harmony);
        let call = written.once(written.weather);
        let analysis = "<|channel|>analysis<|message|>Hm {<|end|><|start|>assistant";
        let preamble = "<|channel|>commentary<|message|>Let me look.<|end|><|start|>assistant";
        let mut forced = written.turn(true, true);
        forced.prompt_tail = "<|start|>assistant".to_owned();
        let grammar = model.grammar(&GrammarSource::Turn(forced.clone()));
        let text = format!("{analysis}{call}");
        assert!(model.takes(&grammar, &text));
        assert_eq!(checked(&forced, &text).len(), 1);
        assert!(!model.takes(&grammar, "<|channel|>final<|message|>21"));
        forced.prompt_tail += "<|channel|>analysis<|message|>";
        let grammar = model.grammar(&GrammarSource::Turn(forced.clone()));
        let text = format!("Hm.<|end|><|start|>assistant{call}");
        assert!(model.takes(&grammar, &text));
        assert_eq!(checked(&forced, &text).len(), 1);
        let mut auto = written.turn(false, true);
        auto.prompt_tail = "<|start|>assistant".to_owned();
        let grammar = model.grammar(&GrammarSource::Turn(auto));
        assert!(model.takes(&grammar, "<|channel|>final<|message|>21"));
        assert!(model.takes(&grammar, &format!("{analysis}{preamble}{call}")));
        assert!(!model.takes(
            &grammar,
            &format!("{analysis}{}", call.replacen('2', "x", 1))
        ));
    }
}

#[test]
fn strings_in_tags_obey_lengths_and_patterns() {
    let model = Model::made();
    let parameters = json!({
        "type": "object",
        "properties": {
            "code": { "type": "string", "pattern": "^[a-z]+/$" },
            "name": { "type": "string", "minLength": 2, "maxLength": 4 }
        },
        "required": ["code", "name"]
    });
    let turn = |parameters: &Value| Turn {
        tools: vec![Tool {
            name: "f".to_owned(),
            parameters: Some(parameters.clone()),
            strict: true,
        }],
        is_forced: true,
        is_parallel: false,
        form: OutputForm {
            calls: CallForm::QwenMarkup,
            ..OutputForm::default()
        },
        prompt_tail: String::new(),
    };
    let grammar = model.grammar(&GrammarSource::Turn(turn(&parameters)));
    let text = |code: &str, name: &str| {
        format!(
            "<tool_call>\n<function=f>\n<parameter=code>\n{code}\n</parameter>\n<parameter=name>\n{name}\n</parameter>\n</function>\n</tool_call>"
        )
    };
    for (code, name) in [("ab/", "日本"), ("a/", "a\nbc"), ("z/", "</pa")] {
        let text = text(code, name);
        assert!(model.takes(&grammar, &text), "{text:?}");
        checked(&turn(&parameters), &text);
    }
    for (code, name) in [("ab", "xy"), ("Ab/", "xy"), ("ab/", "x"), ("ab/", "vwxyz")] {
        let text = text(code, name);
        assert!(!model.takes(&grammar, &text), "{text:?}");
    }
    for (schema, word) in [
        (json!({ "type": "string", "format": "date" }), "format"),
        (json!({ "type": "string", "pattern": "^a|b$" }), "anchors"),
        (
            json!({ "anyOf": [{ "type": "string" }, { "type": "integer", "maximum": 5 }] }),
            "told apart",
        ),
        (json!({ "enum": ["5", 7] }), "told apart"),
    ] {
        let parameters = json!({ "type": "object", "properties": { "x": schema } });
        let message = model.refusal(&GrammarSource::Turn(turn(&parameters)));
        assert!(
            message.contains(word) && message.contains("\"f\""),
            "{message}"
        );
    }
}

#[test]
fn tokens_of_real_vocabularies_may_cross_the_parts_of_a_turn() {
    // The synthetic tokenizer puts spaces into calls.
    let real = Model::made_and(&["gpt-2", "qwen2", "llama-bpe"]);
    for model in real.into_iter().skip(1) {
        for written in written() {
            if written.form == CallForm::Harmony {
                continue;
            }
            let mut turn = written.turn(false, true);
            turn.form = written.output_form(true);
            let grammar = model.grammar(&GrammarSource::Turn(turn.clone()));
            let call = written.once(written.weather);
            let text = format!("<think>\nHm.\n</think>\n\n{call}");
            let mut matcher = grammar.matcher();
            let mut read = String::new();
            for id in model.tokenizer.encode(&text, false).unwrap() {
                read += &model.tokenizer.token_label(id);
                assert!(
                    allows(&mut matcher, id).unwrap(),
                    "{}: {read:?} of {text:?}",
                    model.name
                );
                matcher.accept(id).unwrap();
            }
            assert!(model.may_end(&mut matcher), "{}: {text:?}", model.name);
        }
    }
}
