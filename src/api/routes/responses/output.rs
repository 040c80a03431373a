//! From the pieces of an answer to the items of a response, and to the events that tell of them (specification 20.3 and
//! 20.4). Whole and streamed responses both use it, so they cannot differ.

use super::event::Event;
use super::object::{ResponseItem, ResponsePart, Status};
use crate::api::fields::input::ENCRYPTED_PREFIX;
use crate::api::routes::token_logprobs::{ChatTokenLogprob, token_logprobs};
use crate::api::run::{Entry, Piece};
use crate::engine::event::FinishReason;
use crate::grammar::OutputPart;
use crate::text::Tokenizer;

/// Reasoning and messages have one part.
const CONTENT_INDEX: usize = 0;

/// The items of a response in the making.
pub(super) struct Output {
    pub items: Vec<ResponseItem>,
    /// Makes ids of items that are the same when the request is run again.
    random: String,
    has_encrypted: bool,
    /// The last item is open.
    is_open: bool,
    /// The next content of the open item.
    delta: String,
    /// The log-probabilities of `delta`, or of what comes before the first item.
    logprobs: Vec<ChatTokenLogprob>,
}

impl Output {
    /// `response_id` names the response; with `has_encrypted` reasoning items have `encrypted_content`.
    pub(super) fn new(response_id: &str, has_encrypted: bool) -> Output {
        let random = response_id.strip_prefix("resp_").unwrap_or(response_id);
        Output {
            items: Vec::new(),
            random: random.to_owned(),
            has_encrypted,
            is_open: false,
            delta: String::new(),
            logprobs: Vec::new(),
        }
    }

