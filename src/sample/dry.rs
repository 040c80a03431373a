//! Stage 4: DRY (specification 5.1). A token that would continue a repetition loses the more, the
//! longer the repetition already is.

use super::DryParams;

/// Repetitions longer than this count as this long.
pub const MAX_LENGTH: usize = 50;

impl DryParams {
    /// What a token loses that would continue a repetition of `length` tokens; `None` if nothing.
    pub fn penalty(&self, length: usize) -> Option<f32> {
        let excess = length.checked_sub(self.allowed_length)?;
        Some(self.multiplier * self.base.powi(excess as i32))
    }
}

/// The DRY penalty and the text so far.
#[derive(Debug)]
pub(super) struct Dry {
    params: DryParams,
    /// Prompt and completion.
    pub(super) history: Vec<u32>,
    /// What [`Self::apply`] found: a token and the length of a repetition it would continue.
    continuations: Vec<(u32, usize)>,
}

impl Dry {
    /// `None` without parameters.
    pub(super) fn new(params: Option<&DryParams>, prompt: &[u32]) -> Option<Self> {
        params.map(|params| Self {
            params: params.clone(),
            history: prompt.to_vec(),
            continuations: Vec::new(),
        })
    }

    /// Takes a generated id in.
    pub(super) fn push(&mut self, id: u32) {
        self.history.push(id);
    }

    /// Subtracts the penalties, in at most `MAX_LENGTH` comparisons per token of the history. A
    /// finite logit stays finite: a penalty does not forbid.
    pub(super) fn apply(&mut self, logits: &mut [f32]) {
        self.find_continuations();
        for &(id, length) in &self.continuations {
            let z = logits.get_mut(id as usize).filter(|z| z.is_finite());
            if let (Some(z), Some(penalty)) = (z, self.params.penalty(length)) {
                *z = (*z - penalty).max(f32::MIN);
            }
        }
    }

    /// M(t) of every token t for which it is defined.
    fn find_continuations(&mut self) {
        self.continuations.clear();
        let Some((&last, earlier)) = self.history.split_last() else {
            return;
        };
        let breaks = |id: &u32| self.params.breakers.binary_search(id).is_ok();
        if breaks(&last) {
            return;
        }
        // No repetition reaches back over a breaker.
        let reach = earlier.iter().rev().take(MAX_LENGTH - 1);
        let reach = 1 + reach.take_while(|id| !breaks(id)).count();
        let ending = &self.history[self.history.len() - reach..];
        for (i, _) in earlier.iter().enumerate().filter(|&(_, &id)| id == last) {
            let next = self.history[i + 1];
            if !breaks(&next) {
                let pairs = self.history[..=i].iter().rev().zip(ending.iter().rev());
                let length = pairs.take_while(|(a, b)| a == b).count();
                self.continuations.push((next, length));
            }
        }
        // The longest of each token comes first and stays.
        let longest_first = |&(id, length): &(u32, usize)| (id, usize::MAX - length);
        self.continuations.sort_unstable_by_key(longest_first);
        self.continuations.dedup_by_key(|&mut (id, _)| id);
    }
}
