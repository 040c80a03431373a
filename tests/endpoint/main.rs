//! The endpoint through `Handler::handle`, with a real engine and tokenizer and a model without weights. The
//! names of tests contain the numbers of the conformance cases that they check.
#![allow(clippy::too_many_lines, reason = "a test may be a long list of cases")]

mod fireworks;
mod fixture;

mod arbitrary_embeddings;
mod chat;
mod chat_fields;
mod compact;
mod constrained;
mod context;
mod cuts;
mod documentation;
mod embeddings;
mod fields;
mod functions;
mod http;
mod image_counts;
mod images;
mod lifecycle;
mod llama_cpp;
mod logprobs;
mod matrix;
mod messages;
mod objects;
mod open_responses;
mod profiles;
mod refused;
mod rerank;
mod responses;
mod resumed;
mod sampling;
mod schemas;
mod several;
mod sglang;
mod streaming;
mod suffix;
mod text;
mod thinking;
mod tokenize;
mod vllm;
