//! The treatment of fields that no group declares (switch `unknownFields`).

use super::reader::{Fields, shorten};
use crate::api::error::fault;
use crate::api::switches::{Switches, UnknownFields};
use crate::{RequestFault, Result};

/// Warns of unknown fields or rejects them.
pub(in crate::api) struct UnknownFieldPolicy<'a> {
    behavior: UnknownFields,
    warn: &'a mut dyn FnMut(&str),
}

impl<'a> UnknownFieldPolicy<'a> {
    /// The policy of the switches. `warn` is called with the name of each ignored field.
    pub(in crate::api) fn new(switches: &Switches, warn: &'a mut dyn FnMut(&str)) -> Self {
        Self {
            behavior: switches.unknown_fields,
            warn,
        }
    }
}

impl UnknownFieldPolicy<'_> {
    /// Applies the policy to each of `names` that is not `known`.
    ///
    /// # Errors
    /// `unknown_parameter`.
    pub(in crate::api) fn check<'a, Known: Iterator<Item = &'static str>>(
        &mut self,
        names: impl Iterator<Item = &'a str>,
        known: fn() -> Known,
    ) -> Result<()> {
        for name in names {
            if known().all(|known| known != name) {
                self.report(name)?;
            }
        }
        Ok(())
    }

    /// Applies the policy to each member of the field `field`, an object, that is not `known`.
    ///
    /// # Errors
    /// `unknown_parameter`.
    pub(in crate::api) fn check_members(
        &mut self,
        field: &str,
        members: &Fields,
        known: &[&str],
    ) -> Result<()> {
        for name in members.names().filter(|name| !known.contains(name)) {
            self.report(&format!("{field}.{name}"))?;
        }
        Ok(())
    }

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
