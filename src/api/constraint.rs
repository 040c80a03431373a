//! From a request's constraint to a compiled grammar, and from a completion to the tool call in it
//! (specification 9). What constraints mean is the grammar module's.

use std::cell::OnceCell;
use std::fmt;
use std::rc::Rc;

use super::error::fault;
use super::models::ReadyModel;
use super::request::{Constraint, ToolCalls};
use crate::grammar::{CallFormat, Compiler, Grammar, GrammarSource, ToolCall};
use crate::{RequestFault, Result};

/// A model's grammar compiler. It is built when the first constraint needs it: that takes a look at
/// the whole vocabulary.
#[derive(Clone, Default)]
pub struct LazyCompiler(Rc<OnceCell<Compiler>>);

impl fmt::Debug for LazyCompiler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LazyCompiler")
            .field("is_built", &self.0.get().is_some())
            .finish()
    }
}

/// Compiles what the completions must be; `None` if they are free.
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
            // Only a tool's parameters can be at fault.
            (source, "tools", true)
        }
    };
    let LazyCompiler(cell) = &model.compiler;
    let vocab_size = model.engine.vocab_size();
    let compiler = cell.get_or_init(|| Compiler::new(&model.tokenizer, vocab_size));
    match compiler.compile(&source) {
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
        let name = |tool: &crate::grammar::Tool| tool.name.clone();
        Some(CallReader {
            format,
            names: calls.tools.iter().map(name).collect(),
        })
    }

    /// The call that `text`, a whole completion, is.
    pub(super) fn read(&self, text: &str) -> Option<ToolCall> {
        let call = self.format.parse(text)?;
        self.names.contains(&call.name).then_some(call)
    }
}
