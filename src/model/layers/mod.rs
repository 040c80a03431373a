//! The layers of a decoder as burn modules over `ops`. Fields have the names of GGUF tensors. `load`
//! decides from a `ModelConfig` what a layer consists of.
//!
//! Order, lowest first: `low_rank`, `linear`, `attention` and `experts`, `feed_forward`, `decoder`, `tower`.

pub mod attention;
pub mod decoder;
pub mod experts;
pub mod feed_forward;
pub mod linear;
pub mod low_rank;
pub mod tower;
