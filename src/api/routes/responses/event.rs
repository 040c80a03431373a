//! The events of a streamed response (specification 20.4) and their frames.

use serde::Serialize;

use super::object::{ResponseItem, ResponseObject, ResponsePart};
use crate::api::error::ErrorObject;
use crate::api::http;
use crate::api::json::to_json;
use crate::api::routes::token_logprobs::ChatTokenLogprob;

/// Declares the events with the names that they have on the wire.
macro_rules! events {
    ($($(#[$meta:meta])* $name:literal $variant:ident { $($field:ident: $type:ty,)* })*) => {
        /// An event of a streamed response.
        #[derive(Serialize)]
        #[cfg_attr(test, derive(ts_rs::TS))]
        #[cfg_attr(test, ts(rename = "ResponseEventKind"))]
        #[serde(tag = "type")]
        pub(super) enum Event<'a> {
            $($(#[$meta])* #[serde(rename = $name)] $variant { $($field: $type,)* },)*
        }

        impl Event<'_> {
            fn name(&self) -> &'static str {
                match self {
                    $(Event::$variant { .. } => $name,)*
                }
            }
        }
    };
}

events! {
    /// The request is admitted.
    "response.created" Created { response: ResponseObject<'a>, }
    /// It is being answered.
    "response.in_progress" InProgress { response: ResponseObject<'a>, }
    /// An item begins.
    "response.output_item.added" ItemAdded { output_index: usize, item: &'a ResponseItem, }
    /// An item is over; `item` is all of it.
    "response.output_item.done" ItemDone { output_index: usize, item: &'a ResponseItem, }
    /// The content of an item begins.
    "response.content_part.added" PartAdded {
        item_id: &'a str, output_index: usize, content_index: usize, part: &'a ResponsePart,
    }
    /// The content of an item is over; `part` is all of it.
    "response.content_part.done" PartDone {
        item_id: &'a str, output_index: usize, content_index: usize, part: &'a ResponsePart,
    }
    /// Appended to the text of a message.
    "response.output_text.delta" TextDelta {
        item_id: &'a str, output_index: usize, content_index: usize, delta: &'a str,
        logprobs: &'a [ChatTokenLogprob],
    }
    /// The text of a message is over.
    "response.output_text.done" TextDone {
        item_id: &'a str, output_index: usize, content_index: usize, text: &'a str,
        logprobs: &'a [ChatTokenLogprob],
    }
    /// Appended to a reasoning.
    "response.reasoning_text.delta" ReasoningDelta {
        item_id: &'a str, output_index: usize, content_index: usize, delta: &'a str,
    }
    /// A reasoning is over.
    "response.reasoning_text.done" ReasoningDone {
        item_id: &'a str, output_index: usize, content_index: usize, text: &'a str,
    }
    /// Appended to the arguments of a call.
    "response.function_call_arguments.delta" ArgumentsDelta {
        item_id: &'a str, output_index: usize, delta: &'a str,
    }
    /// The arguments of a call are over.
    "response.function_call_arguments.done" ArgumentsDone {
        item_id: &'a str, output_index: usize, name: &'a str, arguments: &'a str,
    }
    /// The last event of a response that ended by itself.
    "response.completed" Completed { response: ResponseObject<'a>, }
    /// The last event of a response that ended with its tokens.
    "response.incomplete" Incomplete { response: ResponseObject<'a>, }
    /// The last event of a response that failed.
    "response.failed" Failed { response: ResponseObject<'a>, }
    /// The error, before `response.failed`. OpenAI's clients read the members beside `type`, others those of `error`.
    "error" Error {
        code: &'a str, message: &'a str, param: Option<&'a str>, error: ErrorObject<'a>,
    }
}

/// An event with its number, which counts the events of the response from 0.
#[derive(Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[cfg_attr(test, ts(rename = "ResponseEvent"))]
pub(super) struct Numbered<'a> {
    #[serde(flatten)]
    #[cfg_attr(test, ts(flatten))]
    event: Event<'a>,
    sequence_number: usize,
}

/// The frames of events, in their order.
pub(super) struct Frames {
    bytes: Vec<u8>,
    /// Events of the response so far, those of earlier frames included.
    pub events: usize,
}

impl Frames {
    /// Frames of a stream that has sent this number of events.
    pub(super) fn after(events: usize) -> Frames {
        Frames {
            bytes: Vec::new(),
            events,
        }
    }

    pub(super) fn push(&mut self, event: Event<'_>) {
        let name = event.name();
        let json = to_json(&Numbered {
            event,
            sequence_number: self.events,
        });
        self.bytes.extend(http::named_event(name, &json));
        self.events += 1;
    }

    /// Ends the stream.
    pub(super) fn end(&mut self) {
        self.bytes.extend(http::DONE);
    }

    /// The frames since the last call of this.
    pub(super) fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.bytes)
    }
}
