//! Groups of request fields that routes share, validated field by field (specification 3 and 4). Each
//! file declares its fields once and reads them. No file needs a model: checks that depend on the model,
//! such as the range of token ids, come later.

mod block;
pub(super) mod blocks;
mod body;
mod breakers;
pub(super) mod candidates;
pub(super) mod compaction;
pub(super) mod constraints;
pub(super) mod conversation;
pub(super) mod declare;
pub(super) mod drafting;
mod form;
pub(super) mod functions;
mod given;
pub(super) mod images;
pub(super) mod input;
pub(super) mod kinds;
pub(super) mod length;
#[cfg(test)]
pub(super) mod listed;
mod logit_bias;
pub(super) mod logprobs;
pub(super) mod model;
mod prompt;
pub(super) mod prompt_tokens;
mod reader;
pub(super) mod reasoning;
pub(super) mod refused;
pub(super) mod restrictions;
pub(super) mod sampling;
pub(super) mod streaming;
pub(super) mod structured_outputs;
pub(super) mod thinking;
pub(super) mod tools;
mod unknown;
pub(super) mod vendors;

pub(super) use body::Body;
pub(super) use constraints::Constraint;
pub(super) use conversation::Conversation;
pub(super) use declare::{Field, Or, fields, request, wire_types};
pub(super) use drafting::{Drafting, Prediction};
pub(super) use form::Form;
pub(super) use length::{Length, MaxTokens};
pub(super) use logprobs::Logprobs;
pub(super) use prompt::{Prompt, PromptPart, PromptReader};
pub(super) use prompt_tokens::{KeptTokens, PromptTokens, TruncationSide};
pub(super) use reader::{
    Fields, check_ids, invalid_type, invalid_value, kind, members, missing, out_of_range, shorten,
    within,
};
pub(super) use restrictions::Restrictions;
pub(super) use sampling::Sampling;
pub(super) use streaming::Streaming;
pub(super) use thinking::ThinkingBudget;
pub(super) use tools::ToolCalls;
pub(super) use unknown::UnknownFieldPolicy;
