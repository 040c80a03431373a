//! A message of the assistant in answers to `POST /chat/completions`, whole or as what a chunk adds to it (specification 18.5,
//! 18.6 and 18.10).

use serde::Serialize;

use crate::api::random_id;
use crate::grammar::OutputPart;

/// A message of the assistant.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(super) struct ChatCompletionMessage {
    #[cfg_attr(test, ts(type = "\"assistant\""))]
    role: &'static str,
    /// Null if the message consists of calls.
    content: Option<String>,
    /// Always null.
    refusal: Option<String>,
    /// The reasoning before the content.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    reasoning_content: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(test, ts(optional, as = "Option<Vec<ChatToolCall>>"))]
    tool_calls: Vec<ChatToolCall>,
    /// The call, if the request has `functions`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    function_call: Option<ChatFunctionCall>,
}

/// A call that the model has written.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
struct ChatToolCall {
    id: String,
    #[serde(rename = "type")]
    #[cfg_attr(test, ts(type = "\"function\""))]
    kind: &'static str,
    function: ChatFunctionCall,
}

/// The function of a [`ChatToolCall`].
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
struct ChatFunctionCall {
    name: String,
    /// JSON text.
    arguments: String,
}

/// The addition of a chunk to a message.
#[derive(Debug, Default, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(super) struct ChatDelta {
    /// The role, only in the first chunk of a choice.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional, type = "\"assistant\""))]
    role: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    content: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    reasoning_content: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(test, ts(optional, as = "Option<Vec<ChatToolCallDelta>>"))]
    tool_calls: Vec<ChatToolCallDelta>,
    /// The call, if the request has `functions`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    function_call: Option<ChatFunctionDelta>,
}

/// The addition of a chunk to a call.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
struct ChatToolCallDelta {
    /// The call, counted from 0.
    index: usize,
    /// The id of the call, only in its first delta.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    id: Option<String>,
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional, type = "\"function\""))]
    kind: Option<&'static str>,
    function: ChatFunctionDelta,
}

/// The function of a [`ChatToolCallDelta`].
#[derive(Debug, Default, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
struct ChatFunctionDelta {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(optional))]
    name: Option<String>,
    /// Appended to the call's arguments.
    arguments: String,
}

impl ChatDelta {
    /// The first one of a choice.
    pub(super) fn beginning() -> ChatDelta {
        ChatDelta {
            role: Some("assistant"),
            ..ChatDelta::of_content("")
        }
    }

    pub(super) fn of_content(text: &str) -> ChatDelta {
        ChatDelta {
            content: Some(text.to_owned()),
            ..ChatDelta::default()
        }
    }

    /// The parts in their order; text of one kind and arguments of one call are joined.
    pub(super) fn new(parts: &[OutputPart], has_functions: bool) -> ChatDelta {
        let mut delta = ChatDelta::default();
        let append = |text: &mut Option<String>, more: &str| {
            text.get_or_insert_default().push_str(more);
        };
        for part in parts {
            match part {
                OutputPart::Content(text) => append(&mut delta.content, text),
                OutputPart::Reasoning(text) => append(&mut delta.reasoning_content, text),
                OutputPart::CallStart { index, name } => delta.tool_calls.push(ChatToolCallDelta {
                    index: *index,
                    id: Some(random_id::tool_call_id()),
                    kind: Some("function"),
                    function: ChatFunctionDelta {
                        name: Some(name.clone()),
                        arguments: String::new(),
                    },
                }),
                OutputPart::CallArguments { index, json } => {
                    let calls = &mut delta.tool_calls;
                    match calls.iter_mut().rfind(|call| call.index == *index) {
                        Some(call) => call.function.arguments.push_str(json),
                        None => calls.push(ChatToolCallDelta {
                            index: *index,
                            id: None,
                            kind: None,
                            function: ChatFunctionDelta {
                                name: None,
                                arguments: json.clone(),
                            },
                        }),
                    }
                }
            }
        }
        if has_functions {
            delta.function_call = delta.tool_calls.drain(..).next().map(|call| call.function);
        }
        delta
    }
}

impl ChatCompletionMessage {
    /// `echo` is the beginning of its content.
    pub(super) fn new(
        parts: &[OutputPart],
        has_functions: bool,
        echo: &str,
    ) -> ChatCompletionMessage {
        let whole = ChatDelta::new(parts, has_functions);
        let function = |function: ChatFunctionDelta| ChatFunctionCall {
            name: function.name.unwrap_or_default(),
            arguments: function.arguments,
        };
        let call = |call: ChatToolCallDelta| ChatToolCall {
            id: call.id.unwrap_or_default(),
            kind: "function",
            function: function(call.function),
        };
        let tool_calls: Vec<_> = whole.tool_calls.into_iter().map(call).collect();
        let function_call = whole.function_call.map(function);
        let has_calls = !tool_calls.is_empty() || function_call.is_some();
        ChatCompletionMessage {
            role: "assistant",
            content: match whole.content {
                None if has_calls && echo.is_empty() => None,
                content => Some(echo.to_owned() + &content.unwrap_or_default()),
            },
            refusal: None,
            reasoning_content: whole.reasoning_content,
            tool_calls,
            function_call,
        }
    }
}
