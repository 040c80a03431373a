//! The part of a layer that mixes the tokens of a sequence, and its memory of them.

use burn::tensor::Tensor;

use super::{attention::Attention, recurrent::Recurrent};
use crate::ops::{Variant, kv_memory::KvMemory, state_memory::StateMemory, step::Step};

/// Attention, a recurrence, or both. Boxed, so that a layer is small: a load moves it on the stack.
#[derive(Debug, Clone)]
pub enum Mixer {
    /// Attention.
    Attention(Box<Attention>),
    /// A recurrence.
    Recurrent(Box<Recurrent>),
    /// Attention and a recurrence, side by side.
    Both(Box<AttentionAndRecurrence>),
}

/// Attention and a recurrence of the same input, whose outputs are added to the residual stream.
#[derive(Debug, Clone)]
pub struct AttentionAndRecurrence {
    /// The attention.
    pub attention: Attention,
    /// The recurrence.
    pub recurrent: Recurrent,
}

/// A memory of all sequences in a layer. A clone on the GPU shares it.
#[derive(Debug, Clone)]
pub enum LayerMemory {
    /// Keys and values of every token, for attention.
    Kv(KvMemory),
    /// A state per sequence, for a recurrence.
    States(StateMemory),
}

impl Mixer {
    /// `x` `[tokens, dim]`. The layer's memories are the first of `memories`.
    ///
    /// # Panics
    /// If the memories are those of a layer of another kind.
    pub fn forward(&self, x: Tensor<2>, memories: &mut [LayerMemory], step: &Step) -> Tensor<2> {
        match (self, memories) {
            (Mixer::Attention(layer), [LayerMemory::Kv(kv), ..]) => layer.forward(x, kv, step),
            (Mixer::Recurrent(layer), [LayerMemory::States(states), ..]) => {
                layer.forward(x, states, step)
            }
            (Mixer::Both(layer), [LayerMemory::Kv(kv), LayerMemory::States(states), ..]) => {
                let sum = layer.attention.forward(x.clone(), kv, step);
                layer.recurrent.onto(sum, x, states, step)
            }
            _ => panic!("the memory of a layer of another kind"),
        }
    }

    /// Uses the kernels of `variant` from now on.
    pub fn set_variant(&mut self, variant: Variant) {
        match self {
            Mixer::Attention(layer) => layer.set_variant(variant),
            Mixer::Recurrent(layer) => layer.set_variant(variant),
            Mixer::Both(layer) => {
                layer.attention.set_variant(variant);
                layer.recurrent.set_variant(variant);
            }
        }
    }

    /// The attention and the recurrence, where there are some.
    pub fn parts_mut(&mut self) -> (Option<&mut Attention>, Option<&mut Recurrent>) {
        match self {
            Mixer::Attention(layer) => (Some(layer), None),
            Mixer::Recurrent(layer) => (None, Some(layer)),
            Mixer::Both(layer) => (Some(&mut layer.attention), Some(&mut layer.recurrent)),
        }
    }
}
