//! `model` and `user` (specification 4.2). Whether the model exists is checked later.

use super::declare::{Field, fields};
use super::kinds::{Text, text};
use super::reader::{Fields, missing};
use crate::Result;
use crate::api::switches::Switches;

fields! {
    ModelFields {
        /// A model's id, or `default` for the one that is ready (switches `defaultModel`, `allowMissingModel`).
        model: Field<Text> = text().required(),
        /// Not used.
        user: Field<Text> = text(),
    }
}

pub(in crate::api) fn read(fields: &Fields, switches: &Switches) -> Result<String> {
    match ModelFields::model.read(fields, switches)? {
        Some(model) if !model.is_empty() => Ok(model),
        _ if switches.allow_missing_model => Ok("default".to_owned()),
        _ => Err(missing(ModelFields::model.name)),
    }
}

/// `user` has no effect, but must be valid.
pub(in crate::api) fn check_user(fields: &Fields) -> Result<()> {
    fields.string(ModelFields::user.name).map(drop)
}
