//! What mixes the tokens of a sequence in a layer, and its memory of them.

use burn::{module::Module, tensor::Tensor};

use super::{attention::Attention, recurrent::Recurrent};
use crate::ops::{Variant, kv_memory::KvMemory, state_memory::StateMemory, step::Step};

/// Attention, or a recurrence.
#[allow(clippy::large_enum_variant)] // One per layer; a box would save nothing.
#[derive(Module, Debug)]
pub enum Mixer {
    /// Attention.
    Attention(Attention),
    /// A recurrence.
    Recurrent(Recurrent),
}

/// The memory of all sequences in a layer. A clone on the GPU shares it.
#[derive(Debug, Clone)]
pub enum LayerMemory {
    /// Keys and values of every token, for attention.
    Kv(KvMemory),
    /// A state per sequence, for a recurrence.
    States(StateMemory),
}

impl Mixer {
    /// `x` `[tokens, dim]`.
    ///
    /// # Panics
    /// If the memory is that of a layer of another kind.
    pub fn forward(&self, x: Tensor<2>, memory: &mut LayerMemory, step: &Step) -> Tensor<2> {
        match (self, memory) {
            (Mixer::Attention(layer), LayerMemory::Kv(kv)) => layer.forward(x, kv, step),
            (Mixer::Recurrent(layer), LayerMemory::States(states)) => {
                layer.forward(x, states, step)
            }
            _ => panic!("the memory of a layer of another kind"),
        }
    }

    /// Uses the kernels of `variant` from now on.
    pub fn set_variant(&mut self, variant: Variant) {
        match self {
            Mixer::Attention(layer) => layer.set_variant(variant),
            Mixer::Recurrent(layer) => layer.set_variant(variant),
        }
    }
}
