//! A compacted conversation (specification 20.6): the text of its item, and the messages that ask for a summary and tell it.
//! The summary itself is written by the model in the route.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::api::json::to_json;

/// The last message of the prompt that the model answers with a summary.
const REQUEST: &str = "Write a summary of our conversation so far. It replaces the conversation: later, only the messages of the \
user and the summary are known. Keep names, numbers, dates, code, decisions, the results of tools, what you have answered, and \
what is still to do. Write nothing but the summary, in the language of the conversation and in at most 400 words.";

/// The lines around a summary in a prompt.
const BEFORE: &str = "[Summary of our conversation so far]";
const AFTER: &str = "[End of the summary]";

/// The value of the member `format`, which tells this endpoint's items from those of others.
const FORMAT: &str = "inpage-compaction";
const VERSION: u64 = 1;

/// The content of an item. Its JSON in base64 is `encrypted_content`. Nothing in it is secret: the page that sends the
/// conversation sees all of it.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Content {
    format: String,
    version: u64,
    summary: String,
    /// [`checksum`] of the summary.
    checksum: String,
}

/// The text `encrypted_content` of a summary.
pub(in crate::api) fn encode(summary: &str) -> String {
    STANDARD.encode(to_json(&Content {
        format: FORMAT.to_owned(),
        version: VERSION,
        summary: summary.to_owned(),
        checksum: checksum(summary),
    }))
}

/// The summary of a text `encrypted_content`. The error says what is wrong with it.
pub(super) fn decode(text: &str) -> Result<String, String> {
    let foreign = || "its encrypted_content is damaged or not of this endpoint".to_owned();
    let json = STANDARD.decode(text).map_err(|_| foreign())?;
    let members: Map<String, Value> = serde_json::from_slice(&json).map_err(|_| foreign())?;
    if members.get("format").and_then(Value::as_str) != Some(FORMAT) {
        return Err(foreign());
    }
    if members.get("version").and_then(Value::as_u64) != Some(VERSION) {
        return Err(format!(
            "the version of its encrypted_content is not {VERSION}: compact the conversation again"
        ));
    }
    let content: Content = serde_json::from_value(Value::Object(members)).map_err(|_| foreign())?;
    match content.checksum == checksum(&content.summary) {
        true => Ok(content.summary),
        false => Err(foreign()),
    }
}

/// FNV-1a of the bytes, as 16 hex digits: it finds damage, not malice.
fn checksum(text: &str) -> String {
    let mix = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    format!("{:016x}", text.bytes().fold(0xcbf2_9ce4_8422_2325, mix))
}

/// Appends the request for a summary. It joins a last message of the user, because many templates demand that roles alternate.
pub(in crate::api) fn ask(messages: &mut Vec<Value>) {
    match messages.last_mut().filter(|last| last["role"] == "user") {
        Some(last) => last["content"] = joined(last["content"].take(), REQUEST.into()),
        None => messages.push(json!({"role": "user", "content": REQUEST})),
    }
}

/// Appends a summary as a message of the user. It joins the user's messages in front of it.
pub(super) fn push_summary(messages: &mut Vec<Value>, summary: &str) {
    let mut content = Value::String(format!("{BEFORE}\n{summary}\n{AFTER}"));
    while let Some(mut message) = messages.pop_if(|last| last["role"] == "user") {
        content = joined(message["content"].take(), content);
    }
    messages.push(json!({"role": "user", "content": content}));
}

/// Two contents of messages as one: strings with an empty line between them, or a list of parts if one of them is a list.
pub(super) fn joined(first: Value, second: Value) -> Value {
    match (first, second) {
        (Value::String(first), Value::String(second)) => format!("{first}\n\n{second}").into(),
        (first, second) => {
            let mut parts = parts(first);
            parts.append(&mut self::parts(second));
            parts.into()
        }
    }
}

fn parts(content: Value) -> Vec<Value> {
    match content {
        Value::Array(parts) => parts,
        text => vec![json!({"type": "text", "text": text})],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_is_read_as_it_was_written() {
        for summary in ["a", "", "\"é\"\n\u{0}\u{1f600}", &"x".repeat(1 << 16)] {
            assert_eq!(decode(&encode(summary)).as_deref(), Ok(summary));
        }
        // The form is documented.
        let json = STANDARD.decode(encode("ab")).unwrap();
        let expected = r#"{"format":"inpage-compaction","version":1,"summary":"ab","checksum":"089c4407b545986a"}"#;
        assert_eq!(std::str::from_utf8(&json), Ok(expected));
    }

    #[test]
    fn what_is_damaged_or_foreign_is_refused() {
        let good = encode("the sum of it");
        for at in 0..good.len() {
            let mut damaged = good.clone().into_bytes();
            damaged[at] = if damaged[at] == b'A' { b'B' } else { b'A' };
            let damaged = String::from_utf8(damaged).unwrap();
            assert!(decode(&damaged).is_err(), "{at}");
            assert!(decode(&good[..at]).is_err(), "{at}");
        }
        for foreign in ["", "gAAAAABpM0Yj", "inpage:ab", "é", &STANDARD.encode("{}")] {
            let reason = decode(foreign).unwrap_err();
            assert!(reason.contains("not of this endpoint"), "{reason}");
        }
        let later = json!({"format": FORMAT, "version": 2, "summaries": []});
        let reason = decode(&STANDARD.encode(later.to_string())).unwrap_err();
        assert!(reason.contains("version"), "{reason}");
    }

    fn user(content: &Value) -> Value {
        json!({"role": "user", "content": content})
    }

    #[test]
    fn a_summary_joins_the_messages_in_front_of_it() {
        let text = json!("[Summary of our conversation so far]\ns\n[End of the summary]");
        let mut messages = Vec::new();
        push_summary(&mut messages, "s");
        assert_eq!(messages, [user(&text)]);
        let system = json!({"role": "system", "content": "i"});
        let mut messages = vec![system.clone(), user(&json!("a")), user(&json!("b"))];
        push_summary(&mut messages, "s");
        let all = format!("a\n\nb\n\n{}", text.as_str().unwrap());
        assert_eq!(messages, [system, user(&all.into())]);
        let image = json!({"type": "image"});
        let mut messages = vec![user(&json!([image])), user(&json!("b"))];
        push_summary(&mut messages, "s");
        let [message] = &messages[..] else {
            panic!("{messages:?}");
        };
        assert_eq!(message["content"][0], image);
        let rest = format!("b\n\n{}", text.as_str().unwrap());
        assert_eq!(message["content"][1], json!({"type": "text", "text": rest}));
    }

    #[test]
    fn a_request_for_a_summary_keeps_roles_alternating() {
        let mut messages = vec![user(&json!("a"))];
        ask(&mut messages);
        assert_eq!(messages, [user(&format!("a\n\n{REQUEST}").into())]);
        messages.push(json!({"role": "assistant", "content": "b"}));
        ask(&mut messages);
        assert_eq!(messages[2], user(&json!(REQUEST)));
    }
}
