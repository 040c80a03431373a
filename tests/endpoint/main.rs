//! The endpoint through its one door, `Handler::handle`, with a real engine and tokenizer and a
//! model without weights. Tests carry the numbers of the conformance cases they check.

mod fixture;

mod constrained;
mod context;
mod cuts;
mod documentation;
mod fields;
mod http;
mod lifecycle;
mod logprobs;
mod matrix;
mod objects;
mod resumed;
mod sampling;
mod several;
mod streaming;
mod suffix;
mod text;
