//! `thinking` (specification 18.12 and 22.1): whether the model thinks before it answers, and how long. OpenRouter's form is in `reasoning`.

use super::declare::wire_types;
use super::reader::{Fields, kind, members, within};
use crate::Result;

/// Amounts of thinking, by the words that chat templates know.
pub(in crate::api) const EFFORTS: &[&str] =
    &["none", "minimal", "low", "medium", "high", "xhigh", "max"];

wire_types! {
    /// Whether the model thinks before it answers.
    #[ts(tag = "type", rename_all = "snake_case")]
    pub(in crate::api) enum ThinkingOptions {
        #[ts(optional_fields = nullable)]
        Enabled {
            /// The maximum number of tokens of thinking.
            budget_tokens: Option<usize>,
        },
        Disabled,
        Adaptive,
        BetweenTools,
    }
}

/// The value of the field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::api) struct Thinking {
    /// Whether the model is told to think; `None`: what its template does by itself.
    pub is_wanted: Option<bool>,
    /// The most tokens of thinking.
    pub budget: Option<ThinkingBudget>,
}

/// The most tokens of thinking that a message may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::api) struct ThinkingBudget {
    pub tokens: usize,
    /// The field that sets it, for errors.
    pub field: &'static str,
}

/// Reads the field `name`; `None` if it is absent.
pub(in crate::api) fn read(fields: &Fields, name: &'static str) -> Result<Option<Thinking>> {
    let Some(thinking) = members(fields, name)? else {
        return Ok(None);
    };
    let tokens = within(name, "budget_tokens", thinking.count("budget_tokens"))?;
    let kinds = ["enabled", "disabled", "adaptive", "between_tools"];
    Ok(Some(Thinking {
        is_wanted: match kind(name, &thinking, &kinds)? {
            "enabled" => Some(true),
            "disabled" => Some(false),
            _ => None,
        },
        budget: tokens.map(|tokens| ThinkingBudget {
            tokens,
            field: name,
        }),
    }))
}
