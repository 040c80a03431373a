//! The header of a safetensors file.

use inpage::weights::safetensors;

use crate::padded::Padded;

pub fn run(input: &[u8]) {
    let _ = pollster::block_on(safetensors::read("model.safetensors", &Padded(input)));
}
