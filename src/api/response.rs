//! The wire form of answers (API.md sections 10.1, 10.3 and 10.6). Knows nothing of how they
//! come about.

use serde::{Serialize, Serializer};

use crate::engine::event::FinishReason;

/// What a whole answer and each of its chunks have in common.
#[derive(Debug, Clone)]
pub(super) struct Head {
    pub schema_url: Option<String>,
    pub id: String,
    /// Unix seconds of the admission.
    pub created_s: u64,
    /// Canonical model id.
    pub model: String,
    pub system_fingerprint: String,
}

/// `choices[i]`
#[derive(Debug, Serialize)]
pub(super) struct Choice<'a> {
    pub index: u32,
    pub text: &'a str,
    /// Always null so far; the key is part of the shape.
    pub logprobs: (),
    #[serde(serialize_with = "finish_reason")]
    pub finish_reason: Option<FinishReason>,
}

/// `usage`
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub(super) struct Usage {
    pub prompt_tokens: usize,
    pub completion_tokens: usize,
    pub total_tokens: usize,
}

impl Usage {
    pub(super) fn new(prompt_tokens: usize, completion_tokens: usize) -> Usage {
        Usage {
            prompt_tokens,
            completion_tokens,
            total_tokens: prompt_tokens + completion_tokens,
        }
    }
}

/// The member `usage` of a body: `None` leaves it out, `Some(None)` is null.
pub(super) type UsageMember = Option<Option<Usage>>;

/// A non-streaming answer or one chunk of a stream.
pub(super) fn completion(head: &Head, choices: &[Choice<'_>], usage: UsageMember) -> Vec<u8> {
    #[derive(Serialize)]
    struct Object<'a> {
        #[serde(rename = "$schema", skip_serializing_if = "Option::is_none")]
        schema: Option<&'a str>,
        id: &'a str,
        object: &'a str,
        created: u64,
        model: &'a str,
        system_fingerprint: &'a str,
        choices: &'a [Choice<'a>],
        #[serde(skip_serializing_if = "Option::is_none")]
        usage: UsageMember,
    }
    to_json(&Object {
        schema: head.schema_url.as_deref(),
        id: &head.id,
        object: "text_completion",
        created: head.created_s,
        model: &head.model,
        system_fingerprint: &head.system_fingerprint,
        choices,
        usage,
    })
}

/// JSON in one line.
pub(super) fn to_json<T: Serialize>(value: &T) -> Vec<u8> {
    // Only non-string map keys or a failing `Serialize` could fail here, and the wire types have
    // neither.
    serde_json::to_vec(value).unwrap_or_default()
}

// serde's `serialize_with` dictates the signature.
#[allow(clippy::ref_option)]
fn finish_reason<S: Serializer>(
    reason: &Option<FinishReason>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match reason {
        None => serializer.serialize_none(),
        Some(FinishReason::Stop) => serializer.serialize_str("stop"),
        Some(FinishReason::Length) => serializer.serialize_str("length"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(schema_url: Option<&str>) -> Head {
        Head {
            schema_url: schema_url.map(str::to_owned),
            id: "cmpl-1".into(),
            created_s: 7,
            model: "m".into(),
            system_fingerprint: "fp_0".into(),
        }
    }

    fn text(body: Vec<u8>) -> String {
        String::from_utf8(body).unwrap()
    }

    #[test]
    fn keys_and_their_order() {
        let choice = Choice {
            index: 0,
            text: "a\n",
            logprobs: (),
            finish_reason: Some(FinishReason::Length),
        };
        let usage = Some(Some(Usage::new(2, 3)));
        assert_eq!(
            text(completion(&head(None), &[choice], usage)),
            r#"{"id":"cmpl-1","object":"text_completion","created":7,"model":"m","system_fingerprint":"fp_0","choices":[{"index":0,"text":"a\n","logprobs":null,"finish_reason":"length"}],"usage":{"prompt_tokens":2,"completion_tokens":3,"total_tokens":5}}"#
        );
    }

    #[test]
    fn usage_is_absent_null_or_there_and_the_schema_comes_first() {
        let absent = text(completion(&head(None), &[], None));
        assert!(!absent.contains("usage"));
        let null = text(completion(&head(None), &[], Some(None)));
        assert!(null.ends_with(r#""choices":[],"usage":null}"#));
        let schema = text(completion(&head(Some("https://s.example")), &[], None));
        assert!(schema.starts_with(r#"{"$schema":"https://s.example","id""#));
    }
}
