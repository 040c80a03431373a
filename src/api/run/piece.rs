//! A piece of a candidate's text. A stream sends pieces as they are, a whole answer appends them.

use super::logprobs::Entry;
use super::prompt_listing::PromptListing;
use crate::api::progress::{Delivered, Digest};
use crate::engine::event::FinishReason;
use crate::grammar::{OutputPart, ToolCall};

/// Text of a candidate that can no longer change, and the tokens that this completes.
#[derive(Debug, Default, Clone, PartialEq)]
pub(in crate::api) struct Piece {
    pub text: String,
    /// The tokens whose text is final, if log-probabilities are requested.
    pub entries: Vec<Entry>,
    /// The generated ones among them, if ids are requested.
    pub token_ids: Vec<u32>,
    /// The listing of the prompt; in the first piece, if requested.
    pub prompt: Option<PromptListing>,
    /// Tokens of the candidate generated so far, including those of earlier pieces.
    pub completion_tokens: usize,
    /// The number of these tokens that are reasoning.
    pub reasoning_tokens: usize,
    /// The number of these tokens that are in the prediction.
    pub predicted_tokens: usize,
    /// Digest of the ids of these tokens.
    pub digest: Digest,
    /// The parts of a message in the text, if it is read as a message.
    pub parts: Vec<OutputPart>,
    /// The number of `entries` that come before each part. It does not depend on how the text is divided into pieces.
    pub part_places: Vec<usize>,
    /// Whether an earlier run delivered it.
    pub was_delivered: bool,
    /// The end of the candidate, in its last piece.
    pub finish: Option<Finish>,
}

/// The end of a candidate.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::api) struct Finish {
    pub reason: FinishReason,
    pub stop_reason: Option<StopReason>,
    pub tool_call: Option<ToolCall>,
    /// Whether the message contains calls.
    pub has_calls: bool,
    /// Mean raw log-probability of its tokens; `None` if there are no tokens or no scores.
    pub mean_logprob: Option<f64>,
    /// The prompt and the generated tokens, if requested.
    pub raw: Option<Box<RawOutput>>,
}

/// The prompt of the model and the tokens that it generated.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::api) struct RawOutput {
    pub prompt: String,
    pub prompt_ids: Vec<u32>,
    /// The generated text, special tokens included.
    pub completion: String,
    pub completion_ids: Vec<u32>,
    /// The tokens of the completion, if log-probabilities are requested.
    pub entries: Option<Vec<Entry>>,
}

/// The stop of the request that ended a candidate.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(untagged)]
pub(in crate::api) enum StopReason {
    /// A stop string or regular expression.
    Text(String),
    /// The special token whose text is a stop string.
    Id(u32),
}

impl Piece {
    /// The part of the candidate that is delivered once this piece is.
    pub(super) fn delivered(&self) -> Delivered {
        Delivered {
            tokens: self.completion_tokens,
            reasoning_tokens: self.reasoning_tokens,
            predicted_tokens: self.predicted_tokens,
            digest: self.digest,
            is_finished: self.finish.is_some(),
        }
    }

    /// Appends the next piece.
    pub(in crate::api) fn append(&mut self, next: Piece) {
        self.text.push_str(&next.text);
        let places = next.part_places.iter();
        self.part_places
            .extend(places.map(|place| self.entries.len() + place));
        self.entries.extend(next.entries);
        self.token_ids.extend(next.token_ids);
        self.parts.extend(next.parts);
        if next.prompt.is_some() {
            self.prompt = next.prompt;
        }
        self.completion_tokens = next.completion_tokens;
        self.reasoning_tokens = next.reasoning_tokens;
        self.predicted_tokens = next.predicted_tokens;
        self.digest = next.digest;
        self.finish = next.finish;
    }
}
