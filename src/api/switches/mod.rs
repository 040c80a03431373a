//! Settings of the endpoint: their types and their presets.

mod profiles;
mod values;

#[cfg(test)]
pub(super) use profiles::EngineSwitches;
pub use values::{
    ContextLengthExceededBehavior, ContextWord, Cors, DefaultMaxTokens, MirostatTargetUnit,
    SuffixMode, Switches, TextOffsetBase, UnknownFields, WhenModelNotReady,
};
