//! The treatment of fields that no group declares (switch `unknownFields`).

use super::reader::shorten;
use crate::api::error::fault;
use crate::api::switches::UnknownFields;
use crate::{RequestFault, Result};

/// Warns of unknown fields or rejects them.
pub(in crate::api) struct UnknownFieldPolicy<'a> {
    pub behavior: UnknownFields,
    /// Called with the name of each field that is ignored.
    pub warn: &'a mut dyn FnMut(&str),
}

impl UnknownFieldPolicy<'_> {
    /// Applies the policy to the field `name`.
    ///
    /// # Errors
    /// `unknown_parameter`.
    pub(in crate::api) fn report(&mut self, name: &str) -> Result<()> {
        match self.behavior {
            UnknownFields::Ignore => {
                (self.warn)(name);
                Ok(())
            }
            UnknownFields::Error => Err(fault(
                RequestFault::UnknownParameter,
                name,
                format!("unknown field \"{}\"", shorten(name)),
            )),
        }
    }
}
