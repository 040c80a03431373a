//! Groups of request fields that routes share, validated field by field (specification 3 and 4). Each
//! file declares its fields once and reads them. No file needs a model: checks that depend on the model,
//! such as the range of token ids, come later.

mod body;
mod breakers;
pub(super) mod candidates;
pub(super) mod constraints;
pub(super) mod conversation;
pub(super) mod declare;
pub(super) mod images;
pub(super) mod length;
pub(super) mod model;
mod prompt;
mod reader;
pub(super) mod sampling;
pub(super) mod streaming;
pub(super) mod tools;
mod unknown;

pub(super) use body::Body;
pub(super) use constraints::Constraint;
pub(super) use conversation::Conversation;
pub(super) use declare::{fields, wire_types};
pub(super) use length::Length;
pub(super) use prompt::{Prompt, PromptReader};
pub(super) use reader::{Fields, invalid_value, missing, out_of_range};
pub(super) use sampling::Sampling;
pub(super) use streaming::Streaming;
pub(super) use tools::ToolCalls;
pub(super) use unknown::UnknownFieldPolicy;
