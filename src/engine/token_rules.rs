//! The tokens that a request forbids besides its constraint, by their ids and the tokens generated so far, and those that end a
//! span of bounded length.

use std::rc::Rc;

use crate::sample::TokenMask;

/// Forbids tokens. The kind of model and the prompt do not matter.
#[derive(Debug, Clone, PartialEq)]
pub struct TokenRules {
    /// The ids that are never forbidden by themselves.
    allowed: TokenMask,
    /// Whether `allowed` has the whole vocabulary.
    allows_all: bool,
    /// The stop ids of the request are forbidden until this many tokens are generated.
    min_tokens: usize,
    /// Sequences of at least two ids, none of which may be completed.
    sequences: Vec<Vec<u32>>,
    /// Bounds the reasoning at the beginning.
    budget: Option<SpanBudget>,
}

/// The longest span between two tags.
#[derive(Debug, Clone, PartialEq)]
pub struct SpanBudget {
    /// The ids that begin the span; empty if it has begun before the first token.
    pub open: Vec<u32>,
    /// The id that ends it.
    pub close: u32,
    /// Tokens of the span without its tags.
    pub max_tokens: usize,
    /// Ids whose bytes are not whole characters. The span does not end after one of them, so that no character is divided.
    pub partial: Rc<TokenMask>,
}

impl SpanBudget {
    /// Tokens that may come before the span: white space.
    const MAX_TOKENS_BEFORE: usize = 2;

    /// The number of tokens after `chosen` before the span may have to end.
    fn free_tokens(&self, chosen: &[u32]) -> usize {
        let left = |start: usize| {
            let rest = chosen.get(start..).unwrap_or_default();
            let known = rest.len().min(self.open.len());
            if rest[..known] != self.open[..known] {
                return None;
            }
            let end = start + self.open.len() + self.max_tokens;
            let is_over = chosen.len() > end && rest[known..].contains(&self.close);
            (!is_over).then(|| end.saturating_sub(chosen.len()))
        };
        let starts = 0..=self.latest_start();
        starts.filter_map(left).min().unwrap_or(usize::MAX)
    }

    /// The latest token that the span may begin with.
    fn latest_start(&self) -> usize {
        match self.open.is_empty() {
            true => 0,
            false => Self::MAX_TOKENS_BEFORE,
        }
    }

    /// Whether the span ends after `chosen`, because it is long enough.
    fn is_spent(&self, chosen: &[u32]) -> bool {
        let mut starts = (0..=self.latest_start()).filter_map(|start| chosen.get(start..));
        let Some(span) = starts.find_map(|rest| rest.strip_prefix(&self.open[..])) else {
            return false;
        };
        let is_whole = span.last().is_none_or(|last| !self.partial.allows(*last));
        span.len() >= self.max_tokens && is_whole && !span.contains(&self.close)
    }
}

impl TokenRules {
    /// Allows only `allowed`, or all ids below `vocab_size`; forbids the sequences `forbidden`, of which one id alone
    /// is never generated. `None` if this forbids nothing.
    pub fn new(
        vocab_size: usize,
        allowed: Option<&[u32]>,
        min_tokens: usize,
        forbidden: impl IntoIterator<Item = Vec<u32>>,
    ) -> Option<TokenRules> {
        let mut rules = TokenRules {
            budget: None,
            allowed: match allowed {
                Some(ids) => TokenMask::of(ids.iter().copied(), vocab_size),
                None => TokenMask::below(vocab_size),
            },
            allows_all: allowed.is_none(),
            min_tokens,
            sequences: Vec::new(),
        };
        for sequence in forbidden {
            match sequence[..] {
                [] => {}
                [id] => {
                    rules.allowed.remove(id);
                    rules.allows_all = false;
                }
                _ => rules.sequences.push(sequence),
            }
        }
        let forbids = !rules.allows_all || min_tokens > 0 || !rules.sequences.is_empty();
        forbids.then_some(rules)
    }

