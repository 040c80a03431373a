//! The transformer as burn modules. Knows layers and weights' names, not requests or text.

pub mod causal;
