//! Calls of every family.

use super::*;

/// Content, and the calls with their arguments as written.
fn calls(form: CallForm, text: &str) -> (String, Vec<(String, String)>) {
    let read = read(form, text);
    (read.content, read.calls)
}

fn expect(form: CallForm, text: &str, content: &str, expected: &[(&str, &str)]) {
    let expected = expected.iter();
    let expected = expected.map(|(name, json)| ((*name).to_owned(), (*json).to_owned()));
    assert_eq!(
        calls(form, text),
        (content.to_owned(), expected.collect()),
        "{text}"
    );
}

#[test]
fn json_in_tags() {
    let hermes = |text: &str, content: &str, expected: &[(&str, &str)]| {
        expect(HERMES, text, content, expected)
    };
    hermes(
        "Let me look.\n<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"}\\\"\", \"n\": 1.50}}\n</tool_call>\n<tool_call>{\"name\":\"now\",\"arguments\":{}}</tool_call>\nDone.",
        "Let me look.Done.",
        &[
            ("get_weather", r#"{"city": "}\"", "n": 1.50}"#),
            ("now", "{}"),
        ],
    );
    // Other members, another order, arguments in a string, none at all.
    hermes(
        r#"<tool_call>{"id": [1, "}"], "arguments": {"a": {}}, "x": true, "name": "now"}</tool_call>"#,
        "",
        &[("now", r#"{"a": {}}"#)],
    );
    hermes(
        r#"<tool_call>{"name": "now", "arguments": "{\"a\": \"\u00fc\\n\\\"\"}"}</tool_call>"#,
        "",
        &[("now", r#"{"a": "ü\n\""}"#)],
    );
    hermes(
        r#"<tool_call>{"name": "now"}</tool_call>"#,
        "",
        &[("now", "{}")],
    );
    // Text that is no call is content.
    for text in [
        r#"<tool_call>{"name": "nope", "arguments": {}}</tool_call>"#,
        "<tool_call>\nnow()\n</tool_call>",
        r#"<tool_call>{"name": "now", "arguments": 5}</tool_call>"#,
        r#"<tool_call>{"name" "now"}</tool_call>"#,
        "say <tool_call> once",
        "<tool_call>\n{\"name\": \"now\", ",
    ] {
        hermes(text, text, &[]);
    }
    hermes(
        "<tool_call>\n<tool_call>{\"name\": \"now\"}</tool_call>",
        "<tool_call>",
        &[("now", "{}")],
    );
    // Once arguments were delivered, the call stays; what follows it and does not fit is content.
    hermes(
        r#"<tool_call>{"name": "now", "arguments": {"a": oops}}}</tool_call>"#,
        "}</tool_call>",
        &[("now", r#"{"a": oops}"#)],
    );
    hermes(
        r#"<tool_call>{"name": "now", "arguments": {"a": "b"#,
        "",
        &[("now", r#"{"a": "b"#)],
    );
    hermes(
        "<tool_call>{\"name\": \"now\", \"arguments\": {}}\n</tool_",
        "",
        &[("now", "{}")],
    );
    hermes(
        "<tool_call>{\"name\": \"now\", \"arguments\": {}}\n<tool_call>{\"name\": \"now\", \"arguments\": {}}\n</tool_call>",
        "",
        &[("now", "{}"), ("now", "{}")],
    );
}

#[test]
fn arguments_are_passed_on_while_they_arrive() {
    let mut reader = OutputReader::new(&form(HERMES), &tools(), "");
    let arguments = |json: &str| OutputPart::CallArguments {
        index: 0,
        json: json.to_owned(),
    };
    assert_eq!(
        reader.push("<tool_call>{\"name\": \"now\", \"argum"),
        Vec::new()
    );
    let start = OutputPart::CallStart {
        index: 0,
        name: "now".to_owned(),
    };
    assert_eq!(reader.push("ents\": {\"a"), [start, arguments("{\"a")]);
    assert_eq!(reader.push("b\": "), [arguments("b\": ")]);
    assert_eq!(reader.push("1}}\n"), [arguments("1}")]);
    let mut reader = OutputReader::new(&form(CallForm::QwenMarkup), &tools(), "");
    reader.push("<tool_call>\n<function=rechne>\n<parameter=expr>\n");
    assert_eq!(reader.push("3 * \"7"), [arguments("3 * \\\"7")]);
    assert_eq!(reader.push("\n</par"), Vec::new());
    assert_eq!(reader.push("."), [arguments("\\n</par.")]);
}

#[test]
fn bare_json() {
    let llama = |text: &str, content: &str, expected: &[(&str, &str)]| {
        expect(CallForm::Llama3, text, content, expected);
    };
    let call = r#"{"name": "now", "parameters": {"a": 1}}"#;
    let once = ("now", r#"{"a": 1}"#);
    llama(call, "", &[once]);
    llama(&format!("<|python_tag|>{call}"), "", &[once]);
    llama(
        &format!("\n{call}; {call}\n{call}"),
        "",
        &[once, once, once],
    );
    llama(&format!("{call}\n\nDone."), "Done.", &[once]);
    llama(
        r#"{"type": "function", "name": "now", "parameters": {"a": 1}}"#,
        "",
        &[once],
    );
    // Only at the beginning, and only if it is a call.
    let late = format!("Sure: {call}");
    llama(&late, &late, &[]);
    for text in [
        r#"{"name": "Ada", "born": 1815}"#,
        r#"{"name": "now"}"#,
        "{}",
        "{",
        "<|python_tag|>print(1)",
    ] {
        llama(text, text, &[]);
        expect(CallForm::Bare, text, text, &[]);
    }
    let bare = r#"{"name": "now", "arguments": {}}"#;
    expect(CallForm::Bare, bare, "", &[("now", "{}")]);
}

/// Llama 3.2 and 4 also write Python's calls, Llama 4 in tags or before its JSON.
#[test]
fn lists_of_llama() {
    let llama = |text: &str, content: &str, expected: &[(&str, &str)]| {
        expect(CallForm::Llama3, text, content, expected);
    };
    let calls = "[get_weather(city='Oslo', days=2), now()]";
    let both = [
        ("get_weather", r#"{"city": "Oslo", "days": 2}"#),
        ("now", "{}"),
    ];
    llama(calls, "", &both);
    llama(&format!("\n{calls}\n"), "", &both);
    llama(&format!("<|python_start|>{calls}<|python_end|>"), "", &both);
    llama(&format!("{calls} Done."), "Done.", &both);
    let json = r#"{"name": "now", "parameters": {}}"#;
    llama(
        &format!("<|python_start|>{calls}<|python_end|>{json}"),
        "",
        &[both[0], both[1], ("now", "{}")],
    );
    // Only at the beginning, and only if it is a call of a tool.
    for text in ["[1, 2]", "[", "[other()]", "[now", "So: [now()]"] {
        llama(text, text, &[]);
    }
    expect(CallForm::Bare, calls, calls, &[]);
}

#[test]
fn lists_and_names_of_mistral() {
    let both = [("get_weather", r#"{"city": "Oslo"}"#), ("now", "{}")];
    let list = r#"[TOOL_CALLS] [{"name": "get_weather", "arguments": {"city": "Oslo"}, "id": "abcdefgh1"}, {"name": "now", "arguments": {}}]"#;
    expect(CallForm::Mistral, list, "", &both);
    let named = CallForm::MistralNamed { has_ids: true };
    for text in [
        "[TOOL_CALLS]get_weather[ARGS]{\"city\": \"Oslo\"}[TOOL_CALLS]now[ARGS]{}",
        "[TOOL_CALLS]get_weather[CALL_ID]abcdefgh1[ARGS]{\"city\": \"Oslo\"}[TOOL_CALLS]now[CALL_ID]x[ARGS]{}",
        "[TOOL_CALLS]get_weather{\"city\": \"Oslo\"}\n[TOOL_CALLS] now {}",
        list,
    ] {
        expect(named, text, "", &both);
    }
    for text in [
        "[TOOL_CALLS]nope[ARGS]{}",
        "[TOOL_CALLS]now or never",
        "[TOOL_CALLS]now[",
    ] {
        expect(named, text, text, &[]);
    }
    // The second call of a list is none.
    expect(
        CallForm::Mistral,
        r#"[TOOL_CALLS] [{"name": "now", "arguments": {}}, {"name": "nope"}]"#,
        r#", {"name": "nope"}]"#,
        &[("now", "{}")],
    );
}

#[test]
fn lists_after_one_tag() {
    let list = r#"[{"name": "now", "arguments": {}}, {"name": "now", "arguments": {"a": [1]}}]"#;
    let both = [("now", "{}"), ("now", r#"{"a": [1]}"#)];
    expect(
        CallForm::Granite,
        &format!("<|tool_call|>{list}"),
        "",
        &both,
    );
    let phi = format!("<|tool_call|>{list}<|/tool_call|>");
    expect(CallForm::Phi4, &phi, "", &both);
}

#[test]
fn parameters_in_tags() {
    let expected = [
        (
            "get_weather",
            r#"{"city": "Zü \"rich\"\n<b>", "days": 2, "when": null}"#,
        ),
        ("now", r#"{"x": "a b", "y": true, "z": [1, "2"]}"#),
    ];
    expect(
        CallForm::QwenMarkup,
        "Ok.\n\n<tool_call>\n<function=get_weather>\n<parameter=city>\nZü \"rich\"\n<b>\n</parameter>\n<parameter=days>\n2\n</parameter>\n<parameter=when>\nnull\n</parameter>\n</function>\n</tool_call>\n<tool_call>\n<function=now>\n<parameter=x>\na b\n</parameter>\n<parameter=y>\nTrue\n</parameter>\n<parameter=z>\n[1, '2']\n</parameter>\n</function>\n</tool_call>",
        "Ok.",
        &expected,
    );
    expect(
        CallForm::Glm,
        "Ok.\n<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Zü \"rich\"\n<b></arg_value>\n<arg_key>days</arg_key>\n<arg_value>2</arg_value>\n<arg_key>when</arg_key>\n<arg_value>null</arg_value>\n</tool_call>\n<tool_call>now<arg_key>x</arg_key><arg_value>a b</arg_value><arg_key>y</arg_key><arg_value>true</arg_value><arg_key>z</arg_key><arg_value>[1, \"2\"]</arg_value></tool_call>",
        "Ok.",
        &expected,
    );
    expect(
        CallForm::MiniCpm,
        "Ok.\n<function name=\"get_weather\"><param name=\"city\"><![CDATA[Zü \"rich\"\n<b>]]></param><param name=\"days\">2</param><param name=\"when\">null</param></function>\n<function name=\"now\"><param name=\"x\">a b</param><param name=\"y\">True</param><param name=\"z\">[1, '2']</param></function>",
        "Ok.",
        &expected,
    );
    // A string that looks like another value, and its white space.
    expect(
        CallForm::QwenMarkup,
        "<tool_call>\n<function=rechne>\n<parameter=expr>\n\n 37 \n\n</parameter>\n</function>\n</tool_call>",
        "",
        &[("rechne", r#"{"expr": "\n 37 \n"}"#)],
    );
    // Without the outer tags, or without anything in it.
    expect(
        CallForm::QwenMarkup,
        "<function=now>\n</function>\nDone.",
        "Done.",
        &[("now", "{}")],
    );
    expect(
        CallForm::Glm,
        "<tool_call>now</tool_call>",
        "",
        &[("now", "{}")],
    );
    for text in [
        "<tool_call>\n<function=nope>\n</function>\n</tool_call>",
        "<tool_call>\n{\"name\": \"now\"}",
    ] {
        expect(CallForm::QwenMarkup, text, text, &[]);
    }
    // A call ends where it makes no sense any more, and where the output ends.
    expect(
        CallForm::QwenMarkup,
        "<function=rechne>\n<parameter=expr>\n1\n</parameter>\nand so on",
        "and so on",
        &[("rechne", r#"{"expr": "1"}"#)],
    );
    expect(
        CallForm::QwenMarkup,
        "<function=rechne>\n<parameter=expr>\n1 + </par",
        "",
        &[("rechne", r#"{"expr": "1 + </par"#)],
    );
}

#[test]
fn invocations() {
    expect(
        CallForm::Lfm2,
        r#"<|tool_call_start|>[get_weather(city="Zü'rich", days=2, when=None), now(a=['x\n', 1.5, {'k': (True, false)}], b=-1e3,), now()]<|tool_call_end|>Done."#,
        "Done.",
        &[
            (
                "get_weather",
                r#"{"city": "Zü'rich", "days": 2, "when": null}"#,
            ),
            (
                "now",
                r#"{"a": ["x\n", 1.5, {"k": [true, false]}], "b": -1e3}"#,
            ),
            ("now", "{}"),
        ],
    );
    expect(
        CallForm::Gemma4,
        "<|tool_call>call:rechne{expr:<|\"|>3 \"*\" <7<|\"|>,opts:{digits:2.5,tags:[<|\"|>a<|\"|>,<|\"|>b<|\"|>]},flag:true}<tool_call|><|tool_call>call:now{}<tool_call|>",
        "",
        &[
            (
                "rechne",
                r#"{"expr": "3 \"*\" <7", "opts": {"digits": 2.5, "tags": ["a", "b"]}, "flag": true}"#,
            ),
            ("now", "{}"),
        ],
    );
    expect(
        CallForm::FunctionGemma,
        "<start_function_call>call:get_weather{city:<escape>Oslo<escape>,days:3}<end_function_call>",
        "",
        &[("get_weather", r#"{"city": "Oslo", "days": 3}"#)],
    );
    for text in [
        "<|tool_call_start|>[nope(a=1)]<|tool_call_end|>",
        "<|tool_call_start|>now",
        "<|tool_call_start|>[]<|tool_call_end|>",
    ] {
        expect(CallForm::Lfm2, text, text, &[]);
    }
    expect(
        CallForm::Lfm2,
        "<|tool_call_start|>[now(a=1, b=}x)]",
        "}x)]",
        &[("now", r#"{"a": 1, "b": }"#)],
    );
}

#[test]
fn deepseek() {
    for text in [
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>now\n```json\n{\"a\": 1}\n```<｜tool▁call▁end｜>\n<｜tool▁call▁begin｜>function<｜tool▁sep｜>now\n```json\n{}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>now<｜tool▁sep｜>{\"a\": 1}<｜tool▁call▁end｜><｜tool▁call▁begin｜>now<｜tool▁sep｜>{}<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
    ] {
        let expected = [("now", r#"{"a": 1}"#), ("now", "{}")];
        expect(CallForm::DeepSeek, text, "", &expected);
    }
    let text = "<｜tool▁calls▁begin｜>none";
    expect(CallForm::DeepSeek, text, text, &[]);
}

#[test]
fn harmony() {
    let form = form(CallForm::Harmony);
    let read = |tail: &str, text: &str| read_after(&form, tail, text);
    let whole = read(
        "<|end|><|start|>assistant",
        "<|channel|>analysis<|message|>I need {it}.<|end|><|start|>assistant<|channel|>commentary<|message|>Let me look.<|end|><|start|>assistant<|channel|>commentary to=functions.now <|constrain|>json<|message|>{\"a\": \"<|x\"}<|call|><|start|>assistant to=functions.now<|channel|>commentary json<|message|>{}<|call|>",
    );
    assert_eq!(whole.reasoning, "I need {it}.");
    assert_eq!(whole.content, "Let me look.");
    let call = |json: &str| ("now".to_owned(), json.to_owned());
    assert_eq!(whole.calls, [call(r#"{"a": "<|x"}"#), call("{}")]);
    let last = read(
        "<|start|>assistant",
        "<|channel|>final<|message|>21 \n<|return|>",
    );
    assert_eq!((&*last.content, &*last.reasoning), ("21 \n", ""));
    // The prompt opens a message.
    let tail = "<|start|>assistant<|channel|>analysis<|message|>So";
    let open = read(
        tail,
        " on.<|end|><|start|>assistant<|channel|>final<|message|>21",
    );
    assert_eq!((&*open.content, &*open.reasoning), ("21", " on."));
    // Not in the form, an unknown function, no arguments.
    assert_eq!(read("", "Hello").content, "Hello");
    assert_eq!(read("<|start|>assistant", "Hello").content, "Hello");
    let unknown = "<|channel|>commentary to=functions.nope<|message|>{}<|call|>";
    assert_eq!(read("<|start|>assistant", unknown).content, "{}");
    let odd = "<|channel|>commentary to=functions.now<|message|>why not<|call|>";
    assert_eq!(read("<|start|>assistant", odd).content, "why not");
}
