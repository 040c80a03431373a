//! From a body's bytes to a validated [`CompletionRequest`] (API.md sections 3 and 4). One file
//! per group of fields; none of them knows a model, so token ids are checked later.

mod constraints;
mod fields;
mod input;
mod length;
mod output;
mod sampling;

pub(super) use constraints::{Constraint, ToolCalls};
pub(super) use input::{Prompt, Suffix};
pub(super) use length::Length;
pub(super) use output::Output;
pub(super) use sampling::Sampling;
pub use sampling::SamplingDefaults;

use fields::Fields;

use super::error::fault;
use super::switches::{Switches, UnknownFields};
use crate::{RequestFault, Result};

/// A request that keeps every rule that can be checked without a model.
#[derive(Debug)]
pub(super) struct CompletionRequest {
    /// A model id or the alias `default`.
    pub model: String,
    /// At least one.
    pub prompts: Vec<Prompt>,
    pub suffix: Suffix,
    pub length: Length,
    pub output: Output,
    pub sampling: Sampling,
    pub constraint: Constraint,
}

impl CompletionRequest {
    /// Parses and validates a body. `unknown_field` hears the name of each ignored field.
    pub(super) fn parse(
        body: &[u8],
        switches: &Switches,
        mut unknown_field: impl FnMut(&str),
    ) -> Result<CompletionRequest> {
        let mut fields = Fields::parse(body)?;
        for name in fields.names().filter(|name| !is_known(name)) {
            report_unknown(name, switches, &mut unknown_field)?;
        }
        let model = input::model(&fields, switches)?;
        let prompts = input::prompts(&mut fields, switches)?;
        input::check_unused(&fields)?;
        let length = length::read(&fields, switches)?;
        let output = output::read(&fields, switches, &mut unknown_field)?;
        let sampling = sampling::read(&fields, switches)?;
        constraints::check(&fields)?;
        if prompts.len().saturating_mul(output.best_of) > switches.max_sequences {
            return Err(fields::out_of_range(
                "prompt",
                &format!(
                    "at most {} candidates over all prompts",
                    switches.max_sequences
                ),
                format!("{} prompts of {} each", prompts.len(), output.best_of),
            ));
        }
        if prompts.len() > 1 {
            fields.refuse("prompt");
        }
        fields.check_refused()?;
        Ok(CompletionRequest {
            model,
            prompts,
            suffix: Suffix::None,
            length,
            output,
            sampling,
            constraint: Constraint::None,
        })
    }
}

/// Warns of or refuses a field nobody knows, as the switch says.
fn report_unknown(
    name: &str,
    switches: &Switches,
    unknown_field: &mut impl FnMut(&str),
) -> Result<()> {
    match switches.unknown_fields {
        UnknownFields::Ignore => {
            unknown_field(name);
            Ok(())
        }
        UnknownFields::Error => Err(fault(
            RequestFault::UnknownParameter,
            name,
            format!("unknown field \"{}\"", fields::shorten(name)),
        )),
    }
}

fn is_known(name: &str) -> bool {
    [
        input::FIELDS,
        length::FIELDS,
        output::FIELDS,
        sampling::FIELDS,
        constraints::FIELDS,
    ]
    .iter()
    .any(|group| group.contains(&name))
}

#[cfg(test)]
mod tests;
