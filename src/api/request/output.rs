//! What comes back and how (specification 4.3, 4.4 and 8): streaming, usage, echo, number of
//! choices, logprobs. Knows nothing of framing.

use super::fields::{Fields, fields, invalid_type, out_of_range, wire_types};
use super::report_unknown;
use crate::api::error::fault;
use crate::api::switches::Switches;
use crate::engine::generation::LogprobsMode;
use crate::{RequestFault, Result};

fields! {
    OutputFields {
        /// Send the completion in chunks as server-sent events.
        stream: Option<bool>,
        /// Only with `stream`.
        stream_options: Option<StreamOptions>,
        /// Put the prompt before the completion.
        echo: Option<bool>,
        /// Choices returned per prompt.
        n: Option<u32>,
        /// Candidates generated per prompt; the `n` best are returned.
        best_of: Option<u32>,
        /// How many of the most likely tokens are listed per position.
        logprobs: Option<u32>,
        /// Which distribution `logprobs` describes.
        #[ts(optional, type = "\"raw\" | \"processed\" | null")]
        logprobs_mode: Option<LogprobsMode>,
        /// Name tokens by their ids in `logprobs`, and return `token_ids`.
        return_tokens_as_token_ids: Option<bool>,
    }
}

wire_types! {
    /// What a stream reports besides the completion.
    #[ts(optional_fields = nullable)]
    pub(in crate::api) struct StreamOptions {
        /// End the stream with a chunk that holds the token counts.
        include_usage: Option<bool>,
        /// Put running token counts into every chunk.
        continuous_usage_stats: Option<bool>,
        /// Not used.
        include_obfuscation: Option<bool>,
    }
}

/// The fields of this group.
#[derive(Debug, Clone)]
pub(in crate::api) struct Output {
    pub stream: bool,
    /// Close the stream with a usage chunk.
    pub include_usage: bool,
    /// Running totals in every chunk; only with `include_usage`.
    pub continuous_usage: bool,
    /// Put the prompt's text before the completion.
    pub echo: bool,
    /// Choices returned per prompt.
    pub n: usize,
    /// Candidates generated per prompt, at least `n`.
    pub best_of: usize,
    /// Best tokens listed per token; `None`: no log-probabilities at all.
    pub logprobs: Option<usize>,
    pub logprobs_mode: LogprobsMode,
    /// `return_tokens_as_token_ids`.
    pub tokens_as_ids: bool,
}

pub(super) fn read(
    fields: &Fields,
    switches: &Switches,
    unknown_field: &mut impl FnMut(&str),
) -> Result<Output> {
    let stream = fields.boolean("stream")?.unwrap_or(false);
    let options = stream_options(fields, switches, stream, unknown_field)?;
    let (n, best_of) = candidates(fields, switches, stream)?;
    let logprobs = fields.integer("logprobs", 0..=switches.max_logprobs.into())?;
    let logprobs_mode = fields.word("logprobs_mode", &["raw", "processed"])?;
    Ok(Output {
        stream,
        include_usage: options.include_usage || switches.always_include_usage,
        continuous_usage: options.continuous_usage,
        echo: fields.boolean("echo")?.unwrap_or(false),
        n,
        best_of,
        logprobs: logprobs.map(|best| best as usize),
        logprobs_mode: match logprobs_mode {
            None => switches.logprobs_mode,
            Some("raw") => LogprobsMode::Raw,
            Some(_) => LogprobsMode::Processed,
        },
        tokens_as_ids: fields
            .boolean("return_tokens_as_token_ids")?
            .unwrap_or(false),
    })
}

#[derive(Default)]
struct Usage {
    include_usage: bool,
    continuous_usage: bool,
}

fn stream_options(
    fields: &Fields,
    switches: &Switches,
    stream: bool,
    unknown_field: &mut impl FnMut(&str),
) -> Result<Usage> {
    let mut options = Usage::default();
    let Some(members) = fields.object("stream_options")? else {
        return Ok(options);
    };
    for (name, value) in members {
        let mut ignored = false;
        let target = match name.as_str() {
            "include_usage" => &mut options.include_usage,
            "continuous_usage_stats" => &mut options.continuous_usage,
            "include_obfuscation" => &mut ignored,
            other => {
                report_unknown(&format!("stream_options.{other}"), switches, unknown_field)?;
                continue;
            }
        };
        *target = match value {
            serde_json::Value::Null => false,
            serde_json::Value::Bool(boolean) => *boolean,
            other => {
                let expected = format!("an object whose {name} is a boolean");
                return Err(invalid_type("stream_options", &expected, other));
            }
        };
    }
    if !stream {
        return Err(fault(
            RequestFault::InvalidValue,
            "stream_options",
            "stream_options is only allowed with stream: true",
        ));
    }
    Ok(options)
}

/// Reads `n` and `best_of`.
fn candidates(fields: &Fields, switches: &Switches, stream: bool) -> Result<(usize, usize)> {
    let n = fields.integer("n", 1..=switches.max_n.into())?.unwrap_or(1);
    // The limit of best_of is not one of n.
    let best_of = fields.integer("best_of", 0..=switches.max_best_of.into())?;
    let best_of = best_of.unwrap_or(n);
    if best_of < n {
        let bounds = format!("at least n = {n}");
        return Err(out_of_range("best_of", &bounds, best_of));
    }
    if stream && best_of > n {
        return Err(fault(
            RequestFault::ConflictingParameters,
            "best_of",
            format!("best_of {best_of} cannot be streamed: it is greater than n = {n}"),
        ));
    }
    // Both are bounded by switches of 32 bits.
    Ok((n as usize, best_of as usize))
}
