//! Bodies and their plans, for the tests of several routes.

use std::fmt::Debug;

use serde_json::Value;

use crate::api::fields::{Conversation, Prompt};
use crate::api::plan::Plan;
use crate::{Error, RequestFault, Result};

/// The body `base` with `members` added or replaced.
pub(super) fn with_members(mut base: Value, members: Value) -> String {
    let Value::Object(members) = members else {
        panic!("members must be an object");
    };
    base.as_object_mut().unwrap().extend(members);
    base.to_string()
}

/// The only prompt of a plan, which is a conversation.
#[track_caller]
pub(super) fn only_conversation(plan: &Plan) -> Conversation {
    match &plan.prompts[..] {
        [Prompt::Conversation(conversation)] => (**conversation).clone(),
        other => panic!("{other:?}"),
    }
}

/// The fault and the field of a refused request.
#[track_caller]
pub(super) fn refusal<T: Debug>(parsed: Result<T>) -> (RequestFault, String) {
    match parsed {
        Err(Error::Request { fault, param, .. }) => (fault, param.unwrap()),
        other => panic!("{other:?}"),
    }
}
