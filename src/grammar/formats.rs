//! Bounds the length of strings whose format has a limit of its own. What the formats are is decided by llguidance.

use serde_json::Value;

/// Formats without a bound in llguidance, and their longest strings: a path without its brackets (RFC 5321, 4.5.3.1.3), and
/// a name without the root (RFC 1035, 2.3.4).
const LONGEST: [(&str, u64); 2] = [("email", 254), ("hostname", 253)];

/// Keywords that hold values instead of schemas.
const VALUES: [&str; 4] = ["const", "enum", "default", "examples"];

/// Adds `maxLength` to strings of these formats that have none. Without it a small model writes addresses that never end.
pub(super) fn bound(schema: &mut Value) {
    match schema {
        Value::Array(schemas) => schemas.iter_mut().for_each(bound),
        Value::Object(members) => {
            let format = members.get("format").and_then(Value::as_str);
            let longest = LONGEST.iter().find(|(name, _)| Some(*name) == format);
            let least = members.get("minLength").and_then(Value::as_u64);
            if let Some((_, longest)) = longest
                && least.unwrap_or(0) <= *longest
            {
                let longest = Value::from(*longest);
                members.entry("maxLength").or_insert(longest);
            }
            let schemas = members.iter_mut();
            schemas
                .filter(|(keyword, _)| !VALUES.contains(&keyword.as_str()))
                .for_each(|(_, schema)| bound(schema));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_strings_without_a_bound_get_one() {
        let mut schema = json!({
            "properties": {
                "format": { "type": "string", "format": "email" },
                "short": { "format": "email", "maxLength": 20 },
                "other": { "format": "date" },
                "long": { "format": "email", "minLength": 300 },
                "value": { "const": { "format": "email" } },
            },
            "anyOf": [{ "format": "hostname" }],
        });
        bound(&mut schema);
        let properties = &schema["properties"];
        assert_eq!(properties["format"]["maxLength"], 254);
        assert_eq!(properties["short"]["maxLength"], 20);
        assert!(properties["long"].get("maxLength").is_none());
        assert_eq!(properties["other"], json!({ "format": "date" }));
        assert_eq!(properties["value"]["const"], json!({ "format": "email" }));
        assert_eq!(schema["anyOf"][0]["maxLength"], 253);
    }
}
