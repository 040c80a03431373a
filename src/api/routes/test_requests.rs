//! Bodies and their plans, for the tests of several routes.

use serde_json::Value;

use crate::api::fields::{Conversation, Prompt};
use crate::api::plan::Plan;

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
