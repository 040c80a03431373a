//! Every kernel against its CPU twin at sizes that fill no tile, on the machine's Vulkan, Metal or D3D12
//! device. A missing device fails the tests, because a driver is part of the set-up.

mod fixture;

mod attention;
mod experts;
mod logits;
mod norms;
mod sampling;
mod self_test;
mod sequences;
mod weights;

/// The naive sampler, which reports how close its decisions were.
#[path = "../../src/sample/tests/reference.rs"]
mod reference;

/// Imported under the path that `reference` uses.
use inpage::sample;
