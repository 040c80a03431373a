//! The text around the calls of each form.

use super::writer::{Writer, literal, sequence};
use super::{invocation, markup};
use crate::grammar::output::harmony;
use crate::grammar::output::{
    CALL, CALL_END, CLOSER, CallForm, FUNCTION_GEMMA, GEMMA4, GLM, LFM2, LLAMA, MINICPM, OPENER,
    QWEN, SEPARATOR,
};
use crate::grammar::schema::object_schema;
use crate::grammar::tool::Tool;

/// The rules of a form's calls.
pub(super) struct Shape {
    /// The text that calls begin with; may be empty.
    pub open: &'static str,
    /// The string before the calls.
    pub before: &'static str,
    /// One call.
    pub call: String,
    /// The string between calls that share their tags. `None`: each call has its own.
    pub separator: Option<&'static str>,
    /// The string after the calls.
    pub close: String,
    /// Whether tagged calls may follow each other.
    pub repeats: bool,
    /// The beginnings in forms without an opening tag: each tool's name in quotes, and what follows it in a call's object.
    pub named: Vec<(String, String)>,
    /// In forms that may write `[f(a=1)]` without a tag, the names of tools and what is in the brackets of their calls; `None`
    /// if their parameters cannot be written so.
    pub listed: Vec<(String, Option<String>)>,
}

/// The text that calls of the form begin with; may be empty.
pub(super) fn open(form: CallForm) -> &'static str {
    match form {
        CallForm::Bare | CallForm::Llama3 | CallForm::Harmony => "",
        CallForm::Hermes { .. } => "<tool_call>",
        CallForm::Mistral | CallForm::MistralNamed { .. } => "[TOOL_CALLS]",
        CallForm::Granite | CallForm::Phi4 => "<|tool_call|>",
        CallForm::QwenMarkup => QWEN.open,
        CallForm::Glm => GLM.open,
        CallForm::MiniCpm => MINICPM.name_open,
        CallForm::Lfm2 => LFM2.open,
        CallForm::Gemma4 => GEMMA4.open,
        CallForm::FunctionGemma => FUNCTION_GEMMA.open,
        CallForm::DeepSeek => OPENER,
    }
}

/// Whether calls are JSON without a tag before them.
pub(super) fn has_no_tag(form: CallForm) -> bool {
    matches!(form, CallForm::Bare | CallForm::Llama3)
}

/// Writes the rules of calls of `tools`.
///
/// # Errors
/// Names the tool whose parameters cannot be enforced.
pub(super) fn shape(
    writer: &mut Writer<'_>,
    form: CallForm,
    tools: &[Tool],
) -> Result<Shape, String> {
    let mut calls = Vec::new();
    let (mut named, mut listed) = (Vec::new(), Vec::new());
    for (index, tool) in tools.iter().enumerate() {
        let mut call = call(writer, form, tool, index)
            .map_err(|error| format!("parameters of {:?}: {error}", tool.name))?;
        if has_no_tag(form) {
            let name = literal(&tool.name);
            let rest = writer.rule(format!("after_name_{index}"), &call)?;
            call = format!("{} {rest}", literal(&name));
            named.push((name, rest));
        }
        if form == CallForm::Llama3 {
            let write =
                |writer: &mut Writer<'_>| invocation::arguments(writer, &LLAMA, tool, index);
            let arguments = match tool.strict {
                true => write(writer),
                false => writer.leniently(write),
            };
            listed.push((tool.name.clone(), arguments.ok()));
        }
        calls.push(call);
    }
    let all = writer.rule("tool", &calls.join("\n | "))?;
    let json = "\"{\" s \"\\\"name\\\"\" s \":\" s tool s \"}\"";
    let call = match form {
        CallForm::Bare
        | CallForm::Llama3
        | CallForm::Hermes { .. }
        | CallForm::Mistral
        | CallForm::Granite
        | CallForm::Phi4 => writer.rule("call", json)?,
        _ => all,
    };
    let (before, separator, close) = around(writer, form);
    let repeats = matches!(
        form,
        CallForm::Hermes { .. }
            | CallForm::MistralNamed { .. }
            | CallForm::QwenMarkup
            | CallForm::Glm
            | CallForm::MiniCpm
            | CallForm::Gemma4
            | CallForm::FunctionGemma
    );
    Ok(Shape {
        open: open(form),
        before,
        call,
        separator,
        close,
        repeats,
        named,
        listed,
    })
}

