//! The table of switches in `docs/api.md`: each member of [`Switches`] with its default and its documentation. Tests alone
//! generate it.

use serde_json::Value;
use ts_rs::{Config, TS};

use super::typescript::profile_words;
use super::values::Switches;

/// The rows, by the declarations of [`Switches`] in their order.
pub(in crate::api) fn table() -> String {
    let defaults = serde_json::to_value(Switches::default()).expect("switches have a JSON form");
    let mut rows = vec![
        "| switch | default | meaning |".to_owned(),
        "|---|---|---|".to_owned(),
        format!(
            "| `profile` | `\"default\"` | The vendor whose values the other switches have: {}. |",
            profile_words()
        ),
    ];
    let declaration = Switches::decl(&Config::new());
    for member in declaration.split("/**").skip(1) {
        let (docs, member) = member.split_once("*/").expect("an end of the comment");
        let (name, _) = member.trim_start().split_once(':').expect("a member");
        let lines = docs
            .lines()
            .map(|line| line.trim().trim_start_matches("* "));
        let lines: Vec<&str> = lines.filter(|line| !line.is_empty()).collect();
        let default = shown(&defaults[name]);
        rows.push(format!("| `{name}` | {default} | {} |", lines.join(" ")));
    }
    let members = defaults.as_object().map_or(0, |defaults| defaults.len());
    assert_eq!(rows.len(), members + 3, "a switch without documentation");
    rows.join("\n") + "\n"
}

/// A default in the table.
fn shown(default: &Value) -> String {
    match default {
        Value::Null => "none".to_owned(),
        Value::Bool(_) | Value::Number(_) => default.to_string(),
        other => format!("`{other}`"),
    }
}
