//! The two forms of log-probabilities in answers to `POST /completions` (specification 10.1).

use serde::{Serialize, Serializer};

use crate::api::run::{Entry, TopEntry};
use crate::api::switches::LogprobsShape;

/// Log-probabilities in the form that the request and the switch `logprobsShape` ask for.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(untagged)]
pub(super) enum ShapedLogprobs<'a> {
    Arrays(Logprobs<'a>),
    Content(LogprobsContent<'a>),
}

impl<'a> ShapedLogprobs<'a> {
    pub(super) fn new(entries: &'a [Entry], shape: LogprobsShape) -> ShapedLogprobs<'a> {
        match shape {
            LogprobsShape::Arrays => ShapedLogprobs::Arrays(Logprobs::new(entries)),
            LogprobsShape::Content => ShapedLogprobs::Content(LogprobsContent::new(entries)),
        }
    }
}

/// Log-probabilities: one object per token.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(super) struct LogprobsContent<'a> {
    content: Vec<ContentEntry<'a>>,
}

/// A token with its log-probability.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
struct ContentEntry<'a> {
    token: &'a str,
    /// Null for the first token of an echoed prompt.
    logprob: Option<f32>,
    /// The bytes of its text.
    bytes: &'a [u8],
    top_logprobs: Vec<ContentTop<'a>>,
}

/// One of the most likely tokens.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
struct ContentTop<'a> {
    token: &'a str,
    logprob: f32,
    bytes: &'a [u8],
}

impl<'a> LogprobsContent<'a> {
    pub(super) fn new(entries: &'a [Entry]) -> LogprobsContent<'a> {
        let top = |top: &'a TopEntry| ContentTop {
            token: &top.token,
            logprob: top.logprob,
            bytes: &top.bytes,
        };
        let entry = |entry: &'a Entry| ContentEntry {
            token: &entry.token,
            logprob: entry.logprob,
            bytes: &entry.bytes,
            top_logprobs: entry.top.iter().flatten().map(top).collect(),
        };
        LogprobsContent {
            content: entries.iter().map(entry).collect(),
        }
    }
}

/// Log-probabilities: four arrays of equal length, one entry per token.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(super) struct Logprobs<'a> {
    tokens: Vec<&'a str>,
    token_logprobs: Vec<Option<f32>>,
    #[cfg_attr(test, ts(type = "(Record<string, number> | null)[]"))]
    top_logprobs: Vec<Option<Top<'a>>>,
    /// Code points before each token.
    text_offset: Vec<usize>,
}

/// A map from names to log-probabilities; clients rely on its order, best first.
#[derive(Debug)]
struct Top<'a>(&'a [TopEntry]);

impl Serialize for Top<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|top| (&top.token, top.logprob)))
    }
}

impl<'a> Logprobs<'a> {
    fn new(entries: &'a [Entry]) -> Logprobs<'a> {
        let top = |entry: &'a Entry| entry.top.as_deref().map(Top);
        Logprobs {
            tokens: entries.iter().map(|entry| &*entry.token).collect(),
            token_logprobs: entries.iter().map(|entry| entry.logprob).collect(),
            top_logprobs: entries.iter().map(top).collect(),
            text_offset: entries.iter().map(|entry| entry.text_offset).collect(),
        }
    }
}