    /// These rules, or none, and a budget.
    pub fn with_budget(
        rules: Option<TokenRules>,
        vocab_size: usize,
        budget: SpanBudget,
    ) -> TokenRules {
        let rules = rules.unwrap_or_else(|| TokenRules {
            allowed: TokenMask::below(vocab_size),
            allows_all: true,
            min_tokens: 0,
            sequences: Vec::new(),
            budget: None,
        });
        TokenRules {
            budget: Some(budget),
            ..rules
        }
    }

    /// Whether the first token can be chosen.
    pub fn allows_a_first(&self, stop_ids: &[u32]) -> bool {
        let mask = self.mask(stop_ids, &[]);
        mask.is_none_or(|mask| !mask.is_empty())
    }

    /// The number of tokens that may be chosen after `chosen` before any is forbidden, whichever they are.
    pub(super) fn free_tokens(&self, chosen: &[u32]) -> usize {
        if !self.allows_all || !self.sequences.is_empty() || chosen.len() < self.min_tokens {
            return 0;
        }
        let budget = self.budget.as_ref();
        budget.map_or(usize::MAX, |budget| budget.free_tokens(chosen))
    }

    /// The tokens that may follow `chosen`; `None` if all may.
    pub(super) fn mask(&self, stop_ids: &[u32], chosen: &[u32]) -> Option<TokenMask> {
        if let Some(budget) = &self.budget
            && budget.is_spent(chosen)
        {
            let len = 32 * self.allowed.words().len();
            return Some(TokenMask::of([budget.close], len));
        }
        let completes = |sequence: &&Vec<u32>| {
            let (_, before) = sequence.split_last().expect("at least two ids");
            chosen.ends_with(before)
        };
        let last = |sequence: &Vec<u32>| sequence[sequence.len() - 1];
        let completed = self.sequences.iter().filter(completes).map(last);
        let too_early = match chosen.len() < self.min_tokens {
            true => stop_ids,
            false => &[],
        };
        let mut forbidden = completed.chain(too_early.iter().copied()).peekable();
        if self.allows_all && forbidden.peek().is_none() {
            return None;
        }
        let mut mask = self.allowed.clone();
        forbidden.for_each(|id| mask.remove(id));
        Some(mask)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const VOCAB: usize = 40;

    /// The ids that are forbidden after `chosen`, with the stop ids 2 and 33.
    fn forbidden(rules: &TokenRules, chosen: &[u32]) -> Vec<u32> {
        let mask = rules.mask(&[2, 33], chosen);
        let mask = mask.unwrap_or_else(|| TokenMask::below(VOCAB));
        (0..VOCAB as u32).filter(|id| !mask.allows(*id)).collect()
    }

    #[test]
    fn stop_ids_are_forbidden_until_enough_tokens_are_generated() {
        let rules = TokenRules::new(VOCAB, None, 2, []).unwrap();
        assert_eq!(forbidden(&rules, &[]), [2, 33]);
        assert_eq!(forbidden(&rules, &[7]), [2, 33]);
        assert_eq!(rules.mask(&[2], &[7, 7]), None);
    }

    #[test]
    fn only_allowed_ids_are_left() {
        let rules = TokenRules::new(VOCAB, Some(&[1, 39, 50]), 0, []).unwrap();
        let mask = rules.mask(&[], &[5]).unwrap();
        assert_eq!(mask, TokenMask::of([1, 39], VOCAB));
        assert!(rules.allows_a_first(&[1]));
        let rules = TokenRules::new(VOCAB, Some(&[1]), 1, []).unwrap();
        assert!(!rules.allows_a_first(&[1]));
    }

    #[test]
    fn the_last_token_of_a_sequence_is_forbidden_after_the_others() {
        let sequences = [vec![9], vec![5, 6, 7], vec![6, 8], vec![]];
        let rules = TokenRules::new(VOCAB, None, 0, sequences).unwrap();
        assert_eq!(forbidden(&rules, &[]), [9]);
        assert_eq!(forbidden(&rules, &[5, 6]), [7, 8, 9]);
        assert_eq!(forbidden(&rules, &[4, 6]), [8, 9]);
        assert_eq!(forbidden(&rules, &[5, 6, 1]), [9]);
    }

    #[test]
    fn a_span_ends_when_its_budget_is_spent() {
        let budget = |open: &[u32], max_tokens| SpanBudget {
            open: open.to_vec(),
            close: 9,
            max_tokens,
            partial: Rc::new(TokenMask::of([7], VOCAB)),
        };
        let forced = |open: &[u32], max_tokens, chosen: &[u32]| {
            let rules = TokenRules::with_budget(None, VOCAB, budget(open, max_tokens));
            let mask = rules.mask(&[], chosen);
            assert!(
                mask.as_ref()
                    .is_none_or(|mask| *mask == TokenMask::of([9], VOCAB))
            );
            mask.is_some()
        };
        for (open, max_tokens, chosen, expected) in [
            (&[][..], 2, &[1][..], false),
            (&[], 2, &[1, 2], true),
            (&[], 2, &[1, 2, 3], true),
            // A character is not divided.
            (&[], 2, &[1, 7], false),
            (&[], 2, &[1, 7, 3], true),
            // It has ended before, or just now.
            (&[], 2, &[9, 2], false),
            (&[], 2, &[1, 2, 9], false),
            (&[], 2, &[1, 2, 9, 1, 1, 1], false),
            (&[], 0, &[], true),
            // It has not begun.
            (&[5, 6], 1, &[5, 6], false),
            (&[5, 6], 1, &[5, 6, 1], true),
            (&[5, 6], 1, &[3, 4, 5, 6, 1], true),
            (&[5, 6], 1, &[5, 1, 1, 1], false),
            (&[5, 6], 1, &[1, 1, 1, 5, 6, 1], false),
        ] {
            assert_eq!(
                forced(open, max_tokens, chosen),
                expected,
                "{open:?} {chosen:?}"
            );
        }
        let rules = TokenRules::new(VOCAB, None, 2, []);
        let rules = TokenRules::with_budget(rules, VOCAB, budget(&[], 1));
        assert_eq!(forbidden(&rules, &[]), [2, 33]);
        assert_eq!(forbidden(&rules, &[4]).len(), VOCAB - 1);
    }

    #[test]
    fn tokens_are_free_until_the_budget_may_be_spent() {
        let rules = |open: &[u32]| {
            let budget = SpanBudget {
                open: open.to_vec(),
                close: 9,
                max_tokens: 4,
                partial: Rc::default(),
            };
            TokenRules::with_budget(None, VOCAB, budget)
        };
        let any = usize::MAX;
        for (open, chosen, free) in [
            (&[][..], &[][..], 4),
            (&[], &[1, 2, 3], 1),
            (&[], &[1, 2, 3, 4], 0),
            (&[], &[1, 2, 3, 4, 5], 0),
            (&[], &[1, 2, 9, 4, 5], any),
            // The span begins with the third token at the latest.
            (&[5], &[], 5),
            (&[5], &[1], 5),
            (&[5], &[1, 5], 4),
            (&[5], &[1, 1, 1], any),
            (&[5, 6], &[1, 5], 5),
        ] {
            let found = rules(open).free_tokens(chosen);
            assert_eq!(found, free, "{open:?} {chosen:?}");
            // Within them nothing is forbidden.
            let rules = rules(open);
            let mut chosen = chosen.to_vec();
            for _ in 0..found.min(8) {
                assert_eq!(rules.mask(&[], &chosen), None, "{open:?} {chosen:?}");
                chosen.push(1);
            }
        }
        let other = TokenRules::new(VOCAB, None, 2, []).unwrap();
        assert_eq!([&[][..], &[1, 1]].map(|it| other.free_tokens(it)), [0, any]);
        let other = TokenRules::new(VOCAB, None, 0, [vec![9]]).unwrap();
        assert_eq!(other.free_tokens(&[]), 0);
    }

    #[test]
    fn nothing_forbids_nothing() {
        assert_eq!(TokenRules::new(VOCAB, None, 0, [vec![]]), None);
    }
}
