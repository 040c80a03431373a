//! From a conversation to the token ids of a prompt: chooses the template, keeps special tokens in contents from being
//! recognized, renders and tokenizes (specification 18.2 to 18.4).
//!
//! A chat completion is a completion with two more steps (`api/run/message_text.rs`). The conversation is rendered and
//! tokenized where other prompts are tokenized, because only then the model and its template are known. The text of a
//! candidate is divided into parts where it is detokenized, token by token, so that the parts, the count of reasoning
//! tokens and the continuation of a lost stream do not depend on how tokens are divided into chunks.

use serde_json::{Map, Value, json};

use crate::api::error::fault;
use crate::api::fields::Conversation;
use crate::text::{
    LocalTime, Marker, Pause, Special, TemplateError, TemplateInput, Tokenizer, render,
    renders_tools, write_tools,
};
use crate::{Error, RequestFault, Result};

const MESSAGES: &str = "messages";

/// A conversation as the template renders it.
pub(super) struct RenderedPrompt {
    /// Marked: special tokens that messages spell out have markers within them.
    pub text: String,
    marker: Marker,
}

/// Renders a conversation. `placeholder` is what stands for an image.
pub(super) fn render_prompt(
    chat: Conversation,
    tokenizer: &Tokenizer,
    placeholder: Option<&str>,
) -> Result<RenderedPrompt> {
    if !chat.is_prefill {
        return render_as_told(chat, tokenizer, placeholder);
    }
    let next_turn = Conversation {
        continues_final_message: false,
        add_generation_prompt: true,
        ..chat.clone()
    };
    let continued = render_as_told(chat, tokenizer, placeholder);
    continued.or_else(|_| render_as_told(next_turn, tokenizer, placeholder))
}

/// Continues the last message, or fails.
fn render_as_told(
    mut chat: Conversation,
    tokenizer: &Tokenizer,
    placeholder: Option<&str>,
) -> Result<RenderedPrompt> {
    let given = chat.template.take();
    let of_model = || tokenizer.chat_templates().choose(!chat.tools.is_empty());
    let template = given.as_deref().or_else(of_model).ok_or_else(no_template)?;
    adapt(&mut chat, template);
    let marker = unused_character(&chat, template)?;
    mark(&mut chat, tokenizer, marker);
    if chat.continues_final_message {
        mark_end(&mut chat.messages, marker)?;
    }
    let has_tools = !chat.tools.is_empty()
        || chat
            .messages
            .iter()
            .any(|message| message["role"] == "tool" || message.get("tool_calls").is_some());
    if has_tools && !renders_tools(template) {
        write_tools(&mut chat.messages, &chat.tools, template, marker)
            .map_err(|error| refused(&error, marker))?;
    }
    shape_contents(
        &mut chat.messages,
        template,
        marker,
        placeholder.unwrap_or_default(),
    );
    let token_text = |id: Option<u32>| {
        let bytes = id.map_or(&[][..], |id| tokenizer.token_bytes(id));
        String::from_utf8_lossy(bytes).into_owned()
    };
    let rendered = render(
        template,
        &TemplateInput {
            messages: &chat.messages,
            tools: (!chat.tools.is_empty()).then_some(&chat.tools),
            add_generation_prompt: chat.add_generation_prompt,
            bos_token: &token_text(tokenizer.bos_id()),
            eos_token: &token_text(tokenizer.eos_id()),
            variables: &chat.variables,
            now: chat.now,
            marker,
        },
    );
    let mut text = rendered.map_err(|error| refused(&error, marker))?;
    if chat.continues_final_message {
        cut_at_mark(&mut text, marker)?;
    }
    Ok(RenderedPrompt { text, marker })
}

impl RenderedPrompt {
    /// The ids of the prompt, at least one.
    pub(super) fn tokenize(&self, tokenizer: &Tokenizer) -> Result<Vec<u32>> {
        let ids = tokenizer.encode_rendered(&self.text, self.marker)?;
        at_least_one(ids, tokenizer)
    }

