//! Follows a completion through the text that a request predicted for it.

use std::rc::Rc;

use super::ends::{LONGEST_MATCH, place_after};

/// Equal tokens that make a place of a prediction a likely one.
const PREDICTION_MATCH: usize = 2;
/// A completion that differs from the prediction may return to it this many tokens further on after
/// a single equal token.
const NEAR_TOKENS: usize = 16;

/// Follows a completion through its prediction. What it says depends on the tokens alone.
#[derive(Debug, Clone)]
pub struct Follower {
    prediction: Rc<[u32]>,
    /// Index of the token that is expected next.
    next: Option<usize>,
    /// Index of the token that was expected last.
    lost: usize,
    /// The last tokens of the completion.
    recent: Vec<u32>,
    /// Expected tokens that came. A completion that repeats a part of the prediction counts it again.
    met: usize,
}

impl Follower {
    /// A source at the start of a completion that may begin like `prediction`.
    pub fn new(prediction: Rc<[u32]>) -> Self {
        Self {
            next: (!prediction.is_empty()).then_some(0),
            prediction,
            lost: 0,
            recent: Vec::new(),
            met: 0,
        }
    }

    /// Follows the next token; whether it was the expected one, if any was.
    pub fn push(&mut self, id: u32) -> Option<bool> {
        let expected = self.next.map(|at| self.prediction[at] == id);
        if self.recent.len() == LONGEST_MATCH {
            self.recent.remove(0);
        }
        self.recent.push(id);
        let next = match (expected, self.next) {
            (Some(true), Some(at)) => {
                self.met += 1;
                Some(at + 1)
            }
            (_, at) => {
                self.lost = at.unwrap_or(self.lost);
                self.find()
            }
        };
        self.next = next.filter(|at| *at < self.prediction.len());
        expected
    }

    /// The number of tokens that were expected and came, at most the length of the prediction.
    pub fn met(&self) -> usize {
        self.met.min(self.prediction.len())
    }

    /// The tokens that are expected next.
    pub(super) fn expected(&self) -> &[u32] {
        self.next.map_or(&[], |at| &self.prediction[at..])
    }

    /// The place after the last tokens: one where several are equal, or a near one.
    fn find(&self) -> Option<usize> {
        let last_end = self.prediction.len();
        place_after(&self.prediction, last_end, &self.recent, PREDICTION_MATCH).or_else(|| {
            let near = self.prediction.iter().enumerate().skip(self.lost);
            let mut near = near.take(NEAR_TOKENS);
            let last = self.recent.last()?;
            near.find(|(_, id)| *id == last).map(|(at, _)| at + 1)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prediction_is_followed_through_changes() {
        let mut follower = Follower::new([1, 2, 3, 4, 5, 6, 7, 8].into());
        assert_eq!(follower.push(1), Some(true));
        // 9 in the place of 2.
        assert_eq!(follower.push(9), Some(false));
        assert!(follower.expected().is_empty());
        assert_eq!(follower.push(3), None);
        assert_eq!(follower.expected(), [4, 5, 6, 7, 8]);
        for id in 4..9 {
            assert_eq!(follower.push(id), Some(true));
        }
        assert_eq!((follower.expected(), follower.met()), (&[][..], 6));
        assert_eq!(follower.push(1), None);
        assert_eq!(follower.met(), 6);
    }

    #[test]
    fn an_empty_prediction_expects_nothing() {
        let mut follower = Follower::new([].into());
        assert_eq!((follower.push(1), follower.met()), (None, 0));
    }
}