/// The strings before calls and after their opener, between them, and after them.
fn around(writer: &Writer<'_>, form: CallForm) -> (&'static str, Option<&'static str>, String) {
    let list = Some("s \",\" s");
    let tag = |before: &str, tag: &str| sequence(&[before, &writer.tag(tag)]);
    match form {
        CallForm::Hermes { .. } => ("s", None, tag("s", "</tool_call>")),
        CallForm::Mistral | CallForm::Granite => ("s \"[\" s", list, "s \"]\"".to_owned()),
        CallForm::Phi4 => ("s \"[\" s", list, tag("s \"]\" s", "<|/tool_call|>")),
        CallForm::Lfm2 => ("\"[\"", Some("\", \""), tag("\"]\"", LFM2.close)),
        CallForm::Gemma4 => ("", None, writer.tag(GEMMA4.close)),
        CallForm::FunctionGemma => ("", None, writer.tag(FUNCTION_GEMMA.close)),
        CallForm::DeepSeek => ("", Some("gap"), writer.tag(CLOSER)),
        // A tag that ends the turn is not written.
        CallForm::Harmony if writer.is_end(harmony::CALL) => ("", None, String::new()),
        CallForm::Harmony => ("", None, writer.tag(harmony::CALL)),
        CallForm::Bare
        | CallForm::Llama3
        | CallForm::MistralNamed { .. }
        | CallForm::QwenMarkup
        | CallForm::Glm
        | CallForm::MiniCpm => ("", None, String::new()),
    }
}

/// One call of `tool`, without what all calls have around them, and without the name in forms without a tag. What cannot be
/// enforced of the parameters of a tool that is not strict may be anything.
fn call(
    writer: &mut Writer<'_>,
    form: CallForm,
    tool: &Tool,
    index: usize,
) -> Result<String, String> {
    if tool.strict || tool.parameters.is_none() {
        return declared_call(writer, form, tool, index);
    }
    let call = writer.leniently(|writer| declared_call(writer, form, tool, index));
    call.or_else(|_| {
        let parameters = None;
        let tool = Tool {
            parameters,
            ..tool.clone()
        };
        declared_call(writer, form, &tool, index)
    })
}

/// One call whose arguments follow the tool's parameters.
fn declared_call(
    writer: &mut Writer<'_>,
    form: CallForm,
    tool: &Tool,
    index: usize,
) -> Result<String, String> {
    match form {
        CallForm::QwenMarkup => return markup::call(writer, &QWEN, tool, index),
        CallForm::Glm => return markup::call(writer, &GLM, tool, index),
        CallForm::MiniCpm => return markup::call(writer, &MINICPM, tool, index),
        CallForm::Lfm2 => return invocation::call(writer, &LFM2, tool, index),
        CallForm::Gemma4 => return invocation::call(writer, &GEMMA4, tool, index),
        CallForm::FunctionGemma => return invocation::call(writer, &FUNCTION_GEMMA, tool, index),
        _ => {}
    }
    let arguments = match &tool.parameters {
        Some(parameters) => writer.schema(&object_schema(parameters)?)?,
        None => writer.any_object()?,
    };
    let member = match form {
        CallForm::Llama3 => "parameters",
        _ => "arguments",
    };
    Ok(match form {
        CallForm::MistralNamed { has_ids } => {
            let id = match has_ids {
                true => format!("{} /[A-Za-z0-9]{{9}}/", writer.tag("[CALL_ID]")),
                false => String::new(),
            };
            sequence(&[&literal(&tool.name), &id, &writer.tag("[ARGS]"), &arguments])
        }
        CallForm::DeepSeek => sequence(&[
            &writer.tag(CALL),
            &literal("function"),
            &writer.tag(SEPARATOR),
            &literal(&format!("{}\n```json\n", tool.name)),
            &arguments,
            &literal("\n```"),
            &writer.tag(CALL_END),
        ]),
        CallForm::Harmony => sequence(&[
            &literal(&format!("commentary to=functions.{} ", tool.name)),
            &writer.tag(harmony::CONSTRAIN),
            &literal("json"),
            &writer.tag(harmony::MESSAGE),
            &arguments,
        ]),
        _ => {
            let rest = format!(
                "s \",\" s {} s \":\" s {arguments}",
                literal(&literal(member))
            );
            match has_no_tag(form) {
                true => rest,
                false => sequence(&[&literal(&literal(&tool.name)), &rest]),
            }
        }
    })
}
