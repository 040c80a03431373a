//! Regular expressions in llguidance's form.

/// The error for expressions with such a group.
pub const STOP_GROUP: &str = "a group named \"stop\" is not supported in a regular expression";

/// Whether the expression may have a group named `stop`, which llguidance treats as a look-ahead.
pub fn has_stop_group(expression: &str) -> bool {
    expression.contains("(?P<stop>") || expression.contains("(?<stop>")
}

/// The expression that matches exactly the given strings.
pub fn choice_regex(choices: &[&str]) -> String {
    let escaped = choices.iter().map(|choice| literal_regex(choice));
    escaped.collect::<Vec<String>>().join("|")
}

/// The expression that matches exactly `text`; it has no slash that is not escaped.
pub fn literal_regex(text: &str) -> String {
    text.chars().map(escaped).collect()
}

fn escaped(character: char) -> String {
    match character.is_alphanumeric() || character == ' ' {
        true => character.to_string(),
        false => format!("\\x{{{:x}}}", u32::from(character)),
    }
}

/// The Lark grammar of strings that match `expression` from start to end.
pub fn to_lark(expression: &str) -> String {
    if expression.is_empty() {
        return "start: \"\"".to_owned();
    }
    let mut lark = String::with_capacity(expression.len() + 16);
    lark.push_str("start: /");
    let mut is_escaped = false;
    for character in expression.chars() {
        if character == '/' && !is_escaped {
            lark.push('\\');
        }
        is_escaped = character == '\\' && !is_escaped;
        lark.push(character);
    }
    lark.push('/');
    lark
}
