//! Grammars of calls whose parameters are in tags of their own.

use super::parameters::{Plain, parameters, plain, unwritable};
use super::writer::{Writer, escaped, literal, sequence};
use crate::grammar::output::{CDATA_OPEN, Markup};
use crate::grammar::tool::Tool;

/// The rule of one call of `tool`, after the tag that opens calls.
pub(super) fn call(
    writer: &mut Writer<'_>,
    markup: &Markup,
    tool: &Tool,
    index: usize,
) -> Result<String, String> {
    let space = space(markup);
    let mut all = String::new();
    match &tool.parameters {
        Some(schema) => {
            for (place, parameter) in parameters(schema)?.into_iter().enumerate() {
                let name = &parameter.name;
                let is_name = !name.is_empty()
                    && name.len() <= 256
                    && name.trim() == name
                    && !name.contains(['<', '>', '"', '\n']);
                if !is_name {
                    return Err(unwritable(name));
                }
                let stem = format!("{index}_{place}");
                let value = value(writer, markup, &stem, &parameter.schema)
                    .map_err(|error| format!("{name}: {error}"))?;
                let body = entry(markup, &literal(name), &value);
                let rule = writer.rule(format!("p{stem}"), &body)?;
                all.push_str(&rule);
                all.push_str(if parameter.is_required { " " } else { "? " });
            }
        }
        None => {
            let value = any_value(writer, markup)?;
            let body = entry(markup, "/[A-Za-z0-9_.-]{1,64}/", &value);
            let rule = writer.rule(format!("any{index}"), &body)?;
            all = format!("{rule}*");
        }
    }
    let inner = match markup.name_open.is_empty() || markup.open.is_empty() {
        true => String::new(),
        false => "gap".to_owned(),
    };
    let name_open = match markup.open.is_empty() {
        // The opener is the text before the name.
        true => String::new(),
        false => literal(markup.name_open),
    };
    let outer = match markup.block_close.is_empty() {
        true => String::new(),
        false => sequence(&[&space, &writer.tag(markup.block_close)]),
    };
    Ok(sequence(&[
        &inner,
        &name_open,
        &literal(&tool.name),
        &literal(markup.name_close),
        &space,
        all.trim_end(),
        &writer.tag(markup.close),
        &outer,
    ]))
}

/// The line break between tags, if the form has one. GLM has its lines between tags, not in values.
fn space(markup: &Markup) -> String {
    match markup.name_close.is_empty() || markup.has_lines {
        true => literal("\n"),
        false => String::new(),
    }
}

/// A parameter: the terminals of its name and its value in their tags.
fn entry(markup: &Markup, name: &str, value: &str) -> String {
    let line = match markup.has_lines {
        true => literal("\n"),
        false => String::new(),
    };
    let space = space(markup);
    let before_value = match markup.value_open.is_empty() {
        true => "",
        false => &space,
    };
    sequence(&[
        &literal(markup.key_open),
        name,
        &literal(markup.key_close),
        before_value,
        &literal(markup.value_open),
        &line,
        value,
        &space,
    ])
}

/// Any text up to the end of a value.
fn any_value(writer: &mut Writer<'_>, markup: &Markup) -> Result<String, String> {
    let name = "any_value";
    if writer.has(name) {
        return Ok(name.to_owned());
    }
    let text = text(writer, markup, "ANY_VALUE", &[])?;
    writer.until(name, &text, markup.value_close)
}

/// A terminal of the strings that match all of `rules` and hold no tag of the form.
fn text(
    writer: &mut Writer<'_>,
    markup: &Markup,
    name: &str,
    rules: &[String],
) -> Result<String, String> {
    let mut body = match rules {
        [] => "/(?s:.*)/".to_owned(),
        _ => rules
            .iter()
            .map(|rule| format!("/{rule}/"))
            .collect::<Vec<_>>()
            .join(" & "),
    };
    if !rules.is_empty() {
        let close = escaped(markup.value_close);
        body.push_str(&format!(" & ~/(?s:.*){close}(?s:.*)/"));
    }
    if markup.has_data {
        let data = escaped(CDATA_OPEN);
        body.push_str(&format!(" & ~/{data}(?s:.*)/"));
    }
    writer.rule(name, &body)
}

/// The value of a declared parameter and the end of its tag.
fn value(
    writer: &mut Writer<'_>,
    markup: &Markup,
    stem: &str,
    schema: &serde_json::Value,
) -> Result<String, String> {
    let line = if markup.has_lines { "\n" } else { "" };
    let close = format!("{line}{}", markup.value_close);
    let mut found = Vec::new();
    for (index, plain) in plain(schema)?.into_iter().enumerate() {
        found.push(match plain {
            Plain::Text(rules) if rules.is_empty() => any_value(writer, markup)?,
            Plain::Text(rules) => {
                let terminal = text(writer, markup, &format!("P{stem}_{index}"), &rules)?;
                writer.until(&format!("v{stem}_{index}"), &terminal, &close)?
            }
            Plain::Exactly(text) => {
                if text.contains(markup.value_close) || text.starts_with(CDATA_OPEN) {
                    return Err(unwritable(&text));
                }
                literal(&format!("{text}{close}"))
            }
            Plain::Boolean => format!(
                "(\"true\" | \"false\" | \"True\" | \"False\") {}",
                literal(&close)
            ),
            Plain::Null => format!("(\"null\" | \"None\") {}", literal(&close)),
            Plain::Json(schema) => format!("{} {}", writer.schema(&schema)?, literal(&close)),
        });
    }
    match found.len() {
        0 => Err("no value satisfies it".to_owned()),
        1 => Ok(found.remove(0)),
        _ => writer.rule(format!("a{stem}"), &found.join(" | ")),
    }
}
