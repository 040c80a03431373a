//! Tool calls in a completion (specification 9.4): how model families write them, their grammar and
//! their parsing.

use llguidance::api::GrammarWithLexer;
use llguidance::toktrie::TokEnv;
use serde::de::IgnoredAny;
use serde_json::{Deserializer, Value, json};

use super::budget::Budget;
use super::opener::Opener;
use super::{schema, token_trie};
use crate::text::Tokenizer;

/// A function the model may call.
#[derive(Debug, Clone, PartialEq)]
pub struct Tool {
    /// Not empty.
    pub name: String,
    /// Schema of the arguments, which are an object. `None` allows any object.
    pub parameters: Option<Value>,
    /// Whether the arguments must satisfy `parameters`.
    pub strict: bool,
}

/// How a model family writes a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallFormat {
    /// `{"name": ..., "arguments": {...}}` alone.
    Bare,
    /// `{"name": ..., "parameters": {...}}` alone, as Llama 3 writes it.
    Llama3,
    /// `<tool_call>\n{"name": ..., "arguments": {...}}\n</tool_call>`, as Hermes and Qwen write it.
    Hermes {
        /// The tags are special tokens, which may be left out of the text.
        has_special_tags: bool,
    },
    /// `[TOOL_CALLS] [{"name": ..., "arguments": {...}}]`, as Mistral models up to Nemo write it.
    Mistral,
}

/// A call found in a completion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolCall {
    /// The function's name.
    pub name: String,
    /// Its arguments as JSON text.
    pub arguments: String,
}

/// The text around the JSON object of a call.
struct Frame {
    opener: &'static str,
    before: &'static str,
    after: &'static str,
    closer: &'static str,
    /// The member that holds the arguments.
    arguments: &'static str,
}

impl CallFormat {
    /// How the model of this tokenizer writes calls, judging by its chat template.
    pub fn of(tokenizer: &Tokenizer) -> CallFormat {
        let template = tokenizer.chat_template().unwrap_or_default();
        let has = |text| template.contains(text);
        let is_token = |text| tokenizer.special_id(text).is_some();
        // Some families write something other than JSON between these tags.
        let is_hermes = has("<tool_call>") && has("arguments");
        if is_hermes && !has("<function=") && !has("<arg_key>") {
            CallFormat::Hermes {
                has_special_tags: is_token("<tool_call>"),
            }
        // Later models write `[TOOL_CALLS]name[ARGS]{...}`.
        } else if is_token("[TOOL_CALLS]") && has("[TOOL_CALLS]") && !has("[ARGS]") {
            CallFormat::Mistral
        } else if is_token("<|python_tag|>") && has("parameters") {
            CallFormat::Llama3
        } else {
            CallFormat::Bare
        }
    }

    fn frame(self) -> Frame {
        let (opener, before, after, closer) = match self {
            CallFormat::Bare | CallFormat::Llama3 => ("", "", "", ""),
            CallFormat::Hermes { .. } => ("<tool_call>", "", "", "</tool_call>"),
            CallFormat::Mistral => ("[TOOL_CALLS]", "[", "]", ""),
        };
        Frame {
            opener,
            before,
            after,
            closer,
            arguments: match self {
                CallFormat::Llama3 => "parameters",
                _ => "arguments",
            },
        }
    }

    /// The call, if `text` consists of a complete one.
    pub fn parse(&self, text: &str) -> Option<ToolCall> {
        let frame = self.frame();
        let may_hide_tags = match self {
            CallFormat::Hermes { has_special_tags } => *has_special_tags,
            _ => true,
        };
        let mut rest = text.trim();
        let opened = rest.strip_prefix(frame.opener);
        if opened.is_none() && !may_hide_tags {
            return None;
        }
        rest = opened.unwrap_or(rest).trim_start();
        let closed = rest.strip_suffix(frame.closer);
        if closed.is_none() && !may_hide_tags {
            return None;
        }
        rest = closed.unwrap_or(rest).trim_end();
        rest = rest.strip_prefix(frame.before)?;
        rest = rest.strip_suffix(frame.after)?;
        parse_object(rest.trim(), frame.arguments)
    }
}

/// `{"name": ..., ARGUMENTS: {...}}` and nothing else.
fn parse_object(text: &str, arguments: &str) -> Option<ToolCall> {
    let rest = text.strip_prefix('{')?;
    let rest = member(rest, "name")?;
    let (name, rest) = json_prefix(rest)?;
    let name = serde_json::from_str::<String>(name).ok()?;
    let rest = member(rest.trim_start().strip_prefix(',')?, arguments)?;
    let (arguments, rest) = json_prefix(rest)?;
    let is_object = arguments.starts_with('{') && rest.trim_start() == "}";
    is_object.then(|| ToolCall {
        name,
        arguments: arguments.to_owned(),
    })
}

