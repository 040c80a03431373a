//! `stream` and `stream_options` (specification 4.4). Framing of the stream is in `http`.

use serde_json::Value;

use super::declare::{Field, Or, fields, wire_types};
use super::kinds::{Flag, Shape, flag, shape};
use super::reader::{Fields, invalid_type};
use super::unknown::UnknownFieldPolicy;
use crate::api::error::fault;
use crate::api::switches::{AlwaysIncludeUsage, Switches, UsagePlace};
use crate::{RequestFault, Result};

fields! {
    StreamingFields uses [StreamOptions] {
        /// Send the answer in chunks as server-sent events.
        stream: Or<Flag> = flag().or(false),
        /// The reports of a stream besides the text: members `include_usage`, `continuous_usage_stats` and
        /// `include_obfuscation` (bool; the last has no effect).
        stream_options: Field<Shape> = shape("object", "StreamOptions").range("only with `stream: true`"),
    }
}

wire_types! {
    /// The reports of a stream besides the text.
    #[ts(optional_fields = nullable)]
    pub(in crate::api) struct StreamOptions {
        /// End the stream with a chunk that holds the token counts.
        include_usage: Option<bool>,
        /// Whether every chunk has running token counts.
        continuous_usage_stats: Option<bool>,
        /// Not used.
        include_obfuscation: Option<bool>,
    }
}

/// The delivery of the answer.
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
        stream: StreamingFields::stream.read(fields, switches)?,
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
    let field = StreamingFields::stream_options.name;
    let Some(members) = fields.object(field)? else {
        return Ok(());
    };
    for (name, value) in members {
        let mut ignored = false;
        let target = match name.as_str() {
            "include_usage" => &mut streaming.include_usage,
            "continuous_usage_stats" => &mut streaming.continuous_usage,
            "include_obfuscation" => &mut ignored,
            other => {
                unknown.report(&format!("{field}.{other}"))?;
                continue;
            }
        };
        *target = match value {
            Value::Null => false,
            Value::Bool(boolean) => *boolean,
            other => {
                let expected = format!("an object whose {name} is a boolean");
                return Err(invalid_type(field, &expected, other));
            }
        };
    }
    if !streaming.stream {
        return Err(fault(
            RequestFault::InvalidValue,
            field,
            "stream_options is only allowed with stream: true",
        ));
    }
    Ok(())
}
