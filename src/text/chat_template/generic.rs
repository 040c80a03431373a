//! Tools for templates that render none (specification 18.9): declarations, calls and results become text of messages.
//! `grammar` reads a model's calls.

use serde_json::{Map, Value as Json, json};

use super::{LocalTime, Marker, TemplateError, TemplateInput, render};

/// The instructions for the model about calls, before and after the declarations.
const BEFORE: &str =
    "You can call functions. Each line describes one, its parameters as a JSON schema:";
/// A small model copies placeholders into its calls, so the form is shown by the call of another function.
const AFTER: &str = "To call a function, write its name and its arguments as JSON between <tool_call> tags. \
A function that finds the capital of a country would be called so:
<tool_call>
{\"name\": \"find_capital\", \"arguments\": {\"country\": \"France\"}}
</tool_call>
The next message has the result between <tool_response> tags. If no function helps, answer without a call.";

/// Whether the template writes the tools that it is given. One that refuses short conversations is taken to do so.
pub fn renders_tools(template: &str) -> bool {
    if !template.contains("tools") {
        return false;
    }
    let tool = json!({"type": "function", "function": {
        "name": "get_weather", "description": "Reports the weather.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string", "description": "A city."}},
            "required": ["city"]},
    }});
    let user = json!({"role": "user", "content": "Hello"});
    let system = json!({"role": "system", "content": "Be brief."});
    let conversations = [vec![user.clone()], vec![system, user]];
    let mut renderings = conversations.iter().map(|messages| {
        let without = probe(template, messages, None);
        let with = probe(template, messages, Some(std::slice::from_ref(&tool)));
        (without.ok(), with.ok())
    });
    // A failure in both says nothing.
    let mut is_rendered = false;
    let differs = renderings.any(|(without, with)| {
        is_rendered |= without.is_some();
        without != with
    });
    differs || !is_rendered
}

fn probe(
    template: &str,
    messages: &[Json],
    tools: Option<&[Json]>,
) -> Result<String, TemplateError> {
    let marker = Marker::absent_from([template]).ok_or_else(|| {
        TemplateError::TooMuch("it uses every private character of Unicode".to_owned())
    })?;
    let input = TemplateInput {
        messages,
        tools,
        add_generation_prompt: true,
        bos_token: "",
        eos_token: "",
        variables: &Map::new(),
        now: LocalTime::new(0, 0),
        marker,
    };
    render(template, &input)
}

/// Writes tools, calls and results into `messages`, for a `template` that renders none of them.
///
/// # Errors
/// [`TemplateError::TooMuch`] if they are too large.
pub fn write_tools(
    messages: &mut Vec<Json>,
    tools: &[Json],
    template: &str,
    marker: Marker,
) -> Result<(), TemplateError> {
    // A template without tools may know their calls and results.
    let has_calls = template.contains("tool_calls");
    let has_results = ["'tool'", "\"tool\""]
        .iter()
        .any(|role| template.contains(role));
    let mut written: Vec<Json> = Vec::with_capacity(messages.len() + 1);
    let mut follows_result = false;
    for mut message in std::mem::take(messages) {
        let is_result = message["role"] == "tool" && !has_results;
        if is_result {
            surround(
                &mut message["content"],
                "<tool_response>\n",
                "\n</tool_response>",
            );
            let content = message["content"].take();
            match written.last_mut().filter(|_| follows_result) {
                Some(last) => append(&mut last["content"], &content),
                None => written.push(json!({"role": "user", "content": content})),
            }
        } else {
            let members = message.as_object_mut().filter(|_| !has_calls);
            if let Some(calls) = members.and_then(|it| it.shift_remove("tool_calls")) {
                for call in calls.as_array().into_iter().flatten() {
                    let function = &call["function"];
                    let call =
                        json!({"name": function["name"], "arguments": function["arguments"]});
                    let text = format!("<tool_call>\n{}\n</tool_call>", dump(call, marker)?);
                    append(&mut message["content"], &text.into());
                }
            }
            written.push(message);
        }
        follows_result = is_result;
    }
    if !tools.is_empty() {
        let mut text = BEFORE.to_owned();
        for tool in tools {
            text.push('\n');
            text.push_str(&dump(tool["function"].clone(), marker)?);
        }
        text.push('\n');
        text.push_str(AFTER);
        instruct(&mut written, text, template);
    }
    *messages = written;
    Ok(())
}

/// Puts `text` into the system message, or into the first message where the template refuses one.
fn instruct(messages: &mut Vec<Json>, text: String, template: &str) {
    let system = json!({"role": "system", "content": "Be brief."});
    let user = json!({"role": "user", "content": "Hello"});
    let has_system = probe(template, &[system, user.clone()], None)
        .is_ok_and(|it| it.contains("Be brief."))
        || probe(template, &[user], None).is_err();
    match messages.first_mut() {
        Some(first) if first["role"] == "system" => append(&mut first["content"], &text.into()),
        Some(first) if !has_system && first["role"] == "user" => {
            let content = std::mem::replace(&mut first["content"], text.into());
            append(&mut first["content"], &content);
        }
        _ => messages.insert(0, json!({"role": "system", "content": text})),
    }
}

/// Appends to a content, text or parts, after an empty line if both are text.
fn append(content: &mut Json, more: &Json) {
    match (&mut *content, more) {
        (Json::String(text), Json::String(more)) => {
            if !text.is_empty() {
                text.push_str(
                    if text.ends_with("</tool_response>") || text.ends_with("</tool_call>") {
                        "\n"
                    } else {
                        "\n\n"
                    },
                );
            }
            text.push_str(more);
        }
        (Json::Array(parts), more) => parts.extend(into_parts(more)),
        (content, more) => {
            let mut parts = into_parts(content);
            parts.extend(into_parts(more));
            *content = match &parts[..] {
                [part] if part["type"] == "text" => part["text"].clone(),
                _ => parts.into(),
            };
        }
    }
}