/// The text after `"key":`.
fn member<'t>(text: &'t str, key: &str) -> Option<&'t str> {
    let (found, rest) = json_prefix(text)?;
    let found = serde_json::from_str::<String>(found).ok()?;
    let rest = rest.trim_start().strip_prefix(':')?;
    (found == key).then_some(rest)
}

/// The text of the JSON value that `text` begins with, and the rest.
fn json_prefix(text: &str) -> Option<(&str, &str)> {
    let text = text.trim_start();
    let mut values = Deserializer::from_str(text).into_iter::<IgnoredAny>();
    values.next()?.ok()?;
    Some(text.split_at(values.byte_offset()))
}

/// A call format for one vocabulary.
pub(super) struct Call {
    frame: Frame,
    opener_id: Option<u32>,
    closer_id: Option<u32>,
    tokens: TokEnv,
}

impl Call {
    pub(super) fn new(format: CallFormat, tokens: TokEnv) -> Call {
        let frame = format.frame();
        let special = |text| token_trie::special_id(tokens.tok_trie(), text);
        Call {
            opener_id: special(frame.opener),
            closer_id: special(frame.closer),
            frame,
            tokens,
        }
    }

    /// The text that a completion with a call begins with.
    pub(super) fn opener(&self) -> Opener {
        Opener::new(self.frame.opener, self.opener_id, self.tokens.clone())
    }

    /// The grammars that describe one call of one of `tools`; the first is the start.
    ///
    /// # Errors
    /// Names the tool whose parameters cannot be enforced.
    pub(super) fn grammars(
        &self,
        tools: &[Tool],
        budget: &mut Budget,
    ) -> Result<Vec<GrammarWithLexer>, String> {
        let any_object = json!({ "type": "object" });
        let mut schemas = vec![grammar(ANY_OBJECT, &any_object, budget)?];
        let mut calls = Vec::new();
        for (index, tool) in tools.iter().enumerate() {
            budget.count(1)?;
            let arguments = match (&tool.parameters, tool.strict) {
                (Some(parameters), true) => {
                    let name = format!("arguments-{index}");
                    let schema = object_schema(parameters)
                        .and_then(|schema| grammar(&name, &schema, budget))
                        .map_err(|error| format!("parameters of {:?}: {error}", tool.name))?;
                    schemas.push(schema);
                    name
                }
                _ => ANY_OBJECT.to_owned(),
            };
            calls.push(format!(
                "{} s \",\" s {} s \":\" s @{arguments}",
                literal(&literal(&tool.name)),
                literal(&literal(self.frame.arguments)),
            ));
        }
        let Frame { before, after, .. } = self.frame;
        let parts = [
            tag(self.frame.opener, self.opener_id),
            literal(before),
            "call".to_owned(),
            literal(after),
            tag(self.frame.closer, self.closer_id),
        ];
        let parts: Vec<String> = parts.into_iter().filter(|part| part != "\"\"").collect();
        let lark = format!(
            "start: {}\ncall: \"{{\" s {} s \":\" s tool s \"}}\"\ntool: {}\ns: SPACE?\nSPACE: / |\\n {{0,16}}/",
            parts.join(" s "),
            literal(&literal("name")),
            calls.join("\n | "),
        );
        schemas.insert(0, GrammarWithLexer::from_lark(lark));
        Ok(schemas)
    }
}

/// The name of the grammar of unconstrained arguments.
const ANY_OBJECT: &str = "arguments";

fn grammar(name: &str, schema: &Value, budget: &mut Budget) -> Result<GrammarWithLexer, String> {
    Ok(GrammarWithLexer {
        name: Some(name.to_owned()),
        json_schema: Some(schema::prepare(schema, budget)?),
        lark_grammar: None,
    })
}

/// The schema with `"type": "object"` added, because arguments are always an object.
fn object_schema(parameters: &Value) -> Result<Value, String> {
    let Value::Object(members) = parameters else {
        return Err("must be an object".to_owned());
    };
    let allows_objects = match members.get("type") {
        None => true,
        Some(Value::Array(types)) => types.iter().any(|name| name == "object"),
        Some(name) => name == "object",
    };
    if !allows_objects {
        return Err("\"type\" must be \"object\"".to_owned());
    }
    let mut members = members.clone();
    members.insert("type".to_owned(), "object".into());
    Ok(Value::Object(members))
}

/// A quoted string. JSON and Lark quote in the same way.
fn literal(text: &str) -> String {
    json!(text).to_string()
}

fn tag(text: &str, id: Option<u32>) -> String {
    id.map_or_else(|| literal(text), |id| format!("<[{id}]>"))
}
