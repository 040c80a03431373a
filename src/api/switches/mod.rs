//! Settings of the endpoint: their types and their presets.

mod profiles;
mod values;

#[cfg(test)]
pub(super) use profiles::{EngineSwitches, constants};
pub use values::{
    AlwaysIncludeUsage, ContextLengthExceededBehavior, ContextWord, Cors, DefaultMaxTokens,
    LogprobsShape, MirostatTargetUnit, SamplingBounds, SuffixMode, Switches, TextOffsetBase,
    ToolNames, UnknownFields, UsagePlace, WhenModelNotReady,
};
