//! Every kernel against its CPU twin at awkward sizes, on the machine's Vulkan, Metal or D3D12
//! device, and on the CPU device. A missing device fails the test: a driver is part of the set-up.
#![allow(clippy::too_many_lines, reason = "a test may be a long list of cases")]

#[path = "../shared_gpus/mod.rs"]
mod shared_gpus;

mod fixture;
mod given_rows;

mod attention;
mod cpu;
mod experts;
mod latent;
mod logits;
mod norms;
mod recurrence;
mod recurrent;
mod refused;
mod sampling;
mod self_test;
mod sequences;
mod weights;
mod whole_attention;

/// The naive sampler, which reports how close its decisions were.
#[path = "../../src/sample/tests/reference.rs"]
mod reference;

/// Imported under the path that `reference` uses.
use inpage::sample;