fn surround(content: &mut Json, before: &str, after: &str) {
    match content {
        Json::String(text) => *text = format!("{before}{text}{after}"),
        content => {
            let mut parts = into_parts(&before.into());
            parts.extend(into_parts(content));
            parts.extend(into_parts(&after.into()));
            *content = parts.into();
        }
    }
}

fn into_parts(content: &Json) -> Vec<Json> {
    match content {
        Json::Array(parts) => parts.clone(),
        Json::String(text) if !text.is_empty() => vec![json!({"type": "text", "text": text})],
        _ => Vec::new(),
    }
}

/// The JSON text of a value, as templates write it.
fn dump(value: Json, marker: Marker) -> Result<String, TemplateError> {
    let input = TemplateInput {
        messages: &[value],
        tools: None,
        add_generation_prompt: false,
        bos_token: "",
        eos_token: "",
        variables: &Map::new(),
        now: LocalTime::new(0, 0),
        marker,
    };
    render("{{ messages[0] | tojson }}", &input)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: &str = "{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}";

    fn written(messages: Json, tools: Json, template: &str) -> Vec<Json> {
        let mut messages = messages.as_array().unwrap().clone();
        let marker = Marker::absent_from([template]).unwrap();
        let tools = tools.as_array().unwrap();
        write_tools(&mut messages, tools, template, marker).unwrap();
        messages
    }

    #[test]
    fn templates_that_write_tools_are_told_from_others() {
        for template in [
            "{% if tools %}{{ tools | tojson }}{% endif %}".to_owned() + PLAIN,
            "{% if tools %}{{ tools | length }}{% endif %}".to_owned() + PLAIN,
            // Only with a system message.
            "{% if messages[0].role == 'system' %}{{ tools }}{% endif %}".to_owned() + PLAIN,
            "{% if tools %}{{ raise_exception('no') }}{% endif %}".to_owned() + PLAIN,
            "{{ raise_exception(tools or 'always') }}".to_owned(),
        ] {
            assert!(renders_tools(&template), "{template}");
        }
        for template in [
            PLAIN.to_owned(),
            "{# tools #}".to_owned() + PLAIN,
            "{% for m in messages %}{{ m.tools }}{{ m.content }}{% endfor %}".to_owned(),
        ] {
            assert!(!renders_tools(&template), "{template}");
        }
    }

    #[test]
    fn tools_calls_and_results_are_text() {
        let messages = json!([
            {"role": "system", "content": "Be kind."},
            {"role": "user", "content": "Rain?"},
            {"role": "assistant", "content": "", "tool_calls": [
                {"id": "1", "type": "function", "function": {"name": "w", "arguments": {"city": "Oslo"}}},
                {"id": "2", "type": "function", "function": {"name": "w", "arguments": {"city": "Rome"}}},
            ]},
            {"role": "tool", "tool_call_id": "1", "content": "rain"},
            {"role": "tool", "tool_call_id": "2", "content": [{"type": "image"}]},
            {"role": "user", "content": "And?"},
        ]);
        let tools = json!([{"type": "function", "function": {"name": "w", "parameters": {"type": "object"}}}]);
        let written = written(messages, tools, PLAIN);
        let roles: Vec<&str> = written
            .iter()
            .map(|it| it["role"].as_str().unwrap())
            .collect();
        assert_eq!(roles, ["system", "user", "assistant", "user", "user"]);
        let system = written[0]["content"].as_str().unwrap();
        assert!(system.starts_with("Be kind.\n\n"), "{system}");
        let declaration = "\n{\"name\": \"w\", \"parameters\": {\"type\": \"object\"}}\n";
        assert!(system.contains(declaration), "{system}");
        assert_eq!(
            written[2],
            json!({"role": "assistant", "content": "<tool_call>\n{\"name\": \"w\", \"arguments\": {\"city\": \"Oslo\"}}\n</tool_call>\n\
                <tool_call>\n{\"name\": \"w\", \"arguments\": {\"city\": \"Rome\"}}\n</tool_call>"})
        );
        let parts = json!([
            {"type": "text", "text": "<tool_response>\nrain\n</tool_response>"},
            {"type": "text", "text": "<tool_response>\n"},
            {"type": "image"},
            {"type": "text", "text": "\n</tool_response>"},
        ]);
        assert_eq!(written[3]["content"], parts);
    }

    #[test]
    fn instructions_go_where_the_template_takes_them() {
        let messages = json!([{"role": "user", "content": "Rain?"}]);
        let tools = json!([{"type": "function", "function": {"name": "w"}}]);
        let with_system = written(messages.clone(), tools.clone(), PLAIN);
        assert_eq!(with_system.len(), 2);
        assert_eq!(with_system[0]["role"], "system");
        let refuses = "{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('no') }}{% endif %}\
            {{ m.content }}{% endfor %}";
        let without = written(messages.clone(), tools, refuses);
        assert_eq!(without.len(), 1);
        let content = without[0]["content"].as_str().unwrap();
        assert!(
            content.contains("\"w\"") && content.ends_with("\n\nRain?"),
            "{content}"
        );
        // Without tools nothing is added.
        assert_eq!(
            written(messages.clone(), json!([]), PLAIN),
            *messages.as_array().unwrap()
        );
    }
}
