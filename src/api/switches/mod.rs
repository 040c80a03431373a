//! Settings of the endpoint: their types and their presets.

mod profiles;
mod read;
#[cfg(test)]
mod table;
#[cfg(test)]
mod typescript;
mod values;

#[cfg(test)]
pub(super) use table::table;
#[cfg(test)]
pub(super) use typescript::{EngineSwitches, constants};
pub use values::{
    AlwaysIncludeUsage, ContextLengthExceededBehavior, ContextWord, Cors, DefaultMaxTokens,
    LogprobsShape, MessageWord, MirostatTargetUnit, SamplingBounds, SpeculationMode, SuffixMode,
    Switches, TextOffsetBase, ToolNames, UnknownFields, UsagePlace, UseModelDefaults,
    WhenModelNotReady,
};
