//! The beginning of the next turn of a conversation: the conversation and the message that the model has just written,
//! as the chat template renders them. The engine feeds it while it is idle, so that the next request finds everything
//! but the new message in the prefix cache.

use std::rc::Rc;

use serde_json::{Map, Value, json};

use super::conversation;
use super::images::PromptImages;
use super::piece::Piece;
use crate::api::fields::Conversation;
use crate::engine::generation;
use crate::grammar::OutputPart;
use crate::text::Tokenizer;

/// Two messages that begin differently: what their prompts have in common is what every next turn begins with.
const NEXT_MESSAGES: [&str; 2] = ["A", "1"];

/// The message so far.
#[derive(Debug)]
pub(super) struct NextTurn {
    conversation: Conversation,
    tokenizer: Rc<Tokenizer>,
    /// The images of the conversation.
    images: PromptImages,
    content: String,
    /// Name and arguments of each call.
    calls: Vec<(String, String)>,
}

impl NextTurn {
    pub(super) fn new(conversation: Conversation, tokenizer: Rc<Tokenizer>) -> NextTurn {
        NextTurn {
            conversation,
            tokenizer,
            images: PromptImages::default(),
            content: String::new(),
            calls: Vec::new(),
        }
    }

    /// Adds the images of the conversation's prompt.
    pub(super) fn with_images(self, images: PromptImages) -> NextTurn {
        NextTurn { images, ..self }
    }

    /// Adds a piece of the message.
    pub(super) fn take(&mut self, piece: &Piece) {
        for part in &piece.parts {
            match part {
                OutputPart::Content(text) => self.content.push_str(text),
                // Clients do not return it, and templates leave it out of earlier messages.
                OutputPart::Reasoning(_) => {}
                OutputPart::CallStart { name, .. } => {
                    self.calls.push((name.clone(), String::new()));
                }
                OutputPart::CallArguments { index, json } => {
                    if let Some((_, arguments)) = self.calls.get_mut(*index) {
                        arguments.push_str(json);
                    }
                }
            }
        }
    }

    /// The ids that the prompt of every next turn begins with. `None` if the template does not render a next turn.
    pub(super) fn prompt(mut self) -> Option<generation::Prompt> {
        self.add_message();
        let [ids, other] = NEXT_MESSAGES.map(|text| self.ids_with(text));
        let ids = ids?;
        let common = std::iter::zip(&ids, other.as_ref()?).take_while(|(a, b)| a == b);
        Some(self.images.prompt(&ids[..common.count()]))
    }

    /// Appends the message to the conversation as a client would send it.
    fn add_message(&mut self) {
        let messages = &mut self.conversation.messages;
        let content = std::mem::take(&mut self.content);
        let continued = match self.conversation.continues_final_message {
            true => messages.last_mut(),
            false => None,
        };
        if let Some(message) = continued {
            let begun = message["content"].as_str().unwrap_or_default();
            message["content"] = format!("{begun}{content}").into();
        } else {
            messages.push(json!({"role": "assistant", "content": content}));
        }
        self.conversation.continues_final_message = false;
        self.conversation.add_generation_prompt = true;
        let calls = self.calls.iter().enumerate().map(|(index, (name, json))| {
            let arguments = serde_json::from_str::<Map<String, Value>>(json).unwrap_or_default();
            let function = json!({"name": name, "arguments": arguments});
            json!({"id": call_id(index), "type": "function", "function": function})
        });
        let calls: Vec<Value> = calls.collect();
        if let Some(message) = messages.last_mut()
            && !calls.is_empty()
        {
            message["tool_calls"] = calls.into();
        }
    }

    /// The ids of the prompt of a next turn with this text.
    fn ids_with(&self, text: &str) -> Option<Vec<u32>> {
        let mut next = self.conversation.clone();
        next.messages.push(match self.calls.first() {
            Some((name, _)) => {
                let id = call_id(0);
                json!({"role": "tool", "tool_call_id": id, "name": name, "content": text})
            }
            None => json!({"role": "user", "content": text}),
        });
        let placeholder = self.images.placeholder();
        let mut rendered = conversation::render_prompt(next, &self.tokenizer, placeholder).ok()?;
        rendered.text = self.images.place_in_text(rendered.text);
        let ids = rendered.tokenize(&self.tokenizer).ok()?;
        self.images.spread(ids).ok()
    }
}

/// Some templates print it. Then what follows it differs from the next turn.
fn call_id(index: usize) -> String {
    format!("call{index:05}")
}
