//! The layers of a decoder as burn modules over `ops`. Fields have the names of GGUF tensors. `load`
//! decides from a `ModelConfig` what a layer consists of.
//!
//! Order, lowest first: `low_rank`, `linear`, `latent`, `attention`, `recurrent`, `experts` and `layer_input`, `mixer` and
//! `feed_forward`, `mtp_head`, `token_types`, `decoder`, `tower`.
//!
//! Six dispatches per layer: norm + QKV, rope + KV write, attention, output projection + residual, norm + gate + up +
//! activation, down projection + residual; three per step: embedding, norm + output projection, argmax. The norm needs
//! no pass of its own: the lanes of a row read all of the input anyway, so the sum of squares is a by-product of the
//! dot product, and the scale is applied to the result. Norms on both sides (Gemma) and layer norms need a dispatch
//! each. Where barriers are cheap, attention of few rows is split over the context: one dispatch rotates, writes K and
//! V and attends per split, one joins the splits. A row computes K of earlier rows of its step again, so nothing is
//! read that the dispatch writes. Which blocks a split covers depends on the position alone.
//!
//! A recurrent layer takes a dispatch for each group of joined matrices, one for the convolution, one for the recurrence,
//! one for its gated norm and one for the output; steps of many tokens take a second one for what a convolution keeps.
//!
//! Multi-head latent attention attends in the space of the latent, so that a token has one key and one value however many heads
//! there are: a product per head before attention, and one behind it.

pub mod attention;
pub mod decoder;
pub mod experts;
pub mod feed_forward;
pub mod latent;
pub mod layer_input;
pub mod linear;
pub mod low_rank;
pub mod mixer;
pub mod mtp_head;
pub mod recurrent;
pub mod token_types;
pub mod tower;
