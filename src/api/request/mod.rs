//! From a body's bytes to a validated [`CompletionRequest`] (specification 3 and 4). One file
//! per group of fields; none of them knows a model, so token ids are checked later.

mod body;
mod breakers;
mod constraints;
mod fields;
mod images;
mod input;
mod length;
mod output;
mod prompt;
mod sampling;
mod tools;

pub(super) use constraints::Constraint;
pub(super) use input::Suffix;
pub(super) use length::Length;
pub(super) use output::Output;
pub(super) use prompt::Prompt;
pub(super) use sampling::Sampling;
pub(super) use tools::ToolCalls;

use body::Body;

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
        let Body { fields, prompts } = Body::parse(body, switches.max_prompts)?;
        for name in fields
            .names()
            .filter(|name| known_fields().all(|known| known != *name))
        {
            report_unknown(name, switches, &mut unknown_field)?;
        }
        let model = input::model(&fields, switches)?;
        let prompts = prompts.ok_or_else(|| input::missing("prompt"))??;
        let suffix = input::suffix(&fields, switches, &prompts)?;
        input::check_user(&fields)?;
        images::check(&fields)?;
        let length = length::read(&fields, switches)?;
        let output = output::read(&fields, switches, &mut unknown_field)?;
        let sampling = sampling::read(&fields, switches)?;
        let constraint = constraints::read(&fields)?;
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
        Ok(CompletionRequest {
            model,
            prompts,
            suffix,
            length,
            output,
            sampling,
            constraint,
        })
    }
}

fields::wire_types! {
    /// A request; `docs/api.md` says what each field means. Unknown fields are passed on.
    pub(super) struct CompletionFields {
        #[ts(flatten)]
        input: input::InputFields,
        #[ts(flatten)]
        length: length::LengthFields,
        #[ts(flatten)]
        output: output::OutputFields,
        #[ts(flatten)]
        sampling: sampling::SamplingFields,
        #[ts(flatten)]
        constraints: constraints::ConstraintFields,
        #[ts(flatten)]
        tools: tools::ToolFields,
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

/// The names of all fields of specification 4.
fn known_fields() -> impl Iterator<Item = &'static str> {
    let groups = [
        input::FIELDS,
        length::FIELDS,
        output::FIELDS,
        sampling::FIELDS,
        constraints::FIELDS,
        tools::FIELDS,
    ];
    groups.into_iter().flatten().copied()
}

#[cfg(test)]
mod tests;
