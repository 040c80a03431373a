//! Stage 2: ids of the prompt or the completion become less likely. The factor does not depend on how often
//! they occur.

use std::collections::BTreeSet;

/// The repetition penalty and the ids it applies to.
#[derive(Debug)]
pub(super) struct Repetition {
    penalty: f32,
    pub(super) seen: BTreeSet<u32>,
}

impl Repetition {
    /// `None` if `penalty` is 1.
    pub(super) fn new(penalty: f32, prompt: &[u32]) -> Option<Self> {
        (penalty != 1.0).then(|| Self {
            penalty,
            seen: prompt.iter().copied().collect(),
        })
    }

    /// Records a generated id.
    pub(super) fn push(&mut self, id: u32) {
        self.seen.insert(id);
    }

    /// Divides positive and multiplies negative logits. Finite logits stay finite, even where the
    /// smallest valid penalty is 0 in f32: a penalty neither forbids a token nor forces it.
    pub(super) fn apply(&self, logits: &mut [f32]) {
        for &id in &self.seen {
            let Some(z) = logits.get_mut(id as usize).filter(|z| z.is_finite()) else {
                continue;
            };
            let penalized = if *z > 0.0 {
                *z / self.penalty
            } else {
                *z * self.penalty
            };
            *z = penalized.clamp(f32::MIN, f32::MAX);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Repetition;

    #[test]
    fn extremes_neither_forbid_nor_force() {
        let mut z = [f32::MAX, 1.0, 0.0, -1.0, f32::MIN, f32::NEG_INFINITY];
        let ids = [0, 1, 2, 3, 4, 5];
        for penalty in [0.0, 1e-40, 2.0] {
            let mut penalized = z;
            let stage = Repetition::new(penalty, &ids).unwrap();
            stage.apply(&mut penalized);
            assert!(
                penalized[..5].iter().all(|z| z.is_finite()),
                "{penalized:?}"
            );
            assert_eq!(penalized[5], f32::NEG_INFINITY);
        }
        Repetition::new(2.0, &[9]).unwrap().apply(&mut z);
        assert_eq!(z[..4], [f32::MAX, 1.0, 0.0, -1.0], "an id beyond the row");
        assert!(Repetition::new(1.0, &ids).is_none());
    }
}
