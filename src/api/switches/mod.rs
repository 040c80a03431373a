//! Settings of the endpoint: their types and their presets.

mod profiles;
#[cfg(test)]
mod table;
mod values;

#[cfg(test)]
pub(super) use profiles::{EngineSwitches, constants};
#[cfg(test)]
pub(super) use table::table;
pub use values::{
    AlwaysIncludeUsage, ContextLengthExceededBehavior, ContextWord, Cors, DefaultMaxTokens,
    LogprobsShape, MessageWord, MirostatTargetUnit, SamplingBounds, SpeculationMode, SuffixMode,
    Switches, TextOffsetBase, ToolNames, UnknownFields, UsagePlace, UseModelDefaults,
    WhenModelNotReady,
};
