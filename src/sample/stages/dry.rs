//! Stage 4: DRY (specification 5.1). The penalty of a token that would continue a repetition grows with
//! the length of that repetition.

use std::rc::Rc;

/// Repetitions longer than this count as this long.
pub const MAX_LENGTH: usize = 50;

/// DRY, "don't repeat yourself" (specification 5.1).
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(
    feature = "test-hooks",
    derive(serde::Deserialize),
    serde(rename_all = "camelCase", deny_unknown_fields)
)]
pub struct DryParams {
    /// The multiplier, above 0.
    pub multiplier: f32,
    /// The base of the penalty, at least 1.
    pub base: f32,
    /// Repetitions shorter than this are not penalized.
    pub allowed_length: usize,
    /// Ids whose text contains a sequence breaker, ascending.
    #[cfg_attr(feature = "test-hooks", serde(deserialize_with = "shared"))]
    pub breakers: Rc<[u32]>,
}

#[cfg(feature = "test-hooks")]
fn shared<'de, D: serde::Deserializer<'de>>(ids: D) -> Result<Rc<[u32]>, D::Error> {
    <Vec<u32> as serde::Deserialize>::deserialize(ids).map(Rc::from)
}

impl DryParams {
    /// The penalty of a token that would continue a repetition of `length` tokens; `None` if there is
    /// none.
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
    /// Scratch of [`Self::apply`]: tokens and the length of a repetition that each would continue.
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

    /// Records a generated id.
    pub(super) fn push(&mut self, id: u32) {
        self.history.push(id);
    }

    /// Subtracts the penalties, in at most `MAX_LENGTH` comparisons per token of the history. A
    /// finite logit stays finite: a penalty forbids nothing.
    pub(super) fn apply(&mut self, logits: &mut [f32]) {
        self.find_continuations();
        for &(id, length) in &self.continuations {
            let z = logits.get_mut(id as usize).filter(|z| z.is_finite());
            if let (Some(z), Some(penalty)) = (z, self.params.penalty(length)) {
                *z = (*z - penalty).max(f32::MIN);
            }
        }
    }

    /// The length M(t) of the longest repetition that token t would continue, for every t that
    /// continues one.
    fn find_continuations(&mut self) {
        self.continuations.clear();
        let Some((&last, earlier)) = self.history.split_last() else {
            return;
        };
        let breaks = |id: &u32| self.params.breakers.binary_search(id).is_ok();
        if breaks(&last) {
            return;
        }
        // No repetition extends across a breaker.
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
        // The longest repetition of each token sorts first and is kept.
        let longest_first = |&(id, length): &(u32, usize)| (id, usize::MAX - length);
        self.continuations.sort_unstable_by_key(longest_first);
        self.continuations.dedup_by_key(|&mut (id, _)| id);
    }
}
