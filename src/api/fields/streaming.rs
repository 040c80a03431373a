//! `stream` and `stream_options` (specification 4.4). Framing of the stream is in `http`.

use serde_json::Value;

use super::declare::{fields, wire_types};
use super::reader::{Fields, invalid_type};
use super::unknown::UnknownFieldPolicy;
use crate::api::error::fault;
use crate::api::switches::{AlwaysIncludeUsage, Switches, UsagePlace};
use crate::{RequestFault, Result};

fields! {
    StreamingFields {
        /// Send the answer in chunks as server-sent events.
        stream: Option<bool>,
        /// Only with `stream`.
        stream_options: Option<StreamOptions>,
    }
}

wire_types! {
    /// What a stream reports besides the text.
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

/// How the answer is delivered.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::api) struct Streaming {
    pub stream: bool,
    /// Report usage at the end of the stream.
    pub include_usage: bool,
    /// Report it in the last chunk with a choice instead of a chunk of its own.
    pub usage_in_last_choice: bool,
    /// Running totals in every chunk; only with `include_usage`.
    pub continuous_usage: bool,
}

pub(in crate::api) fn read(
    fields: &Fields,
    switches: &Switches,
    unknown: &mut UnknownFieldPolicy<'_>,
) -> Result<Streaming> {
    let mut streaming = Streaming {
        stream: fields.boolean("stream")?.unwrap_or(false),
        ..Streaming::default()
    };
    read_options(fields, &mut streaming, unknown)?;
    match switches.always_include_usage {
        AlwaysIncludeUsage::Always(always) => streaming.include_usage |= always,
        AlwaysIncludeUsage::In(UsagePlace::LastChoice) => {
            streaming.include_usage = true;
            streaming.usage_in_last_choice = true;
        }
    }
    Ok(streaming)
}

fn read_options(
    fields: &Fields,
    streaming: &mut Streaming,
    unknown: &mut UnknownFieldPolicy<'_>,
) -> Result<()> {
    let Some(members) = fields.object("stream_options")? else {
        return Ok(());
    };
    for (name, value) in members {
        let mut ignored = false;
        let target = match name.as_str() {
            "include_usage" => &mut streaming.include_usage,
            "continuous_usage_stats" => &mut streaming.continuous_usage,
            "include_obfuscation" => &mut ignored,
            other => {
                unknown.report(&format!("stream_options.{other}"))?;
                continue;
            }
        };
        *target = match value {
            Value::Null => false,
            Value::Bool(boolean) => *boolean,
            other => {
                let expected = format!("an object whose {name} is a boolean");
                return Err(invalid_type("stream_options", &expected, other));
            }
        };
    }
    if !streaming.stream {
        return Err(fault(
            RequestFault::InvalidValue,
            "stream_options",
            "stream_options is only allowed with stream: true",
        ));
    }
    Ok(())
}
