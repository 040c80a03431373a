//! Guesses the next tokens of a candidate without the model: what a constraint forces, and what follows where the end of
//! its text occurred before, in the request's prediction, in the prompt or in the text itself. Records how often each
//! source was right, the model's drafts included. The sources are `follower` and `look_up`. Whether a guess is worth a step
//! is decided in `costs`, and what is right in `verify`.

mod ends;
mod follower;
mod look_up;

use std::rc::Rc;

pub use follower::Follower;
use look_up::LookUp;

/// The text that a request expects as its completion, by token ids, and the limits of drafts.
#[derive(Debug, Clone, PartialEq)]
pub struct DraftRules {
    /// The tokens that the completion is expected to have, or to resemble.
    pub prediction: Option<Rc<[u32]>>,
    /// Shorter drafts are not worth a step.
    pub min_tokens: usize,
    /// Drafts are no longer than this; 0 drafts nothing.
    pub max_tokens: usize,
}

impl Default for DraftRules {
    fn default() -> Self {
        Self {
            prediction: None,
            min_tokens: 0,
            max_tokens: usize::MAX,
        }
    }
}

/// The draft from the tokens that a constraint forced.
#[derive(Debug, Default)]
struct Forced {
    /// Tokens that are expected next.
    tokens: Vec<u32>,
}

impl Forced {
    fn push(&mut self, id: u32) -> Option<bool> {
        let came = *self.tokens.first()? == id;
        match came {
            true => drop(self.tokens.remove(0)),
            false => self.tokens.clear(),
        }
        Some(came)
    }
}

/// The share of expected tokens that came; recent ones count most.
#[derive(Debug, Clone, Copy)]
struct Acceptance(f64);

impl Acceptance {
    fn note(&mut self, came: Option<bool>) {
        const WEIGHT: f64 = 0.1;
        if let Some(came) = came {
            self.0 += WEIGHT * (f64::from(u8::from(came)) - self.0);
        }
    }
}

/// The tokens that may come next.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Draft {
    pub(super) tokens: Vec<u32>,
    /// The probability that each of them is right if those before it are, by the tokens so far.
    pub(super) acceptance: f64,
}

/// The draft that a step verifies.
#[derive(Debug, PartialEq)]
pub(super) enum PlannedDraft {
    /// These tokens.
    Tokens(Vec<u32>),
    /// The number of tokens that the model drafts in the step.
    OfModel(usize),
}

/// Drafts for one candidate.
#[derive(Debug)]
pub(super) struct Drafter {
    forced: (Forced, Acceptance),
    prediction: Option<(Follower, Acceptance)>,
    look_up: Option<(LookUp, Acceptance)>,
    /// The drafts of the model.
    model: Acceptance,
    /// Tokens of the candidate that it has seen.
    seen: usize,
}

impl Drafter {
    /// The drafts at the start of a candidate of `prompt`.
    pub(super) fn new(prompt: &[u32], rules: &DraftRules, looks_up: bool) -> Self {
        let follow = |it: &Rc<[u32]>| (Follower::new(it.clone()), Acceptance(0.8));
        Self {
            forced: (Forced::default(), Acceptance(0.9)),
            prediction: rules.prediction.as_ref().map(follow),
            look_up: looks_up.then(|| (LookUp::new(prompt), Acceptance(0.6))),
            model: Acceptance(0.7),
            seen: 0,
        }
    }

    /// Follows the candidate, which has `chosen` these tokens.
    pub(super) fn follow(&mut self, chosen: &[u32]) {
        for &id in chosen.iter().skip(self.seen) {
            let (forced, acceptance) = &mut self.forced;
            acceptance.note(forced.push(id));
            if let Some((follower, acceptance)) = &mut self.prediction {
                acceptance.note(follower.push(id));
            }
            if let Some((look_up, acceptance)) = &mut self.look_up {
                acceptance.note(look_up.push(id));
            }
        }
        self.seen = chosen.len();
    }

    /// Whether it follows all that the constraint forced before, so that more may be forced now.
    pub(super) fn is_free(&self) -> bool {
        self.forced.0.tokens.is_empty()
    }

    /// The constraint forces these tokens next.
    pub(super) fn force(&mut self, tokens: Vec<u32>) {
        self.forced.0.tokens = tokens;
    }

    /// The share of the model's drafted tokens that were right where those before them were.
    pub(super) fn model_acceptance(&self) -> f64 {
        self.model.0
    }

    /// The first `right` of the `drafted` tokens of the model were right.
    pub(super) fn note_model(&mut self, drafted: usize, right: usize) {
        (0..right).for_each(|_| self.model.note(Some(true)));
        if right < drafted {
            self.model.note(Some(false));
        }
    }

