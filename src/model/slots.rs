//! Assigns samplers to slots of the device's memory. The state of a sampler belongs to its owner on
//! the host; a slot is a copy that the device updates while it chooses.

use burn::tensor::Device;

use super::steps::sizes::MAX_BATCH;
use crate::ops::sample::{SamplerMemory, SamplerShape};
use crate::sample::Sampler;

/// The copy in a slot.
#[derive(Debug, Clone, Copy)]
struct Resident {
    sampler: u64,
    /// Tokens that the copy includes.
    position: usize,
    /// The call that used it last.
    used: u64,
}

/// A slot for each row of the largest batch.
pub(super) struct Slots {
    pub(super) memory: SamplerMemory,
    residents: [Option<Resident>; MAX_BATCH],
    calls: u64,
}

impl Slots {
    /// Slots for rows of `vocab` logits and sequences of `context_tokens`.
    pub(super) fn new(vocab: usize, context_tokens: usize, device: &Device) -> Self {
        Self {
            memory: SamplerMemory::new(Self::shape(vocab, context_tokens), device),
            residents: [None; MAX_BATCH],
            calls: 0,
        }
    }

    /// The sizes that [`Slots::new`] chooses.
    pub(super) fn shape(vocab: usize, context_tokens: usize) -> SamplerShape {
        SamplerShape {
            slots: MAX_BATCH,
            vocab,
            // The last token of a full context is chosen, but never fed.
            history_tokens: context_tokens + 1,
        }
    }

    /// Returns the slots of samplers, at most as many as there are slots. Loads the samplers that
    /// are not on the device or whose copy is outdated.
    pub(super) fn place<'a>(&mut self, samplers: impl Iterator<Item = &'a Sampler>) -> Vec<usize> {
        self.calls += 1;
        let samplers: Vec<&Sampler> = samplers.collect();
        let is_of = |resident: &Option<Resident>, sampler: &Sampler| {
            resident.is_some_and(|it| it.sampler == sampler.identity())
        };
        let known = samplers.iter().map(|sampler| {
            let mut residents = self.residents.iter();
            residents.position(|resident| is_of(resident, sampler))
        });
        let known: Vec<Option<usize>> = known.collect();
        for slot in known.iter().flatten() {
            if let Some(resident) = &mut self.residents[*slot] {
                resident.used = self.calls;
            }
        }
        let rows = samplers.into_iter().zip(known);
        rows.map(|(sampler, known)| {
            let slot = known.unwrap_or_else(|| self.least_used());
            let is_current = self.residents[slot].is_some_and(|it| {
                it.sampler == sampler.identity() && it.position == sampler.position()
            });
            if !is_current {
                self.memory.load(slot, sampler);
            }
            self.keep(slot, sampler);
            slot
        })
        .collect()
    }

    /// Marks the copy in a slot as current: the device chose all tokens that `sampler` has accepted since.
    pub(super) fn keep(&mut self, slot: usize, sampler: &Sampler) {
        self.residents[slot] = Some(Resident {
            sampler: sampler.identity(),
            position: sampler.position(),
            used: self.calls,
        });
    }

    /// Drops the copies in slots, which may be ahead of their samplers.
    pub(super) fn forget(&mut self, slots: &[usize]) {
        for slot in slots {
            self.residents[*slot] = None;
        }
    }

    fn least_used(&self) -> usize {
        let slots = 0..self.residents.len();
        let used = |slot: &usize| self.residents[*slot].map_or(0, |it| it.used);
        slots.min_by_key(used).expect("there are slots")
    }
}