    /// [`Self::tokenize`], with pauses.
    pub(super) async fn tokenize_in_slices(
        &self,
        tokenizer: &Tokenizer,
        pause: Pause<'_>,
    ) -> Result<Vec<u32>> {
        let special = Special::Rendered(self.marker);
        let ids = tokenizer
            .encode_in_slices(&self.text, special, pause)
            .await?;
        at_least_one(ids, tokenizer)
    }

    /// The text without markers.
    pub(super) fn plain_text(&self) -> String {
        self.marker.remove(&self.text)
    }

    /// The end of the text, which may begin the model's message. Marked strings stay marked: a message cannot begin the
    /// model's reasoning.
    pub(super) fn tail(&self) -> String {
        const TAIL_CHARS: usize = 1024;
        let mut starts = self.text.char_indices().rev();
        let start = starts.nth(TAIL_CHARS).map_or(0, |(at, _)| at);
        self.text[start..].to_owned()
    }
}

fn at_least_one(mut ids: Vec<u32>, tokenizer: &Tokenizer) -> Result<Vec<u32>> {
    if ids.is_empty() {
        let start = tokenizer.document_start_id();
        let start = start.ok_or_else(|| invalid("the chat template makes an empty prompt"))?;
        ids.push(start);
    }
    Ok(ids)
}

/// Applies the rules that depend on the words that the template knows.
fn adapt(chat: &mut Conversation, template: &str) {
    if !template.contains("developer") {
        for message in &mut chat.messages {
            if message["role"] == "developer" {
                message["role"] = "system".into();
            }
        }
    }
    let Some(effort) = chat.reasoning_effort else {
        return;
    };
    let variables = &mut chat.variables;
    let default = |variables: &mut Map<String, Value>, name: &str, value: Value| {
        variables.entry(name).or_insert(value);
    };
    default(variables, "reasoning_effort", effort.into());
    if matches!(effort, "none" | "minimal") && template.contains("enable_thinking") {
        default(variables, "enable_thinking", false.into());
    }
}

/// Gives contents the shape that the template prints: lists of parts if it prints no strings, and strings if it prints
/// no lists.
fn shape_contents(messages: &mut [Value], template: &str, marker: Marker, placeholder: &str) {
    let has_lists = messages.iter().any(|message| message["content"].is_array());
    let reads_parts = ["'type'", "\"type\"", ".type"]
        .iter()
        .any(|it| template.contains(it));
    if !has_lists && !reads_parts {
        return;
    }
    const PROBE: &str = "What is this?";
    let prints = |content: Value| {
        let rendered = render(
            template,
            &TemplateInput {
                messages: &[json!({"role": "user", "content": content})],
                tools: None,
                add_generation_prompt: false,
                bos_token: "",
                eos_token: "",
                variables: &Map::new(),
                now: LocalTime::new(0, 0),
                marker,
            },
        );
        // A list as it is does not count.
        let is_list = |text: &str| ["'type'", "\"type\""].iter().any(|it| text.contains(it));
        rendered.is_ok_and(|text| text.contains(PROBE) && !is_list(&text))
    };
    let prints_lists = prints(json!([{"type": "text", "text": PROBE}]));
    match prints_lists && !prints(PROBE.into()) {
        true => messages.iter_mut().for_each(into_parts),
        false if !prints_lists => messages
            .iter_mut()
            .for_each(|it| into_text(it, placeholder)),
        false => {}
    }
}

fn into_parts(message: &mut Value) {
    if let Some(text) = message["content"].as_str() {
        message["content"] = json!([{"type": "text", "text": text}]);
    }
}

fn into_text(message: &mut Value, placeholder: &str) {
    let text = |part: &Value| match part["text"].as_str() {
        Some(text) => text.to_owned(),
        None => placeholder.to_owned(),
    };
    if let Some(parts) = message["content"].as_array() {
        let strings: Vec<String> = parts.iter().map(text).collect();
        message["content"] = strings.join("\n").into();
    }
}