    /// At most `most` tokens below `vocab_size`: what is forced, or else from the source that was right more often.
    pub(super) fn draft(&self, most: usize, vocab_size: usize) -> Draft {
        let mut best = Draft::default();
        let (Forced { tokens }, acceptance) = &self.forced;
        if !tokens.is_empty() {
            return Draft {
                tokens: tokens[..tokens.len().min(most)].to_vec(),
                acceptance: acceptance.0,
            };
        }
        if let Some((follower, acceptance)) = &self.prediction {
            let expected = follower.expected();
            best = Draft {
                tokens: expected[..expected.len().min(most)].to_vec(),
                acceptance: acceptance.0,
            };
        }
        if let Some((look_up, acceptance)) = &self.look_up
            && (best.tokens.is_empty() || acceptance.0 > best.acceptance)
        {
            let tokens = look_up.expected(most);
            if !tokens.is_empty() {
                let acceptance = acceptance.0;
                best = Draft { tokens, acceptance };
            }
        }
        // Positions of images have numbers beyond the vocabulary.
        let known = best
            .tokens
            .iter()
            .take_while(|id| (**id as usize) < vocab_size);
        let known = known.count();
        best.tokens.truncate(known);
        best
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drafter(prompt: &[u32], prediction: Option<&[u32]>) -> Drafter {
        let rules = DraftRules {
            prediction: prediction.map(Rc::from),
            ..DraftRules::default()
        };
        Drafter::new(prompt, &rules, true)
    }

    #[test]
    fn a_repeated_beginning_is_looked_up() {
        let prompt = [1, 2, 3, 4, 5, 6, 9, 2, 3, 4];
        let mut drafter = drafter(&prompt, None);
        assert_eq!(drafter.draft(3, 100).tokens, [5, 6, 9]);
        drafter.follow(&[5]);
        assert_eq!(drafter.draft(2, 100).tokens, [6, 9]);
        drafter.follow(&[5, 7]);
        let nothing = Draft::default();
        assert_eq!(drafter.draft(2, 100), nothing, "nothing resembles 4 5 7");
    }

    #[test]
    fn the_longest_match_counts_and_the_last_of_equal_ones() {
        let prompt = [8, 1, 2, 3, 10, 9, 1, 2, 3, 20, 7, 1, 2, 3, 30, 9, 1, 2, 3];
        assert_eq!(drafter(&prompt, None).draft(1, 100).tokens, [20]);
        let prompt = [1, 2, 3, 10, 1, 2, 3, 20, 7, 1, 2, 3];
        assert_eq!(drafter(&prompt, None).draft(1, 100).tokens, [20]);
    }

    #[test]
    fn a_loop_goes_on_after_its_end() {
        let drafter = drafter(&[1, 2, 1, 2, 1, 2], None);
        assert_eq!(drafter.draft(5, 100).tokens, [1, 2, 1, 2, 1]);
        let ones = self::drafter(&[1, 1, 1, 1], None);
        assert_eq!(ones.draft(3, 100).tokens, [1, 1, 1]);
    }

    #[test]
    fn drafts_end_at_positions_of_images() {
        let prompt = [1, 2, 3, 4, u32::MAX, 5, 1, 2, 3];
        assert_eq!(drafter(&prompt, None).draft(4, 100).tokens, [4]);
    }

    #[test]
    fn the_source_that_was_right_is_used() {
        let prompt = [1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3];
        let mut drafter = drafter(&prompt, Some(&[4, 9, 9, 9]));
        assert_eq!(drafter.draft(2, 100).tokens, [4, 9]);
        drafter.follow(&[4, 5, 6]);
        assert_eq!(drafter.draft(2, 100).tokens, [7, 8]);
        drafter.follow(&[4, 5, 6, 7, 8]);
        let draft = drafter.draft(1, 100);
        assert!(draft.acceptance > 0.75, "{draft:?}");
    }

    #[test]
    fn what_a_constraint_forces_goes_first() {
        let mut drafter = drafter(&[1, 2, 3, 4, 1, 2, 3], None);
        drafter.force(vec![7, 8, 9]);
        assert_eq!(drafter.draft(2, 100).tokens, [7, 8]);
        drafter.follow(&[7]);
        assert!(!drafter.is_free());
        assert_eq!(drafter.draft(5, 100).tokens, [8, 9]);
        drafter.follow(&[7, 3]);
        assert!(drafter.is_free());
    }

    #[test]
    fn drafts_of_the_model_count_up_to_the_first_wrong_token() {
        let mut drafter = drafter(&[1], None);
        let before = drafter.model_acceptance();
        drafter.note_model(3, 3);
        let after = drafter.model_acceptance();
        assert!(after > before);
        drafter.note_model(3, 0);
        assert!(drafter.model_acceptance() < after);
    }
}
