//! From the pieces of an answer to the blocks of a message, and to the events that tell of them (specification 22.3 and
//! 22.4). Whole and streamed messages both use it, so they cannot differ.

use serde_json::Value;

use super::object::{Block, Delta, Event, MessageEnd, StopReason};
use crate::api::run::{Finish, Piece, StopReason as Stop};
use crate::engine::event::FinishReason;
use crate::grammar::OutputPart;
use crate::text::Tokenizer;

/// The blocks of a message in the making.
pub(super) struct Output {
    pub blocks: Vec<Block>,
    /// Makes ids of calls that are the same when the request is run again.
    random: String,
    /// The last block is open.
    is_open: bool,
    /// The text that the open block gets next.
    delta: String,
    /// The arguments of the open call so far.
    arguments: String,
}

impl Output {
    /// `message_id` names the message.
    pub(super) fn new(message_id: &str) -> Output {
        let random = message_id.strip_prefix("msg_").unwrap_or(message_id);
        Output {
            blocks: Vec::new(),
            random: random.to_owned(),
            is_open: false,
            delta: String::new(),
            arguments: String::new(),
        }
    }

    /// Adds a piece; returns how the message ended, after the last one.
    pub(super) fn add(
        &mut self,
        piece: &Piece,
        tokenizer: &Tokenizer,
        emit: &mut dyn FnMut(Event<'_>),
    ) -> Option<MessageEnd> {
        for part in &piece.parts {
            self.add_part(part, emit);
        }
        self.flush(emit);
        let finish = piece.finish.as_ref()?;
        self.close(emit);
        Some(self.end(finish, tokenizer))
    }

    fn add_part(&mut self, part: &OutputPart, emit: &mut dyn FnMut(Event<'_>)) {
        let open = self.blocks.last().filter(|_| self.is_open);
        let text = match (part, open) {
            (OutputPart::Content(text), Some(Block::Text { .. }))
            | (OutputPart::Reasoning(text), Some(Block::Thinking { .. })) => text,
            (OutputPart::Content(text), _) => {
                let block = Block::Text {
                    text: String::new(),
                    citations: None,
                };
                self.open(block, emit);
                text
            }
            (OutputPart::Reasoning(text), _) => {
                let block = Block::Thinking {
                    thinking: String::new(),
                    signature: String::new(),
                };
                self.open(block, emit);
                text
            }
            (OutputPart::CallStart { name, .. }, _) => {
                let block = Block::ToolUse {
                    id: format!("toolu_{}{}", self.random, self.blocks.len()),
                    name: name.clone(),
                    input: Value::Object(Default::default()),
                };
                return self.open(block, emit);
            }
            (OutputPart::CallArguments { json, .. }, _) => json,
        };
        self.delta.push_str(text);
    }

    fn open(&mut self, block: Block, emit: &mut dyn FnMut(Event<'_>)) {
        self.close(emit);
        emit(Event::ContentBlockStart {
            index: self.blocks.len(),
            content_block: &block,
        });
        self.blocks.push(block);
        self.is_open = true;
    }

    /// Moves the delta to the open block.
    fn flush(&mut self, emit: &mut dyn FnMut(Event<'_>)) {
        if !self.is_open || self.delta.is_empty() {
            return;
        }
        let index = self.blocks.len() - 1;
        let added = std::mem::take(&mut self.delta);
        let delta = match &mut self.blocks[index] {
            Block::Text { text, .. } => {
                text.push_str(&added);
                Delta::Text { text: &added }
            }
            Block::Thinking { thinking, .. } => {
                thinking.push_str(&added);
                Delta::Thinking { thinking: &added }
            }
            Block::ToolUse { .. } => {
                self.arguments.push_str(&added);
                Delta::InputJson {
                    partial_json: &added,
                }
            }
        };
        emit(Event::ContentBlockDelta { index, delta });
    }

    /// Closes the open block, if there is one.
    fn close(&mut self, emit: &mut dyn FnMut(Event<'_>)) {
        self.flush(emit);
        if !std::mem::take(&mut self.is_open) {
            return;
        }
        let index = self.blocks.len() - 1;
        if let Block::ToolUse { input, .. } = &mut self.blocks[index] {
            *input = whole_members(&std::mem::take(&mut self.arguments));
        }
        emit(Event::ContentBlockStop { index });
    }

    fn end(&self, finish: &Finish, tokenizer: &Tokenizer) -> MessageEnd {
        let stop_sequence = match &finish.stop_reason {
            Some(Stop::Text(text)) => Some(text.clone()),
            Some(Stop::Id(id)) => {
                Some(String::from_utf8_lossy(tokenizer.token_bytes(*id)).into_owned())
            }
            None => None,
        };
        let is_call = |block: &Block| matches!(block, Block::ToolUse { .. });
        let stop_reason = match finish.reason {
            _ if stop_sequence.is_some() => StopReason::StopSequence,
            FinishReason::Length => StopReason::MaxTokens,
            FinishReason::Stop if self.blocks.iter().any(is_call) => StopReason::ToolUse,
            FinishReason::Stop => StopReason::EndTurn,
        };
        MessageEnd {
            stop_reason: Some(stop_reason),
            stop_sequence,
        }
    }
}

/// The value of a JSON text. One that was cut off loses what is not whole at its end: `{"a": 1, "b": [2, "x` is
/// `{"a": 1, "b": [2]}`.
fn whole_members(text: &str) -> Value {
    if let Ok(whole) = serde_json::from_str(text) {
        return whole;
    }
    // The characters that close the open objects and arrays.
    let mut closers: Vec<u8> = Vec::new();
    let mut is_value = false;
    let mut in_string = false;
    let mut is_escaped = false;
    // The text up to here, closed, is JSON.
    let mut whole = String::new();
    let closed = |end: usize, closers: &[u8]| {
        let closers = closers.iter().rev().map(|closer| char::from(*closer));
        text[..end].chars().chain(closers).collect()
    };
    for (at, byte) in text.bytes().enumerate() {
        if in_string {
            match byte {
                _ if is_escaped => is_escaped = false,
                b'\\' => is_escaped = true,
                b'"' => {
                    in_string = false;
                    if is_value {
                        whole = closed(at + 1, &closers);
                    }
                }
                _ => {}
            }
            continue;
        }
        match byte {
            b'"' => in_string = true,
            b'{' | b'[' => {
                closers.push(if byte == b'{' { b'}' } else { b']' });
                is_value = byte == b'[';
                whole = closed(at + 1, &closers);
            }
            b'}' | b']' => {
                closers.pop();
                is_value = closers.last() == Some(&b']');
                whole = closed(at + 1, &closers);
            }
            b':' => is_value = true,
            b',' => {
                whole = closed(at, &closers);
                is_value = closers.last() == Some(&b']');
            }
            _ => {}
        }
    }
    let empty = || Value::Object(Default::default());
    serde_json::from_str(&whole).unwrap_or_else(|_| empty())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_cut_off_text_loses_what_is_not_whole() {
        for (text, expected) in [
            (r#"{"a": 1, "b": [2, "x"#, json!({"a": 1, "b": [2]})),
            (r#"{"a": "x\""#, json!({})),
            (r#"{"a": "x\"", "b"#, json!({"a": "x\""})),
            (r#"{"a": "x","b":"#, json!({"a": "x"})),
            (r#"{"a": 12"#, json!({})),
            (r#"{"a": tru"#, json!({})),
            (r#"{"a": {"b": "c"}"#, json!({"a": {"b": "c"}})),
            (r#"{"a": [{"b": "c", "d"#, json!({"a": [{"b": "c"}]})),
            (r#"{"a": {"é": "ü"#, json!({"a": {}})),
            ("{", json!({})),
            ("", json!({})),
            ("nonsense", json!({})),
            (r#"{"a": 1}"#, json!({"a": 1})),
        ] {
            assert_eq!(whole_members(text), expected, "{text}");
        }
    }

    /// Whether `part` is what is left of `whole` after a cut.
    fn is_begun(part: &Value, whole: &Value) -> bool {
        match (part, whole) {
            (Value::Object(part), Value::Object(whole)) => {
                let mut members = whole.iter();
                part.iter().all(|(name, value)| {
                    members
                        .next()
                        .is_some_and(|(other, of_whole)| name == other && is_begun(value, of_whole))
                })
            }
            (Value::Array(part), Value::Array(whole)) => {
                part.len() <= whole.len()
                    && part
                        .iter()
                        .zip(whole)
                        .all(|(part, whole)| is_begun(part, whole))
            }
            (part, whole) => part == whole,
        }
    }

    proptest! {
        #[test]
        fn any_cut_is_read(
            names in prop::collection::vec("[a-c\"\\\\{é]{1,3}", 1..4),
            text in "[a-z\"\\\\\\[\\]{},:é]{0,6}",
            cut in any::<prop::sample::Index>(),
        ) {
            let inner: serde_json::Map<String, Value> =
                names.iter().map(|name| (name.clone(), json!([text, 1, {"k": null}]))).collect();
            let whole = json!({"first": text, "second": inner, "last": [[], 2.5]});
            let written = whole.to_string();
            let cuts: Vec<usize> = written.char_indices().map(|(at, _)| at).collect();
            let part = whole_members(&written[..*cut.get(&cuts)]);
            prop_assert!(part.is_object() && is_begun(&part, &whole), "{part} of {whole}");
        }
    }
}
