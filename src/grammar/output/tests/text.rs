//! Content and reasoning.

use super::*;

#[test]
fn content_is_passed_on_as_soon_as_it_cannot_be_a_tag() {
    let mut reader = OutputReader::new(&form(HERMES), &tools(), "");
    let content = |text: &str| vec![OutputPart::Content(text.to_owned())];
    assert_eq!(reader.push("a <tool"), content("a"));
    assert_eq!(reader.push("s and"), content(" <tools and"));
    // White space may belong to a tag that follows.
    assert_eq!(reader.push("\n\n"), Vec::new());
    assert_eq!(reader.push("b"), content("\n\nb"));
    assert_eq!(reader.push(" <tool_call"), Vec::new());
    assert_eq!(reader.finish(), content(" <tool_call"));
}

#[test]
fn reasoning_stands_at_the_beginning() {
    let read = |text: &str| read(HERMES, text);
    let thought = read("<think>\nThree sevens.\n\nSo:\n</think>\n\n21\n");
    assert_eq!(thought.reasoning, "Three sevens.\n\nSo:");
    assert_eq!(thought.content, "21\n");
    let empty = read("<think>\n\n</think>\n\n21");
    assert_eq!((&*empty.reasoning, &*empty.content), ("", "21"));
    let quoted = read("The tag <think> opens it, </think> closes it.");
    assert_eq!(quoted.reasoning, "");
    assert_eq!(
        quoted.content,
        "The tag <think> opens it, </think> closes it."
    );
    let cut = read("<think>\nThree </thi");
    assert_eq!((&*cut.reasoning, &*cut.content), ("Three </thi", ""));
    // A call inside of reasoning is a thought about one.
    let call = r#"<tool_call>{"name": "now", "arguments": {}}</tool_call>"#;
    let inside = read(&format!("<think>{call}</think>{call}"));
    assert_eq!((&*inside.reasoning, inside.calls.len()), (call, 1));
    // Between calls, models may reason again.
    let between = read(&format!("{call}\n<think>\nAnd?\n</think>\n{call}"));
    assert_eq!((&*between.reasoning, between.calls.len()), ("And?", 2));
    assert_eq!(between.content, "");
}

#[test]
fn the_prompt_may_open_reasoning() {
    let form = form(HERMES);
    let turn = "<|im_start|>user\nWhat is <think>?<|im_end|>\n<|im_start|>assistant\n";
    let after = |tail: &str, text| {
        let read = read_after(&form, &format!("{turn}{tail}"), text);
        (read.reasoning, read.content)
    };
    let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
    assert_eq!(after("<think>\n", "Hm.\n</think>\n\n21"), pair("Hm.", "21"));
    assert_eq!(after("<think>\nHm", ", so.</think>21"), pair(", so.", "21"));
    assert_eq!(after("", "21"), pair("", "21"));
    assert_eq!(after("<think>\n\n</think>\n\n", "\n21"), pair("", "21"));
}

#[test]
fn every_family_has_its_tags_of_reasoning() {
    let judged = |template: &str| OutputForm::judged(template, &|_| false, &|_| false);
    let gemma = judged("<|channel>thought\n<channel|> <|tool_call>call:");
    let read = read_after(
        &gemma,
        "<|turn>model\n",
        "<|channel>thought\nHm.\n<channel|>21",
    );
    assert_eq!((&*read.reasoning, &*read.content), ("Hm.", "21"));
    let mistral = judged("[THINK]x[/THINK]");
    let read = read_after(&mistral, "[/INST]", "[THINK]Hm.[/THINK]21");
    assert_eq!((&*read.reasoning, &*read.content), ("Hm.", "21"));
    let plain = judged("{{ message }}");
    let text = "<think>Hm.</think>\n {\"a\": 1}\n\n";
    assert_eq!(read_after(&plain, "", text).content, text);
}

#[test]
fn without_tools_calls_are_content() {
    let mut reader = OutputReader::new(&form(HERMES), &[], "");
    let text = "<tool_call>{\"name\": \"now\", \"arguments\": {}}</tool_call>";
    assert_eq!(reader.push(text), [OutputPart::Content(text.to_owned())]);
}
