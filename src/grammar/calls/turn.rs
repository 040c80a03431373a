//! Grammars of a whole turn: reasoning, then calls, or content and then calls.

use llguidance::api::GrammarWithLexer;
use llguidance::toktrie::TokEnv;

use super::shape::{self, Shape, shape};
use super::untagged::{self, Answer};
use super::writer::{Writer, escaped, literal, sequence};
use crate::grammar::budget::Budget;
use crate::grammar::closed::Objects;
use crate::grammar::opener::Opener;
use crate::grammar::output::harmony::{CHANNEL, END, MESSAGE, START};
use crate::grammar::output::{Beginning, CallForm, OutputForm, beginning};
use crate::grammar::token_trie;
use crate::grammar::tool::Tool;

/// Content, where nothing was before it.
const ANY_TEXT: &str = "(?s:.+)";

/// A model's turn with tools.
#[derive(Debug, Clone, PartialEq)]
pub struct Turn {
    /// The tools that may be called, at least one.
    pub tools: Vec<Tool>,
    /// Whether the turn must call a tool.
    pub is_forced: bool,
    /// Whether the turn may call several tools.
    pub is_parallel: bool,
    /// The form in which the model writes.
    pub form: OutputForm,
    /// The end of the prompt, as [`crate::grammar::OutputReader::new`] takes it.
    pub prompt_tail: String,
}

impl Turn {
    /// Whether there is something to enforce: a forced call, or arguments.
    pub fn needs_grammar(&self) -> bool {
        self.is_forced || self.tools.iter().any(|tool| tool.parameters.is_some())
    }
}

/// The text that a completion with a call begins with. `None` if the form has none: the grammar has other completions, too.
pub(in crate::grammar) fn opener(form: OutputForm, tokens: TokEnv) -> Option<Opener> {
    let text = shape::open(form.calls.in_completions());
    let id = token_trie::special_id(tokens.tok_trie(), text);
    (!text.is_empty()).then(|| Opener::new(text, id, tokens))
}

/// The grammars of a completion that is one call; the first is the start. Without `is_forced`, it may be text in forms without
/// an opener.
///
/// # Errors
/// Names the tool whose parameters cannot be enforced.
pub(in crate::grammar) fn completion(
    form: OutputForm,
    tools: &[Tool],
    is_forced: bool,
    tokens: TokEnv,
    objects: Objects,
    budget: &mut Budget,
) -> Result<Vec<GrammarWithLexer>, String> {
    let mut writer = Writer::new(tokens, objects, budget);
    let shape = shape(&mut writer, form.calls.in_completions(), tools)?;
    let start = match is_forced || !shape.open.is_empty() {
        true => calls(&mut writer, &shape, false)?,
        false => {
            let answer = Answer {
                text: ANY_TEXT,
                limits: "",
                members: "",
                is_parallel: false,
                has_lists: false,
            };
            untagged::answer(&mut writer, &shape, &answer)?
        }
    };
    Ok(writer.finish(&start))
}

/// The grammars of a turn; the first is the start.
///
/// # Errors
/// Same as [`completion`].
pub(in crate::grammar) fn turn(
    turn: &Turn,
    tokens: TokEnv,
    objects: Objects,
    budget: &mut Budget,
) -> Result<Vec<GrammarWithLexer>, String> {
    let mut writer = Writer::new(tokens, objects, budget);
    let shape = shape(&mut writer, turn.form.calls, &turn.tools)?;
    let start = match turn.form.calls {
        CallForm::Harmony => messages(&mut writer, turn, &shape)?,
        _ => tagged(&mut writer, turn, &shape)?,
    };
    Ok(writer.finish(&start))
}

/// Calls with their opener.
fn calls(writer: &mut Writer<'_>, shape: &Shape, is_parallel: bool) -> Result<String, String> {
    let open = match shape.open {
        "" => String::new(),
        open => writer.tag(open),
    };
    let rest = opened(writer, shape, is_parallel)?;
    Ok(sequence(&[&open, &rest]))
}

