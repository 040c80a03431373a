//! The states of a recurrent layer: a slot of fixed size for each sequence or snapshot.

use std::ops::Range;

use burn::tensor::{Device, Int, Tensor};

use super::{in_place::InPlace, step};
use crate::device::reserve_words;

/// The states of one layer, f32: `[slot, words]`. A clone on the GPU shares the memory.
///
/// A slot begins with the inputs that the layer's convolution kept, `[taps - 1, channels]`; the state of its recurrence
/// follows. A slot is not read before the first token of a sequence has written it.
#[derive(Debug, Clone)]
pub struct StateMemory {
    words: InPlace,
    slot_words: usize,
}

impl StateMemory {
    /// Reserves `slots` slots of at least `words` words.
    pub fn new(slots: usize, words: usize, device: &Device) -> Self {
        let slot_words = Self::slot_words_of(words);
        Self {
            words: InPlace::new(reserve_words(slots * slot_words, device)),
            slot_words,
        }
    }

    /// Words of a slot that holds `words` words: whole vectors, in which slots are copied.
    pub fn slot_words_of(words: usize) -> usize {
        words.next_multiple_of(4)
    }

    /// Words of a slot.
    pub fn slot_words(&self) -> usize {
        self.slot_words
    }

    /// The words, to read.
    pub fn words(&self) -> Tensor<1, Int> {
        self.words.get()
    }

    /// The words, to change in place and [`put`](Self::put) back.
    pub(super) fn take(&mut self) -> Tensor<1, Int> {
        self.words.take()
    }

    pub(super) fn put(&mut self, words: Tensor<1, Int>) {
        self.words.put(words);
    }
}

/// For each sequence of a step of at most `tokens` rows: its rows, whether it begins with them, and its slot in
/// `memory`.
///
/// # Panics
/// If two sequences have one slot.
pub(super) fn sequences<'a>(
    step: &[u32],
    tokens: usize,
    memory: &'a mut [f32],
    slot_words: usize,
) -> impl Iterator<Item = (Range<usize>, bool, &'a mut [f32])> {
    let mut slots: Vec<_> = memory.chunks_exact_mut(slot_words).map(Some).collect();
    step::sequences(step, tokens).into_iter().map(move |rows| {
        let slot = slots[step::row_state(step, rows.start)].take();
        let is_new = step::row_position(step, rows.start) == 0;
        (rows, is_new, slot.expect("a slot per sequence"))
    })
}
