//! Stage 3: ids of the completion become less likely, once per occurrence (frequency) and once at all
//! (presence). The prompt does not count.

use std::collections::BTreeMap;

/// The frequency and presence penalties and how often each id was generated.
#[derive(Debug)]
pub(super) struct FrequencyPresence {
    frequency: f32,
    presence: f32,
    pub(super) counts: BTreeMap<u32, u32>,
}

impl FrequencyPresence {
    /// `None` if both penalties are 0.
    pub(super) fn new(frequency: f32, presence: f32) -> Option<Self> {
        (frequency != 0.0 || presence != 0.0).then(|| Self {
            frequency,
            presence,
            counts: BTreeMap::new(),
        })
    }

    /// Records a generated id.
    pub(super) fn push(&mut self, id: u32) {
        *self.counts.entry(id).or_default() += 1;
    }

    /// Subtracts the penalties.
    pub(super) fn apply(&self, logits: &mut [f32]) {
        for (&id, &count) in &self.counts {
            if let Some(z) = logits.get_mut(id as usize) {
                *z -= count as f32 * self.frequency + self.presence;
            }
        }
    }
}
