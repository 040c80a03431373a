//! From a request's constraint to a compiled grammar, and from a completion to the tool call in it
//! (specification 9).

use crate::api::error::fault;
use crate::api::fields::{Constraint, ToolCalls};
use crate::api::models::ReadyModel;
use crate::grammar::{CallFormat, Grammar, GrammarSource, Tool, ToolCall};
use crate::{RequestFault, Result};

/// Compiles what the completions must match; `None` if they are unconstrained.
pub(super) fn compile(constraint: &Constraint, model: &ReadyModel) -> Result<Option<Grammar>> {
    let (source, param, is_schema) = match constraint {
        Constraint::None => return Ok(None),
        Constraint::Grammar {
            source,
            param,
            is_schema,
        } => (source.clone(), *param, *is_schema),
        Constraint::Tools(ToolCalls { tools, is_forced }) => {
            let source = GrammarSource::Tools {
                tools: tools.clone(),
                is_forced: *is_forced,
                format: model.call_format,
            };
            // Only the schema of a tool's parameters can be invalid.
            (source, "tools", true)
        }
    };
    match model.grammar_compiler().compile(&source) {
        Ok(grammar) => Ok(Some(grammar)),
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
    format: CallFormat,
    names: Vec<String>,
}

impl CallReader {
    /// `None` if the request declares no tools.
    pub(super) fn new(constraint: &Constraint, format: CallFormat) -> Option<CallReader> {
        let Constraint::Tools(calls) = constraint else {
            return None;
        };
        let name = |tool: &Tool| tool.name.clone();
        Some(CallReader {
            format,
            names: calls.tools.iter().map(name).collect(),
        })
    }

    /// The call that `text`, a whole completion, consists of.
    pub(super) fn read(&self, text: &str) -> Option<ToolCall> {
        let call = self.format.parse(text)?;
        self.names.contains(&call.name).then_some(call)
    }
}
