//! Reads switches from JSON: a profile, and the switches that override it.

use serde_json::{Map, Value};

use super::values::Switches;
use crate::{Error, Result};

impl Switches {
    /// Reads a JSON object of switches; its member `profile` names the preset that the other
    /// members override.
    ///
    /// # Errors
    /// [`Error::Internal`] naming the switch that is unknown or has an invalid value. Only the page's
    /// configuration can cause it, never a request.
    pub fn from_json(json: &str) -> Result<Switches> {
        let given = serde_json::from_str(json);
        Switches::from_value(given.map_err(|error| wrong(error.to_string()))?)
    }

    /// Same as [`from_json`](Self::from_json), from a JSON value.
    ///
    /// # Errors
    /// Same as [`from_json`](Self::from_json).
    pub fn from_value(given: Value) -> Result<Switches> {
        let given = serde_json::from_value::<Map<String, Value>>(given);
        let mut given = given.map_err(|error| wrong(error.to_string()))?;
        let preset = match given.remove("profile") {
            None | Some(Value::Null) => Switches::default(),
            Some(Value::String(name)) => {
                Switches::profile(&name).ok_or_else(|| wrong(format!("no profile \"{name}\"")))?
            }
            Some(other) => return Err(wrong(format!("profile must be a string, not {other}"))),
        };
        let Ok(Value::Object(mut merged)) = serde_json::to_value(preset) else {
            return Err(wrong("the preset has no JSON form".to_owned()));
        };
        merged.extend(given.into_iter().filter(|(_, value)| !value.is_null()));
        let switches: Switches = serde_json::from_value(Value::Object(merged))
            .map_err(|error| wrong(error.to_string()))?;
        if switches.api_key.as_deref() == Some("") {
            return Err(wrong("apiKey must not be empty".to_owned()));
        }
        if ![400, 422].contains(&switches.invalid_request_status) {
            let status = switches.invalid_request_status;
            return Err(wrong(format!(
                "invalidRequestStatus must be 400 or 422, not {status}"
            )));
        }
        if let Some(url) = switches
            .schema_url
            .as_deref()
            .filter(|url| !is_absolute(url))
        {
            return Err(wrong(format!(
                "schemaUrl must be an absolute URL, not {url}"
            )));
        }
        Ok(switches)
    }
}

fn wrong(reason: String) -> Error {
    Error::Internal(format!("invalid switches: {reason}"))
}

/// Whether `url` begins with a scheme (RFC 3986) and continues after it.
fn is_absolute(url: &str) -> bool {
    let is_legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
    url.split_once(':').is_some_and(|(scheme, rest)| {
        scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme.chars().all(is_legal)
            && !rest.is_empty()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::switches::{
        AlwaysIncludeUsage, ContextWord, DefaultMaxTokens, SuffixMode, TextOffsetBase,
        UnknownFields,
    };
    use crate::engine::generation::LogprobsMode;

    #[test]
    fn single_switches_override_the_profile() {
        let switches = Switches::from_json(
            r#"{"profile":"fireworks","alwaysIncludeUsage":false,"cors":{"allowOrigin":"x"},
                "defaultMaxTokens":"context","basePaths":["/api"],"apiKey":null,
                "suffixMode":"fim","logprobsMode":"processed","textOffsetBase":"prompt",
                "schemaUrl":"https://a.example/x"}"#,
        )
        .unwrap();
        assert_eq!(switches.suffix_mode, SuffixMode::Fim);
        assert_eq!(switches.logprobs_mode, LogprobsMode::Processed);
        assert_eq!(switches.text_offset_base, TextOffsetBase::Prompt);
        assert_eq!(switches.schema_url.as_deref(), Some("https://a.example/x"));
        assert!(switches.stop_text_included);
        let never = AlwaysIncludeUsage::Always(false);
        assert_eq!(switches.always_include_usage, never);
        assert_eq!(switches.unknown_fields, UnknownFields::Error);
        assert_eq!(
            switches.default_max_tokens,
            DefaultMaxTokens::Context(ContextWord::Context)
        );
        assert_eq!(switches.base_paths, ["/api"]);
        assert_eq!(switches.cors.allow_origin, "x");
    }

    #[test]
    fn wrong_switches_are_named() {
        for (json, named) in [
            (r#"{"stopText":true}"#, "stopText"),
            (r#"{"profile":"acme"}"#, "acme"),
            (r#"{"profile":1}"#, "profile"),
            (r#"{"unknownFields":"warn"}"#, "warn"),
            (r#"{"apiKey":""}"#, "apiKey"),
            (r#"{"schemaUrl":"/completion.json"}"#, "schemaUrl"),
            (r#"{"suffixMode":"prepend"}"#, "prepend"),
            (r#"{"logprobsMode":"cooked"}"#, "cooked"),
            (r#"{"textOffsetBase":"start"}"#, "start"),
            (r#"{"alwaysIncludeUsage":"first"}"#, "AlwaysIncludeUsage"),
            (r#"{"invalidRequestStatus":500}"#, "invalidRequestStatus"),
            (r#"{"samplingBounds":"none"}"#, "none"),
            ("[]", "invalid switches"),
        ] {
            let error = Switches::from_json(json).unwrap_err().to_string();
            assert!(error.contains(named), "{json}: {error}");
        }
    }
}
