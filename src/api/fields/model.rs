//! `model` and `user` (specification 4.2). Whether the model exists is checked later.

use super::declare::fields;
use super::reader::{Fields, missing};
use crate::Result;
use crate::api::switches::Switches;

fields! {
    ModelFields {
        /// A model's id, or `default` for the one that is ready.
        model: String,
        /// Not used.
        user: Option<String>,
    }
}

pub(in crate::api) fn read(fields: &Fields, switches: &Switches) -> Result<String> {
    match fields.string("model")? {
        Some(model) if !model.is_empty() => Ok(model.to_owned()),
        _ if switches.allow_missing_model => Ok("default".to_owned()),
        _ => Err(missing("model")),
    }
}

/// `user` has no effect, but must be valid.
pub(in crate::api) fn check_user(fields: &Fields) -> Result<()> {
    fields.string("user").map(drop)
}