/// A character that no string of the conversation contains, as the marker within special tokens.
fn unused_character(chat: &Conversation, template: &str) -> Result<Marker> {
    let mut strings = vec![template];
    chat.messages
        .iter()
        .for_each(|json| collect(json, &mut strings));
    chat.tools
        .iter()
        .for_each(|json| collect(json, &mut strings));
    for (name, json) in &chat.variables {
        strings.push(name);
        collect(json, &mut strings);
    }
    Marker::absent_from(strings)
        .ok_or_else(|| invalid("they use every private character of Unicode"))
}

/// Appends all strings of a JSON value, names of members included.
fn collect<'j>(json: &'j Value, strings: &mut Vec<&'j str>) {
    match json {
        Value::String(string) => strings.push(string),
        Value::Array(elements) => elements.iter().for_each(|json| collect(json, strings)),
        Value::Object(members) => {
            for (name, json) in members {
                strings.push(name);
                collect(json, strings);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Marks the strings of all roles. The assistant's were written by the model, but not as special tokens: those are
/// not part of a message. Only the tags of reasoning are, which templates look for in the assistant's content.
fn mark(chat: &mut Conversation, tokenizer: &Tokenizer, marker: Marker) {
    let all = |text: &str| tokenizer.mark(text, marker, |_| false);
    let but_reasoning = |text: &str| {
        let is_tag = |token: &str| token.to_ascii_lowercase().contains("think");
        tokenizer.mark(text, marker, is_tag)
    };
    for message in &mut chat.messages {
        // The role is one of a few words.
        let role = message["role"].take();
        match role == "assistant" {
            true => marker.mark_all(message, &but_reasoning),
            false => marker.mark_all(message, &all),
        }
        message["role"] = role;
    }
    for tool in &mut chat.tools {
        marker.mark_all(tool, &all);
    }
    for value in chat.variables.values_mut() {
        marker.mark_all(value, &all);
    }
}

/// Two markers, which marked strings do not contain, behind the content of the last message.
fn end_mark(marker: Marker) -> String {
    String::from_iter([marker.char(); 2])
}

/// Marks the end of the last message's content, white space left out.
fn mark_end(messages: &mut [Value], marker: Marker) -> Result<()> {
    let content = messages.last_mut().map(|message| &mut message["content"]);
    match content {
        Some(Value::String(content)) if !content.trim().is_empty() => {
            content.truncate(content.trim_end().len());
            content.push_str(&end_mark(marker));
            Ok(())
        }
        _ => Err(nothing_to_continue("the last message has no text")),
    }
}

/// Cuts a prompt at the end of the last message's content.
fn cut_at_mark(text: &mut String, marker: Marker) -> Result<()> {
    let at = text.rfind(&end_mark(marker));
    let at = at.ok_or_else(|| {
        nothing_to_continue("the chat template does not print the last message's content")
    })?;
    text.truncate(at);
    Ok(())
}

fn nothing_to_continue(reason: &str) -> Error {
    const FIELD: &str = "continue_final_message";
    fault(
        RequestFault::InvalidValue,
        FIELD,
        format!("{FIELD}: {reason}"),
    )
}

fn no_template() -> Error {
    fault(
        RequestFault::UnsupportedParameter,
        MESSAGES,
        "messages: the model's files have no chat template: pass one as chatTemplate to createEngine, or use \
         /completions",
    )
}

fn invalid(reason: &str) -> Error {
    let message = format!("messages: {reason}");
    fault(RequestFault::InvalidValue, MESSAGES, message)
}

fn refused(error: &TemplateError, marker: Marker) -> Error {
    let text = marker.remove(&error.to_string());
    match error {
        TemplateError::Refused(_) => invalid(&format!("the chat template refuses them: {text}")),
        TemplateError::Failed(_) => {
            invalid(&format!("the chat template does not suit them: {text}"))
        }
        TemplateError::TooMuch(_) => invalid(&format!("the chat template is stopped: {text}")),
        TemplateError::Syntax(_) => fault(
            RequestFault::UnsupportedParameter,
            MESSAGES,
            format!(
                "messages: the chat template cannot be read: {text}. Pass another one as chatTemplate to createEngine"
            ),
        ),
    }
}
