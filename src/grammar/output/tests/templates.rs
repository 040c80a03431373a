//! Assistant turns as the shared chat templates render them, read back.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::*;

/// Text around an assistant's turn, after the last message of the user.
fn turn<'t>(template: &str, rest: &'t str) -> Option<&'t str> {
    let (header, ends): (&str, &[&str]) = match template {
        "gemma4" => ("<|turn>model\n", &["<|tool_response>", "<turn|>"]),
        "gemma2" | "gemma3" => ("<start_of_turn>model\n", &["<end_of_turn>"]),
        "glm4.6" => ("<|assistant|>", &["<|observation|>", "<|user|>"]),
        "gpt-oss" => ("<|start|>assistant", &["<|start|>functions"]),
        "llama3" | "llama3.1" | "llama3.2" => ("<|end_header_id|>\n\n", &["<|eot_id|>"]),
        "mistral-nemo" | "mistral-small3.2" | "ministral3-reasoning" => ("[/INST]", &["</s>"]),
        "phi4" | "phi4-old" => ("assistant<|im_sep|>", &["<|im_end|>"]),
        "phi3.5" => ("<|assistant|>\n", &["<|end|>"]),
        "granite3.3" | "granite4.0" | "granite4.1" => ("<|end_of_role|>", &["<|end_of_text|>"]),
        "deepseek-r1-llama" | "deepseek-r1-qwen" => ("<｜Assistant｜>", &["<｜end▁of▁sentence｜>"]),
        _ => ("<|im_start|>assistant\n", &["<|im_end|>"]),
    };
    let start = rest.find(header)? + header.len();
    let end = ends.iter().filter_map(|end| rest[start..].find(end)).min();
    Some(&rest[start..end.map_or(rest.len(), |end| start + end)])
}

/// Templates whose renderings hold calls.
const WITH_CALLS: [&str; 18] = [
    "deepseek-r1-qwen",
    "gemma4",
    "glm4.6",
    "gpt-oss",
    "granite4.0",
    "granite4.1",
    "hermes3",
    "lfm2.5-8b",
    "llama3.1",
    "llama3.2",
    "minicpm5",
    "ministral3-reasoning",
    "mistral-nemo",
    "mistral-small3.2",
    "qwen2.5",
    "qwen3",
    "qwen3-coder",
    "qwen3.5",
];

#[test]
fn rendered_turns_give_back_calls_reasoning_and_content() {
    let folder = std::env::var_os("INPAGE_MODELS").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/models"),
        PathBuf::from,
    );
    let folder = folder.join("../chat");
    let Ok(cases) = std::fs::read(folder.join("cases.json")) else {
        println!("skipped: no chat templates in {}", folder.display());
        return;
    };
    let cases: Vec<Value> = serde_json::from_slice(&cases).unwrap();
    let mut with_calls = BTreeSet::new();
    let mut with_reasoning = BTreeSet::new();
    for case in &cases {
        let template = case["template"].as_str().unwrap();
        let text = std::fs::read_to_string(folder.join(format!("templates/{template}.jinja")));
        let text = text.unwrap();
        let form = OutputForm::judged(&text, &|_| false, &|token| text.contains(token));
        let Some(rendered) = case["rendered"].as_str() else {
            continue;
        };
        let messages = case["messages"].as_array().unwrap();
        let Some(at) = messages.iter().rposition(|message| {
            let is_last = message == messages.last().unwrap();
            message["role"] == "assistant" && (message.get("tool_calls").is_some() || is_last)
        }) else {
            continue;
        };
        let message = &messages[at];
        let user = messages[..at]
            .iter()
            .rfind(|message| message["role"] == "user");
        let Some(user) = user.and_then(|user| user["content"].as_str()) else {
            continue;
        };
        let Some(start) = rendered.rfind(user) else {
            continue;
        };
        let Some(turn) = turn(template, &rendered[start + user.len()..]) else {
            continue;
        };
        let label = format!("{template}: {}: {turn:?}", case["case"]);
        let tail = match template {
            "gpt-oss" => "<|start|>assistant",
            _ => "",
        };
        let tools: Vec<Tool> = case["tools"]
            .as_array()
            .into_iter()
            .flatten()
            .map(tool)
            .collect();
        let mut reader = OutputReader::new(&form, &tools, tail);
        let mut read = Read::default();
        for character in turn.chars() {
            read.add(reader.push(character.encode_utf8(&mut [0; 4])));
        }
        read.add(reader.finish());
        let calls = message["tool_calls"]
            .as_array()
            .map_or(&[][..], Vec::as_slice);
        let name = |call: &Value| call["function"]["name"].as_str().unwrap().to_owned();
        if WITH_CALLS.contains(&template) && calls.iter().all(|call| turn.contains(&name(call))) {
            if !calls.is_empty() && !tools.is_empty() {
                // These templates need arguments as an object.
                let is_string = calls[0]["function"]["arguments"].is_string();
                let needs_object = [
                    "deepseek-r1-qwen",
                    "gemma4",
                    "gpt-oss",
                    "ministral3-reasoning",
                    "mistral-small3.2",
                ];
                if is_string && needs_object.contains(&template) {
                    continue;
                }
                with_calls.insert(template);
                assert_eq!(read.calls.len(), calls.len(), "{label}: {read:?}");
            }
            for (index, call) in calls.iter().enumerate().take(read.calls.len()) {
                let arguments = &call["function"]["arguments"];
                let arguments = match arguments.as_str() {
                    Some(text) => serde_json::from_str(text).unwrap(),
                    None => arguments.clone(),
                };
                assert_eq!(read.calls[index].0, name(call), "{label}");
                assert_eq!(read.arguments(index), arguments, "{label}");
            }
        }
        let reasoning = message["reasoning_content"].as_str().unwrap_or_default();
        if !reasoning.is_empty() && turn.contains(reasoning) {
            with_reasoning.insert(template);
            assert_eq!(read.reasoning, reasoning, "{label}");
        }
        let content = message["content"].as_str().unwrap_or_default();
        if turn.contains(content) && !content.contains("<think>") && read.reasoning != content {
            let given = if tools.is_empty() || calls.is_empty() || !read.calls.is_empty() {
                content.trim()
            } else {
                read.content.trim()
            };
            assert_eq!(read.content.trim(), given, "{label}");
        }
    }
    assert_eq!(with_calls, WITH_CALLS.into_iter().collect());
    for template in [
        "qwen3",
        "qwen3.5",
        "glm4.6",
        "gpt-oss",
        "gemma4",
        "lfm2.5-8b",
        "minicpm5",
    ] {
        assert!(with_reasoning.contains(template), "{template}");
    }
}

fn tool(declared: &Value) -> Tool {
    let function = &declared["function"];
    Tool {
        name: function["name"].as_str().unwrap().to_owned(),
        parameters: function.get("parameters").cloned(),
        strict: false,
    }
}