/// Calls after their opener.
fn opened(writer: &mut Writer<'_>, shape: &Shape, is_parallel: bool) -> Result<String, String> {
    let mut inner = shape.call.clone();
    if let Some(separator) = shape.separator.filter(|_| is_parallel) {
        inner = format!("{inner} ({separator} {inner})*");
    }
    let block = writer.rule("block", &sequence(&[shape.before, &inner, &shape.close]))?;
    if !(shape.repeats && is_parallel) {
        return Ok(block);
    }
    let more = sequence(&["gap", &writer.tag(shape.open), &block]);
    Ok(format!("{block} ({more})*"))
}

/// A turn of a model that writes tags in text.
fn tagged(writer: &mut Writer<'_>, turn: &Turn, shape: &Shape) -> Result<String, String> {
    let tags = turn.form.reasoning;
    let beginning = beginning(&turn.form, &turn.prompt_tail);
    let thought = match tags {
        Some(tags) => writer.until("thought", "TEXT", tags.close)?,
        None => String::new(),
    };
    let is_forced = turn.is_forced;
    // The text of content.
    let mut text = ANY_TEXT;
    let reasoning = match (beginning, tags) {
        (Beginning::Reasoning { .. }, _) => thought,
        (Beginning::Turn, Some(tags)) if is_forced => {
            let body = sequence(&["gap", &writer.tag(tags.open), &thought]);
            writer.rule("reasoning", &body)? + "?"
        }
        (Beginning::Turn, Some(tags)) => {
            // White space may come before reasoning and before content. The lexer cannot know which of them follows, so
            // the white space is a part of its own, and content begins after it.
            text = "\\S(?s:.*)";
            let body = sequence(&[&writer.tag(tags.open), &thought, "lead"]);
            format!("lead {}?", writer.rule("reasoning", &body)?)
        }
        _ => String::new(),
    };
    if is_forced {
        let calls = calls(writer, shape, turn.is_parallel)?;
        return Ok(sequence(&[&reasoning, "gap", &calls]));
    }
    // Content does not begin with reasoning, and nothing in it opens a call.
    let mut limits = String::new();
    if let (Beginning::Turn, Some(tags)) = (beginning, tags)
        && writer.id(tags.open).is_none()
    {
        limits = format!(" & ~/{}(?s:.*)/", escaped(tags.open));
    }
    if shape.open.is_empty() {
        let answer = Answer {
            text,
            limits: &limits,
            members: untagged::TYPE_MEMBER,
            is_parallel: turn.is_parallel,
            has_lists: true,
        };
        let answer = untagged::answer(writer, shape, &answer)?;
        return Ok(sequence(&[&reasoning, &answer]));
    }
    let content = writer.rule("CONTENT", &format!("/({text})?/{limits}"))?;
    let before = writer.until("before_calls", &content, shape.open)?;
    if writer.id(shape.open).is_none() {
        limits.push_str(&format!(" & ~/(?s:.*){}(?s:.*)/", escaped(shape.open)));
    }
    let only = writer.rule("ONLY", &format!("/{text}/{limits}"))?;
    let opened = opened(writer, shape, turn.is_parallel)?;
    let answer = writer.rule("answer", &format!("{only}? | {before} {opened}"))?;
    Ok(sequence(&[&reasoning, &answer]))
}

/// A turn of gpt-oss.
fn messages(writer: &mut Writer<'_>, turn: &Turn, shape: &Shape) -> Result<String, String> {
    let tail = &turn.prompt_tail;
    let start = tail.rfind(START).map_or("", |start| &tail[start..]);
    let next = sequence(&[
        &writer.until("message_end", "TEXT", END)?,
        &writer.tag(START),
        &literal("assistant"),
    ]);
    let channel = writer.tag(CHANNEL);
    let message = writer.tag(MESSAGE);
    let header = |name: &str| sequence(&[&channel, &literal(name), &message]);
    let analysis = sequence(&[&header("analysis"), &next]);
    let preamble = sequence(&[&header("commentary"), &next]);
    let call = sequence(&[&channel, &calls(writer, shape, false)?]);
    let answer = match turn.is_forced {
        true => call,
        false => {
            let body = format!("({preamble})? {call} | {} TEXT", header("final"));
            writer.rule("answer", &body)?
        }
    };
    // The prompt may have opened a message.
    let before = match start.contains(MESSAGE) {
        true => next,
        false => format!("({analysis})?"),
    };
    Ok(sequence(&[&before, &answer]))
}
