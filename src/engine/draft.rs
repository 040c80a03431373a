//! Guesses the next tokens of a candidate without the model: what a constraint forces, and what follows where the end of
//! its text occurred before, in the request's prediction, in the prompt or in the text itself. Records how often each
//! source was right, the model's drafts included. Whether a guess is worth a step is decided in `costs`, and what is right
//! in `verify`.

use std::collections::HashMap;
use std::rc::Rc;

/// Tokens that are compared at most to find the place that resembles the end of a text most.
const LONGEST_MATCH: usize = 16;
/// Equal tokens that make a place of the prompt or of the text a likely one.
const LOOK_UP_MATCH: usize = 3;
/// Places with equal ends that are compared at most, the last ones first. It bounds the time of a look-up in a text that
/// repeats a few tokens all the time.
const MAX_PLACES: usize = 64;
/// Equal tokens that make a place of a prediction a likely one.
const PREDICTION_MATCH: usize = 2;
/// A completion that differs from the prediction may return to it this many tokens further on after
/// a single equal token.
const NEAR_TOKENS: usize = 16;

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
    fn expected(&self) -> &[u32] {
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

/// Looks the end of a text up in the text before it.
#[derive(Debug, Default)]
struct LookUp {
    text: Vec<u32>,
    /// Index of the token that came next there.
    next: Option<usize>,
    /// Where the last tokens before each place were seen last: the end of that place.
    ends: HashMap<[u32; LOOK_UP_MATCH], usize>,
    /// For each end, counted from the first possible one, the end before it with equal last tokens; 0 if there is none.
    earlier: Vec<usize>,
}

impl LookUp {
    fn new(prompt: &[u32]) -> Self {
        let mut it = Self::default();
        for &id in prompt {
            it.add(id);
        }
        it.next = it.find();
        it
    }

    fn push(&mut self, id: u32) -> Option<bool> {
        let expected = self.next.map(|at| self.text[at] == id);
        self.add(id);
        self.next = match (expected, self.next) {
            (Some(true), Some(at)) => Some(at + 1),
            _ => self.find(),
        };
        expected
    }

    /// Appends a token to the text and its end to the index.
    fn add(&mut self, id: u32) {
        self.text.push(id);
        if let Some(last) = self.text.last_chunk::<LOOK_UP_MATCH>() {
            let end = self.text.len();
            self.earlier.push(self.ends.insert(*last, end).unwrap_or(0));
        }
    }

    /// The end of the place that resembles the end of the text most, the last one if there are several.
    fn find(&self) -> Option<usize> {
        let earlier = |end: usize| {
            let at = end.checked_sub(LOOK_UP_MATCH)?;
            self.earlier.get(at).copied().filter(|end| *end > 0)
        };
        let ends = std::iter::successors(earlier(self.text.len()), |end| earlier(*end));
        let mut best = (0, None);
        for end in ends.take(MAX_PLACES) {
            let equal = equal_ends(&self.text[..end], &self.text);
            if equal > best.0 {
                best = (equal, Some(end));
            }
            if equal == LONGEST_MATCH {
                break;
            }
        }
        best.1
    }

    /// The next `count` tokens, if the text goes on as it did there.
    fn expected(&self, count: usize) -> Vec<u32> {
        let mut tokens = Vec::new();
        if let Some(at) = self.next {
            for at in at..at + count {
                // A text that repeats itself goes on after its own end.
                let token = self.text.get(at).copied();
                tokens.push(token.unwrap_or_else(|| tokens[at - self.text.len()]));
            }
        }
        tokens
    }
}

/// Where at least `least` tokens of `source` before index `last_end` equal the last ones of `text`: the place with the
/// most of them, the last one if there are several.
fn place_after(source: &[u32], last_end: usize, text: &[u32], least: usize) -> Option<usize> {
    let last = *text.last()?;
    let mut best = (least - 1, None);
    for end in (least..=last_end).rev() {
        if source[end - 1] != last {
            continue;
        }
        let equal = equal_ends(&source[..end], text);
        if equal > best.0 {
            best = (equal, Some(end));
        }
        if equal == LONGEST_MATCH {
            break;
        }
    }
    best.1
}

/// How many of the last tokens of two texts are equal, at most [`LONGEST_MATCH`].
fn equal_ends(a: &[u32], b: &[u32]) -> usize {
    let pairs = a.iter().rev().zip(b.iter().rev()).take(LONGEST_MATCH);
    pairs.take_while(|(a, b)| a == b).count()
}

/// Follows what a constraint forced.
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

/// Tokens that may come next.
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
    /// So many tokens that the model drafts in the step.
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

    /// How likely a token of the model's drafts is right if those before it are, by the drafts so far.
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

    /// The index finds what a comparison with every place finds.
    #[test]
    fn the_index_finds_the_place_that_resembles_the_end_most() {
        for (alphabet, seed) in [(2u32, 1u32), (3, 2), (5, 3), (50, 4)] {
            let mut look_up = LookUp::default();
            let mut random = seed;
            for _ in 0..60 {
                random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                look_up.add((random >> 16) % alphabet);
                let text = &look_up.text;
                let last_end = text.len() - 1;
                let expected = place_after(text, last_end, text, LOOK_UP_MATCH);
                assert_eq!(look_up.find(), expected, "{text:?}");
            }
        }
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
