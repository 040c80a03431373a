//! Compiles a request's constraint to a grammar, and reads the tool call in a completion
//! (specification 9).

use crate::api::error::fault;
use crate::api::fields::{Constraint, ToolCalls};
use crate::api::models::ReadyModel;
use crate::api::plan::MessagePlan;
use crate::api::switches::Switches;
use crate::grammar::{
    Grammar, GrammarSource, Objects, OutputForm, Tool, ToolCall, Turn, parse_completion,
};
use crate::{RequestFault, Result};

/// Compiles what the completions must match; `None` if they are unconstrained. `message` is how they are read as
/// messages, with the end of the prompt.
pub(super) fn compile(
    constraint: &Constraint,
    message: Option<(MessagePlan, &str)>,
    model: &ReadyModel,
    switches: &Switches,
) -> Result<Option<Grammar>> {
    let (source, param, is_schema) = match constraint {
        Constraint::None => return Ok(None),
        Constraint::Grammar {
            source,
            param,
            is_schema,
        } => (source.clone(), *param, *is_schema),
        Constraint::Tools(ToolCalls { tools, is_forced }) => {
            let (tools, is_forced) = (tools.clone(), *is_forced);
            let source = match message {
                None => GrammarSource::Tools {
                    tools,
                    is_forced,
                    form: model.output_form,
                },
                Some((message, prompt_tail)) => {
                    let turn = Turn {
                        tools,
                        is_forced,
                        is_parallel: message.allows_parallel_calls(model),
                        form: model.chat_form(),
                        prompt_tail: prompt_tail.to_owned(),
                    };
                    if !turn.needs_grammar() {
                        return Ok(None);
                    }
                    GrammarSource::Turn(turn)
                }
            };
            // Only the schema of a tool's parameters can be invalid.
            (source, "tools", true)
        }
    };
    let objects = match switches.open_objects {
        true => Objects::Open,
        false => Objects::Closed,
    };
    let mut compiled = model.grammar_compiler().compile(&source, objects);
    if compiled.is_err()
        && let Some(loose) = source.without_parameters()
    {
        compiled = model.grammar_compiler().compile(&loose, objects);
    }
    match compiled {
        Ok(grammar) => Ok(Some(grammar)),
        // The request demands nothing of calls, so they need no grammar.
        Err(_) if matches!(constraint, Constraint::Tools(calls) if !calls.demands_grammar()) => {
            Ok(None)
        }
        Err(error) => {
            let kind = match is_schema && !error.is_over_budget {
                true => RequestFault::InvalidSchema,
                false => RequestFault::InvalidGrammar,
            };
            Err(fault(kind, param, format!("{param}: {}", error.message)))
        }
    }
}

/// Finds the call of a declared tool in a completion.
#[derive(Debug, Clone)]
pub(super) struct CallReader {
    form: OutputForm,
    tools: Vec<Tool>,
}

impl CallReader {
    /// `None` if the request declares no tools.
    pub(super) fn new(constraint: &Constraint, form: OutputForm) -> Option<CallReader> {
        let Constraint::Tools(calls) = constraint else {
            return None;
        };
        Some(CallReader {
            form,
            tools: calls.tools.clone(),
        })
    }

    /// The call that `text`, a whole completion, consists of.
    pub(super) fn read(&self, text: &str) -> Option<ToolCall> {
        parse_completion(self.form, &self.tools, text)
    }
}