    /// Adds a piece. The items are closed after the last one.
    pub(super) fn add(
        &mut self,
        piece: &Piece,
        tokenizer: &Tokenizer,
        emit: &mut dyn FnMut(Event<'_>),
    ) {
        let mut listed = 0;
        for (part, place) in piece.parts.iter().zip(&piece.part_places) {
            self.list(&piece.entries[listed..*place], tokenizer);
            listed = *place;
            self.add_part(part, emit);
        }
        self.list(&piece.entries[listed..], tokenizer);
        self.flush(emit);
        if let Some(finish) = &piece.finish {
            self.finish(finish.reason, emit);
        }
    }

    fn add_part(&mut self, part: &OutputPart, emit: &mut dyn FnMut(Event<'_>)) {
        let open = self.items.last().filter(|_| self.is_open);
        let text = match (part, open) {
            (OutputPart::Content(text), Some(ResponseItem::Message { .. }))
            | (OutputPart::Reasoning(text), Some(ResponseItem::Reasoning { .. })) => text,
            (OutputPart::Content(text), _) => {
                let message = self.message();
                self.open(message, emit);
                text
            }
            (OutputPart::Reasoning(text), _) => {
                let reasoning = ResponseItem::Reasoning {
                    id: self.next_id("rs"),
                    status: Status::InProgress,
                    summary: [],
                    content: Vec::new(),
                    encrypted_content: None,
                };
                self.open(reasoning, emit);
                text
            }
            (OutputPart::CallStart { name, .. }, _) => {
                let call = ResponseItem::FunctionCall {
                    id: self.next_id("fc"),
                    status: Status::InProgress,
                    call_id: self.next_id("call"),
                    name: name.clone(),
                    arguments: String::new(),
                };
                return self.open(call, emit);
            }
            (OutputPart::CallArguments { json, .. }, _) => json,
        };
        self.delta.push_str(text);
    }

    fn message(&self) -> ResponseItem {
        ResponseItem::Message {
            id: self.next_id("msg"),
            status: Status::InProgress,
            role: "assistant",
            content: Vec::new(),
        }
    }

    /// An id of the next item.
    fn next_id(&self, prefix: &str) -> String {
        format!("{prefix}_{}{}", self.random, self.items.len())
    }

    /// Tokens whose text was read. They belong to the open item, those before the first item to that one. Only messages list
    /// theirs.
    fn list(&mut self, entries: &[Entry], tokenizer: &Tokenizer) {
        let is_message = matches!(self.items.last(), Some(ResponseItem::Message { .. }));
        if self.items.is_empty() || (self.is_open && is_message) {
            self.logprobs
                .extend(token_logprobs(tokenizer, entries, false));
        }
    }

    fn open(&mut self, item: ResponseItem, emit: &mut dyn FnMut(Event<'_>)) {
        self.close(Status::Completed, emit);
        let output_index = self.items.len();
        emit(Event::ItemAdded {
            output_index,
            item: &item,
        });
        self.items.push(item);
        self.is_open = true;
        let (id, content, part) = match &mut self.items[output_index] {
            ResponseItem::Reasoning { id, content, .. } => {
                let text = String::new();
                (id, content, ResponsePart::ReasoningText { text })
            }
            ResponseItem::Message { id, content, .. } => {
                let part = ResponsePart::OutputText {
                    text: String::new(),
                    annotations: [],
                    logprobs: Vec::new(),
                };
                (id, content, part)
            }
            ResponseItem::FunctionCall { .. } => return self.logprobs.clear(),
        };
        emit(Event::PartAdded {
            item_id: id,
            output_index,
            content_index: CONTENT_INDEX,
            part: &part,
        });
        if matches!(part, ResponsePart::ReasoningText { .. }) {
            self.logprobs.clear();
        }
        content.push(part);
    }

    /// Moves the delta to the open item.
    fn flush(&mut self, emit: &mut dyn FnMut(Event<'_>)) {
        if !self.is_open || (self.delta.is_empty() && self.logprobs.is_empty()) {
            return;
        }
        let output_index = self.items.len() - 1;
        let content_index = CONTENT_INDEX;
        let added = std::mem::take(&mut self.delta);
        let listed = std::mem::take(&mut self.logprobs);
        let delta = &added;
        match &mut self.items[output_index] {
            ResponseItem::FunctionCall { id, arguments, .. } => {
                arguments.push_str(delta);
                emit(Event::ArgumentsDelta {
                    item_id: id,
                    output_index,
                    delta,
                });
            }
            ResponseItem::Reasoning { id, content, .. }
            | ResponseItem::Message { id, content, .. } => match content.first_mut() {
                Some(ResponsePart::ReasoningText { text }) => {
                    text.push_str(delta);
                    emit(Event::ReasoningDelta {
                        item_id: id,
                        output_index,
                        content_index,
                        delta,
                    });
                }
                Some(ResponsePart::OutputText { text, logprobs, .. }) => {
                    text.push_str(delta);
                    emit(Event::TextDelta {
                        item_id: id,
                        output_index,
                        content_index,
                        delta,
                        logprobs: &listed,
                    });
                    logprobs.extend(listed);
                }
                None => {}
            },
        }
    }

    /// Closes the open item, if there is one.
    fn close(&mut self, ended: Status, emit: &mut dyn FnMut(Event<'_>)) {
        self.flush(emit);
        if !std::mem::take(&mut self.is_open) {
            return;
        }
        let output_index = self.items.len() - 1;
        let item = &mut self.items[output_index];
        end(item, ended, self.has_encrypted);
        emit_content_done(item, output_index, emit);
        emit(Event::ItemDone { output_index, item });
    }

    /// Closes the items. A response that is complete says something, if only an empty text.
    fn finish(&mut self, reason: FinishReason, emit: &mut dyn FnMut(Event<'_>)) {
        let status = match reason {
            FinishReason::Stop => Status::Completed,
            FinishReason::Length => Status::Incomplete,
        };
        self.close(status, emit);
        let has_said = |item: &ResponseItem| !matches!(item, ResponseItem::Reasoning { .. });
        if status == Status::Completed && !self.items.iter().any(has_said) {
            let message = self.message();
            self.open(message, emit);
            self.close(status, emit);
        }
    }

    /// Ends the open item where a failure stopped it, without an event.
    pub(super) fn abandon(&mut self) {
        self.close(Status::Incomplete, &mut |_| {});
    }
}

/// Sets the members of an item that are known at its end.
fn end(item: &mut ResponseItem, ended: Status, has_encrypted: bool) {
    match item {
        ResponseItem::Reasoning {
            status,
            content,
            encrypted_content,
            ..
        } => {
            *status = ended;
            if let Some(ResponsePart::ReasoningText { text }) = content.first() {
                *encrypted_content = has_encrypted.then(|| format!("{ENCRYPTED_PREFIX}{text}"));
            }
        }
        ResponseItem::Message { status, .. } | ResponseItem::FunctionCall { status, .. } => {
            *status = ended;
        }
    }
}

/// Emits the events of the end of an item's content, or of its arguments.
fn emit_content_done(item: &ResponseItem, output_index: usize, emit: &mut dyn FnMut(Event<'_>)) {
    let (item_id, content) = match item {
        ResponseItem::FunctionCall {
            id,
            name,
            arguments,
            ..
        } => {
            return emit(Event::ArgumentsDone {
                item_id: id,
                output_index,
                name,
                arguments,
            });
        }
        ResponseItem::Reasoning { id, content, .. } | ResponseItem::Message { id, content, .. } => {
            (id, content)
        }
    };
    let Some(part) = content.first() else {
        return;
    };
    let content_index = CONTENT_INDEX;
    emit(match part {
        ResponsePart::ReasoningText { text } => Event::ReasoningDone {
            item_id,
            output_index,
            content_index,
            text,
        },
        ResponsePart::OutputText { text, logprobs, .. } => Event::TextDone {
            item_id,
            output_index,
            content_index,
            text,
            logprobs,
        },
    });
    emit(Event::PartDone {
        item_id,
        output_index,
        content_index,
        part,
    });
}
